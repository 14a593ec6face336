"""One eigendecomposition of K, which serves every T, N1 and lambda1 of a data set."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from data.errors import InputError
from data.problem import Dataset
from theory import activations, kernels
from theory.activations import Activation

ROUNDING = float(np.finfo(np.float64).eps)
COLDEST = 1e-100  # below this T > 0 is in effect T = 0, and 1/T^2 overflows

LARGEST_LABEL = 1e100


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
        """Costs one P x P eigendecomposition.

        Raises InputError for an activation that the theory does not cover, lambda0 <= 0, or inputs so large that C overflows.
        """
        sigma = activations.get(activation) if isinstance(activation, str) else activation
        if not (math.isfinite(lambda0) and lambda0 > 0):
            raise InputError(f"lambda0 = {lambda0}: the precision of the first-layer prior must be a finite number > 0")
        with np.errstate(over="ignore", invalid="ignore"):
            C = kernels.covariance(dataset.X, dataset.X, lambda0)
            m = kernels.variance(dataset.X, lambda0)
        if not (np.isfinite(C).all() and np.isfinite(m).all()):
            raise InputError(
                f"C = X X^T/(lambda0 N0) is not finite: X (largest entry {np.abs(dataset.X).max():.3g}) is too large for "
                f"lambda0 = {lambda0:g}; standardise X"
            )
        _check_labels(dataset)
        K = kernels.symmetric(sigma, C, m)
        values, vectors = np.linalg.eigh(K)
        return cls(
            dataset=dataset,
            activation=sigma,
            lambda0=float(lambda0),
            C=C,
            K=K,
            values=np.maximum(values, 0.0),  # K is positive semidefinite: a negative eigenvalue is rounding
            vectors=vectors,
            y=vectors.T @ dataset.y,
            a=vectors.T @ dataset.a,
        )

    def relabel(self, dataset: Dataset) -> Spectrum:
        """The spectrum of the same patterns with other labels or classes, at no eigendecomposition: the random-label control.

        Raises InputError when the patterns differ.
        """
        if not np.array_equal(dataset.X, self.dataset.X):
            raise InputError("relabel needs the same patterns X in the same order; use Spectrum.of for other patterns")
        _check_labels(dataset)
        return dataclasses.replace(self, dataset=dataset, y=self.vectors.T @ dataset.y, a=self.vectors.T @ dataset.a)

    @property
    def P(self) -> int:
        return len(self.values)

    @property
    def rounding(self) -> float:
        """Size below which an eigenvalue of K is rounding."""
        return ROUNDING * self.P * float(self.values[-1])

    @property
    def singular(self) -> bool:
        """Whether K has no inverse in float64."""
        return bool(self.values[0] <= self.rounding)

    def check_temperature(self, T: float) -> None:
        """Raises InputError for T < 0, 0 < T < 1e-100, and for T = 0 when K is singular: T is the only ridge, none is hidden."""
        if not (math.isfinite(T) and T >= 0):
            raise InputError(f"T = {T}: the temperature must be a finite number >= 0")
        if 0 < T < COLDEST:
            raise InputError(f"T = {T}: give T = 0 for the zero-temperature limit, or T >= {COLDEST:g}")
        if T == 0 and self.singular:
            raise InputError(
                f"T = 0 needs an invertible kernel, but K is singular: its smallest eigenvalue, {self.values[0]:.1e}, is rounding "
                f"beside the largest, {self.values[-1]:.3g} (duplicate patterns, or a linear network with P > N0). Take T > 0, "
                "or remove the patterns that depend on others"
            )


def _check_labels(dataset: Dataset) -> None:
    largest = float(np.abs(dataset.y).max())
    if largest > LARGEST_LABEL:
        raise InputError(
            f"y holds a label of size {largest:.3g}: its square overflows; scale y, with T and 1/lambda1 by the square"
        )
