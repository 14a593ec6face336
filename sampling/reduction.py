"""Row-space reduction: sigma sees w only through h = R g, so the chain lives in r = rank(X) inputs a unit, not N0."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from data.problem import Problem

RANK_TOLERANCE = 1e-12  # singular values below this share of the largest are rounding: their directions are prior


@dataclass(frozen=True, eq=False)
class Reduction:
    """X/sqrt(N0 lambda0) = U diag(s) V^T (physics.md section 6), cut at the numerical rank r.

    R  (P, r) = U diag(s): pre-activations are h = R g with g = sqrt(lambda0) V^T w ~ N(0, 1) under the prior
    V  (N0, r) orthonormal directions of input space that the data see; along the other N0 - r, w keeps its prior exactly
    """

    R: np.ndarray
    V: np.ndarray

    @property
    def r(self) -> int:
        return self.R.shape[1]


def reduce(problem: Problem) -> Reduction:
    """The reduction of a problem's inputs, in float64."""
    U, s, Vt = np.linalg.svd(problem.dataset.X / np.sqrt(problem.N0 * problem.lambda0), full_matrices=False)
    # An all-zero X still has one direction, so that every array below has a column.
    r = max(1, int((s > RANK_TOLERANCE * s[0]).sum()))
    return Reduction(R=U[:, :r] * s[:r], V=np.ascontiguousarray(Vt[:r].T))
