"""One eigendecomposition of K, which serves every T, N1 and lambda1 of a data set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from data.errors import InputError
from data.problem import Dataset
from theory import activations, kernels
from theory.activations import Activation

SINGULAR = 1e-13  # an eigenvalue below this share of the largest is rounding


@dataclass(frozen=True, eq=False)
class Spectrum:
    """K = U diag(l) U^T with the labels and the class contrast in its basis (physics.md section 2).

    values (P,) l >= 0, ascending;  vectors (P, P) U;  y (P,) U^T y;  a (P,) U^T a;  C, K (P, P)
    """

    dataset: Dataset
    activation: Activation
    lambda0: float
    C: np.ndarray
    K: np.ndarray
    values: np.ndarray
    vectors: np.ndarray
    y: np.ndarray
    a: np.ndarray

    @classmethod
    def of(cls, dataset: Dataset, activation: str | Activation, lambda0: float = 1.0) -> Spectrum:
        """Costs one P x P eigendecomposition. Raises InputError for an activation that the theory does not cover."""
        sigma = activations.get(activation) if isinstance(activation, str) else activation
        C = kernels.covariance(dataset.X, dataset.X, lambda0)
        K = kernels.kernel(sigma, dataset.X, dataset.X, lambda0)
        values, vectors = np.linalg.eigh(K)
        return cls(
            dataset=dataset,
            activation=sigma,
            lambda0=lambda0,
            C=C,
            K=K,
            values=np.maximum(values, 0.0),  # K is positive semidefinite: a negative eigenvalue is rounding
            vectors=vectors,
            y=vectors.T @ dataset.y,
            a=vectors.T @ dataset.a,
        )

    @property
    def P(self) -> int:
        return len(self.values)

    @property
    def singular(self) -> bool:
        """Whether K has no inverse in float64."""
        return bool(self.values[0] <= SINGULAR * self.P * self.values[-1])

    def check_temperature(self, T: float) -> None:
        """Raises InputError for T < 0, and for T = 0 when K is singular: T is the only ridge, none is hidden."""
        if T < 0 or not np.isfinite(T):
            raise InputError(f"T = {T}: the temperature must be a finite number >= 0")
        if T == 0 and self.singular:
            raise InputError(
                "T = 0 needs an invertible kernel, but K is singular (duplicate patterns, or a linear network with P > N0): "
                "take T > 0 or remove the duplicates"
            )
