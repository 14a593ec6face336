"""Lambda1 and Lambda2: the posterior correlations <w_h w_k> of hidden weights, in matrix form."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

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
    """The parts of Lambda that do not depend on Q, T or N1: Kdot and H, made once for a spectrum. O(P^2) memory.

    Lambda(M) = (Q/(lambda1 lambda0 N1 N0)) X^T [diag((M o H) 1) + M o Kdot] X     (physics.md section 4)
    with M = u u^T for Lambda2 and M = -K~^{-1} for Lambda1. No Gaussian closure enters (Stein's lemma is exact).
    """

    def __init__(self, spectrum: Spectrum):
        self.spectrum = spectrum
        m = kernels.variance(spectrum.dataset.X, spectrum.lambda0)
        self.kdot = spectrum.activation.kdot(m, m, spectrum.C)
        self.h = spectrum.activation.h(m, m, spectrum.C)

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
        self, pairs: np.ndarray, Q: float, N1: int, T: float, lambda1: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray]:
        """(Lambda1, Lambda2) at chosen (h, k) pairs (n, 2), touching those columns of X only."""
        pairs = np.atleast_2d(np.asarray(pairs, dtype=int))
        used, where = np.unique(pairs, return_inverse=True)
        where = where.reshape(pairs.shape)
        basis = np.zeros((self.spectrum.dataset.N0, len(used)))
        basis[used, np.arange(len(used))] = 1.0
        found = self.at(Q, N1, T, lambda1, basis)
        return found.Lambda1[where[:, 0], where[:, 1]], found.Lambda2[where[:, 0], where[:, 1]]

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
        X = self.spectrum.dataset.X if basis is None else self.spectrum.dataset.X @ basis
        matrices = (scale * (X.T @ inner @ X) for inner in (first, second))
        Lambda1, Lambda2 = (0.5 * (one + one.T) for one in matrices)
        return WeightCorrelations(Lambda1, Lambda2, self.spectrum.lambda0, basis)
