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
    R_test  (P', r) the same of the test patterns, or None. Then V also spans what only they see: those directions come after the
            `seen` ones of the training patterns, have zero columns in R, and keep their prior exactly
    seen  directions that the training patterns see
    """

    R: np.ndarray
    V: np.ndarray
    R_test: np.ndarray | None
    seen: int

    @property
    def r(self) -> int:
        return self.R.shape[1]


def reduce(problem: Problem) -> Reduction:
    """The reduction of a problem's inputs, in float64."""
    scale = np.sqrt(problem.N0 * problem.lambda0)
    U, s, Vt = np.linalg.svd(problem.dataset.X / scale, full_matrices=False)
    # An all-zero X still has one direction, so that every array below has a column.
    r = max(1, int((s > RANK_TOLERANCE * s[0]).sum()))
    R, V = U[:, :r] * s[:r], np.ascontiguousarray(Vt[:r].T)
    if problem.dataset.X_test is None:
        return Reduction(R=R, V=V, R_test=None, seen=r)
    test = problem.dataset.X_test / scale
    # Twice, so that what is left is orthogonal to V to rounding even where little is left.
    rest = test - (test @ V) @ V.T
    rest -= (rest @ V) @ V.T
    _, lengths, directions = np.linalg.svd(rest, full_matrices=False)
    more = directions[lengths > RANK_TOLERANCE * max(s[0], np.linalg.norm(test))].T
    V = np.column_stack([V, more])
    return Reduction(R=np.column_stack([R, np.zeros((len(R), more.shape[1]))]), V=V, R_test=test @ V, seen=r)
