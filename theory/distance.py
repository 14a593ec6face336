"""The terms of <D^2>, Eq. (3) and Eq. (4), for any Q, and its normalisations; on training or on held-out manifolds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from data.errors import InputError
from data.problem import contrast
from theory import kernels
from theory.predictor import Projection
from theory.spectrum import Spectrum


@dataclass(frozen=True)
class Terms:
    """prior, Delta1, Delta2 and a.fbar at one Q or an array of them (physics.md section 3)."""

    prior: float
    delta1: np.ndarray
    delta2: np.ndarray
    fbar_a: np.ndarray

    @property
    def eq4(self) -> np.ndarray:
        """Eq. (4): Delta1 dropped."""
        return self.prior + self.delta2

    @property
    def eq3(self) -> np.ndarray:
        """Eq. (3): all three terms."""
        return self.prior - self.delta1 + self.delta2


def terms(
    spectrum: Spectrum,
    Q: np.ndarray | float,
    N1: int,
    T: float,
    lambda1: float = 1.0,
    *,
    X: np.ndarray | None = None,
    classes: np.ndarray | None = None,
) -> Terms:
    """prior = N1 a^T K a;  Delta1 = (Q/lambda1) a^T K K~^{-1} K a;  Delta2 = (Q/lambda1)(a^T K u)^2;  fbar_a = (Q/lambda1) a^T K u.

    Q may have any shape; Delta1, Delta2 and fbar_a share it. With X (P', N0) and classes (P',) the manifolds are those of held-out
    patterns, through K(X, train); the network is still trained on the training set. Any class sizes.
    Raises InputError for held-out classes that are not +1 and -1, one a pattern, with both present.
    """
    q = np.asarray(Q, dtype=np.float64) / lambda1
    if X is None:
        prior = float((spectrum.values * spectrum.a**2).sum())
        along = spectrum.values * spectrum.a  # U^T K a
    else:
        a = _held_out_contrast(np.asarray(X), classes)
        prior = float(a @ kernels.kernel(spectrum.activation, X, X, spectrum.lambda0) @ a)
        along = a @ Projection.of(spectrum, X).along
    inverse = 1.0 / (T + np.multiply.outer(q, spectrum.values))
    projected = inverse @ (along * spectrum.y)
    return Terms(
        prior=N1 * prior,
        delta1=q * (inverse @ along**2),
        delta2=q * projected**2,
        fbar_a=q * projected,
    )


def _held_out_contrast(X: np.ndarray, classes: np.ndarray | None) -> np.ndarray:
    found = None if classes is None else np.asarray(classes)
    if found is None or found.shape != X.shape[:1] or set(np.unique(found)) != {-1, 1}:
        raise InputError(
            f"<D^2> on {len(X)} held-out patterns needs `classes`, one +1 or -1 a pattern, with both classes present"
        )
    return contrast(found)


def normalise(d2: float | np.ndarray, P: int, N1: int, eta: float = 0.0, delta: float = 1.0) -> float | np.ndarray:
    """D^2_{eta,delta} = N1^{-eta} P^{2 - 2 delta} D^2; the paper's choices are (0, 1), as here, and (1, 1/2)."""
    return d2 * float(N1) ** -eta * float(P) ** (2.0 - 2.0 * delta)
