"""The Gaussian-process predictor: mean, variance and square loss on train and test points, at one Q or averaged over p(Q|y)."""

from __future__ import annotations

import weakref
from dataclasses import dataclass

import numpy as np

from data.errors import InputError
from theory import kernels
from theory.order_parameter import OrderParameter
from theory.spectrum import Spectrum


@dataclass(frozen=True, eq=False)
class Projection:
    """Test patterns in the eigenbasis of K, which serves every Q, T and lambda1: O(P' P) a prediction after O(P' P^2) once.

    along  (P', P) K(X, train) U;  own  (P',) K00 = E[sigma^2]
    """

    along: np.ndarray
    own: np.ndarray

    @classmethod
    def of(cls, spectrum: Spectrum, X: np.ndarray) -> Projection:
        """Kept for the last read-only X of each spectrum, such as a data set's test patterns. Raises InputError as `cross` does."""
        kept = _PROJECTED.get(spectrum)
        if kept is not None and kept[0] is X:
            return kept[1]
        along = cross(spectrum, X) @ spectrum.vectors
        found = cls(along, spectrum.activation.diagonal(kernels.variance(np.asarray(X, np.float64), spectrum.lambda0)))
        if isinstance(X, np.ndarray) and not X.flags.writeable:
            _PROJECTED[spectrum] = (X, found)
        return found


_PROJECTED: weakref.WeakKeyDictionary[Spectrum, tuple[np.ndarray, Projection]] = weakref.WeakKeyDictionary()


def mean(spectrum: Spectrum, Q: float, T: float, lambda1: float = 1.0, X: np.ndarray | None = None) -> np.ndarray:
    """fbar = (Q/lambda1) K u, on the training points (P,) or at the rows of X (P',)."""
    q = Q / lambda1
    if X is None:
        return spectrum.vectors @ (q * spectrum.values / (T + q * spectrum.values) * spectrum.y)
    return q * (Projection.of(spectrum, X).along @ (spectrum.y / (T + q * spectrum.values)))


def variance(spectrum: Spectrum, Q: float, T: float, lambda1: float = 1.0, X: np.ndarray | None = None) -> np.ndarray:
    """Var f = (Q/lambda1)(K00 - (Q/lambda1) K0 K~^{-1} K0^T), diagonal, on train (P,) or at the rows of X (P',); never negative."""
    q = Q / lambda1
    k = T + q * spectrum.values
    if X is None:
        return (spectrum.vectors**2) @ (q * spectrum.values * T / k)
    test = Projection.of(spectrum, X)
    return np.maximum(q * (test.own - q * ((test.along**2) @ (1.0 / k))), 0.0)


@dataclass(frozen=True, eq=False)
class Predictor:
    """Mean and variance of f (P',) under the posterior; the noise of the labels is not in the variance."""

    mean: np.ndarray
    variance: np.ndarray

    def loss(self, y: np.ndarray) -> float:
        """Posterior average of the square loss, mean over patterns of (y - fbar)^2 + Var f: bias and variance together."""
        return float(np.mean((np.asarray(y) - self.mean) ** 2 + self.variance))


def averaged(
    spectrum: Spectrum, order: OrderParameter, T: float, lambda1: float = 1.0, X: np.ndarray | None = None
) -> Predictor:
    """Mean and variance of f over p(Q|y), the spread of the mean with Q included: exact for linear sigma at every N1, P, T.

    On the training points, or at the rows of X (P', N0).
    """
    q = order.Q[:, None] / lambda1
    k = T + q * spectrum.values
    if X is None:
        K0 = spectrum.vectors * spectrum.values
        within = spectrum.vectors**2 @ (order.weights @ (q * spectrum.values * T / k))
    else:
        test = Projection.of(spectrum, X)
        K0 = test.along
        within = test.own * float(order.weights @ q[:, 0]) - (K0**2) @ (order.weights @ (q * q / k))
    means = (q * spectrum.y / k) @ K0.T  # (n, P')
    mean_ = order.weights @ means
    return Predictor(mean_, np.maximum(within, 0.0) + order.weights @ (means - mean_) ** 2)


def cross(spectrum: Spectrum, X: np.ndarray) -> np.ndarray:
    """K(X, train) (P', P). Raises InputError for patterns with another number of inputs, or that are not finite."""
    X = np.asarray(X, dtype=np.float64)
    if X.ndim != 2 or X.shape[1] != spectrum.dataset.N0:
        raise InputError(f"test patterns must have shape (P', {spectrum.dataset.N0}), as X has; they have {X.shape}")
    if not np.isfinite(X).all():
        raise InputError("test patterns must be finite numbers")
    return kernels.kernel(spectrum.activation, X, spectrum.dataset.X, spectrum.lambda0)
