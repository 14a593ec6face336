"""Lambda1 and Lambda2: the posterior correlations <w_h w_k> of hidden weights, in matrix form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from data.errors import InputError
from theory import kernels
from theory.order_parameter import OrderParameter
from theory.spectrum import Spectrum


@dataclass(frozen=True, eq=False)
class WeightCorrelations:
    """<w_h w_k> = delta_hk/lambda0 + (Lambda1 + Lambda2)_hk/lambda0 in a basis of input space.

    Lambda1, Lambda2  (k, k);  basis (N0, k) orthonormal, or None for input coordinates;  lambda0
    """

    Lambda1: np.ndarray
    Lambda2: np.ndarray
    lambda0: float
    basis: np.ndarray | None = None

    @property
    def ww(self) -> np.ndarray:
        """<w w^T> (k, k) in the basis."""
        return (np.eye(len(self.Lambda1)) + self.Lambda1 + self.Lambda2) / self.lambda0


class WeightTheory:
    """The parts of Lambda that do not depend on Q, T or N1: Kdot and H, made when first asked for. O(P^2) memory.

    Lambda(M) = (Q/(lambda1 lambda0 N1 N0)) X^T [diag((M o H) 1) + M o Kdot] X     (physics.md section 4)
    with M = u u^T for Lambda2 and M = -K~^{-1} for Lambda1. No Gaussian closure enters (Stein's lemma is exact).
    """

    def __init__(self, spectrum: Spectrum):
        self.spectrum = spectrum

    @cached_property
    def kdot(self) -> np.ndarray:
        m = kernels.variance(self.spectrum.dataset.X, self.spectrum.lambda0)
        return self.spectrum.activation.kdot(m, m, self.spectrum.C)

    @cached_property
    def h(self) -> np.ndarray:
        m = kernels.variance(self.spectrum.dataset.X, self.spectrum.lambda0)
        return self.spectrum.activation.h(m, m, self.spectrum.C)

    def at(
        self, Q: float, N1: int, T: float, lambda1: float = 1.0, basis: np.ndarray | None = None
    ) -> WeightCorrelations:
        """At one Q. With `basis` (N0, k) the matrices are (k, k), at a cost of O(P^2 k + P N0 k): X never meets N0 x N0."""
        k = T + Q * self.spectrum.values / lambda1
        first, second = self._inner(-(1.0 / k), self.spectrum.y / k)
        scale = Q / (lambda1 * self.spectrum.lambda0 * N1 * self.spectrum.dataset.N0)
        return self._finish(first, second, scale, basis)

    def averaged(
        self, order: OrderParameter, N1: int, T: float, lambda1: float = 1.0, basis: np.ndarray | None = None
    ) -> WeightCorrelations:
        """Q (uu^T - K~^{-1}) averaged over p(Q|y): exact for linear sigma at every N1, P, T (physics.md 5.1)."""
        q = order.Q[:, None] / lambda1
        k = T + q * self.spectrum.values
        weighted = order.weights[:, None] * q
        inverse = -(weighted / k).sum(0)
        coefficient = self.spectrum.y / k
        outer = (weighted * coefficient).T @ coefficient  # average of q u~ u~^T, (P, P) in the eigenbasis
        U = self.spectrum.vectors
        first = self._dress((U * inverse) @ U.T)
        second = self._dress(U @ outer @ U.T)
        return self._finish(first, second, 1.0 / (self.spectrum.lambda0 * N1 * self.spectrum.dataset.N0), basis)

    def summary(self, Q: float, N1: int, T: float, lambda1: float = 1.0) -> dict[str, float]:
        """Traces and Frobenius norms of Lambda1 and Lambda2 in O(P^3), whatever N0: Tr M G and sqrt(Tr M G M G), G = X X^T."""
        data = self.spectrum.dataset
        G = self.spectrum.C * (data.N0 * self.spectrum.lambda0)
        k = T + Q * self.spectrum.values / lambda1
        scale = Q / (lambda1 * self.spectrum.lambda0 * N1 * data.N0)
        found = {}
        for name, inner in zip(("lambda1", "lambda2"), self._inner(-(1.0 / k), self.spectrum.y / k), strict=True):
            product = inner @ G
            found[f"{name}_trace"] = float(scale * np.trace(product))
            found[f"{name}_frobenius"] = float(scale * np.sqrt(max((product * product.T).sum(), 0.0)))
        return found

    def components(
        self, pairs: np.ndarray | Sequence[tuple[int, int]], Q: float, N1: int, T: float, lambda1: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """(Lambda1, Lambda2), each (n,), at chosen (h, k) pairs (n, 2), touching those columns of X only."""
        listed = np.atleast_2d(np.asarray(pairs))
        if listed.ndim != 2 or listed.shape[1] != 2:
            raise InputError(f"components are pairs (h, k) of inputs, shape (n, 2); these have shape {listed.shape}")
        used, where = np.unique(listed, return_inverse=True)
        where = where.reshape(listed.shape)
        found = self.at(Q, N1, T, lambda1, self.columns(used))
        return found.Lambda1[where[:, 0], where[:, 1]], found.Lambda2[where[:, 0], where[:, 1]]

    def columns(self, inputs: np.ndarray) -> np.ndarray:
        """(N0, k) the basis of chosen inputs, so that `at` and `averaged` return that submatrix."""
        listed = np.asarray(inputs)
        N0 = self.spectrum.dataset.N0
        if listed.ndim != 1 or listed.dtype.kind not in "iu" or listed.min() < 0 or listed.max() >= N0:
            raise InputError(f"inputs must be a list of whole numbers from 0 to {N0 - 1}")
        basis = np.zeros((N0, len(listed)))
        basis[listed, np.arange(len(listed))] = 1.0
        return basis

    def _inner(self, inverse: np.ndarray, coefficient: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        U = self.spectrum.vectors
        u = U @ coefficient
        return self._dress((U * inverse) @ U.T), self._dress(np.outer(u, u))

    def _dress(self, M: np.ndarray) -> np.ndarray:
        """diag((M o H) 1) + M o Kdot (P, P)."""
        inner = M * self.kdot
        inner[np.diag_indices_from(inner)] += (M * self.h).sum(1)
        return inner

    def _finish(
        self, first: np.ndarray, second: np.ndarray, scale: float, basis: np.ndarray | None
    ) -> WeightCorrelations:
        X = self.spectrum.dataset.X
        if basis is not None:
            if (
                basis.ndim != 2
                or len(basis) != X.shape[1]
                or not np.allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-8)
            ):
                raise InputError(
                    f"basis must be ({X.shape[1]}, k) with orthonormal columns; it has shape {basis.shape}"
                )
            X = X @ basis
        matrices = (scale * (X.T @ inner @ X) for inner in (first, second))
        Lambda1, Lambda2 = (0.5 * (one + one.T) for one in matrices)
        return WeightCorrelations(Lambda1, Lambda2, self.spectrum.lambda0, basis)
