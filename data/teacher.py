"""A teacher network drawn from the prior: its weights are an exact posterior draw of the data it made."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from data.errors import InputError

if TYPE_CHECKING:
    from data.problem import Problem

SIGMA: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "linear": lambda h: h,
    "tanh": np.tanh,
    "sin": np.sin,
}


def digest(X: np.ndarray, y: np.ndarray) -> str:
    """sha256 over X and y: which data a teacher belongs to."""
    found = hashlib.sha256()
    for array in (X, y):
        found.update(str(array.shape).encode())
        found.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
    return found.hexdigest()


@dataclass(frozen=True, eq=False)
class Teacher:
    """Weights of the network that made y = f(X) + sqrt(T) noise (physics.md section 5.4).

    w (N1, N0), v (N1,) in the conventions of physics.md section 1: h = w x/sqrt(N0), f = v . sigma(h)/sqrt(N1),
    w ~ N(0, 1/lambda0), v ~ N(0, 1/lambda1). `data` is the sha256 of (X, y), see `digest`.
    """

    w: np.ndarray
    v: np.ndarray
    T: float
    lambda0: float
    lambda1: float
    activation: str
    data: str = ""

    @property
    def N1(self) -> int:
        return self.w.shape[0]

    def f(self, X: np.ndarray) -> np.ndarray:
        """(P,) outputs of the teacher on X (P, N0), without noise."""
        h = X @ self.w.T / math.sqrt(X.shape[1])
        return SIGMA[self.activation](h) @ self.v / math.sqrt(self.N1)

    def weights(self, problem: Problem) -> tuple[np.ndarray, np.ndarray]:
        """(w, v), an exact draw from the posterior of `problem`: the teacher start of a chain.

        Raises InputError where the problem is not the one the teacher was drawn for: then its weights are no draw of it.
        """
        for name in ("N1", "T", "lambda0", "lambda1", "activation"):
            mine, theirs = getattr(self, name), getattr(problem, name)
            if mine != theirs:
                raise InputError(
                    f"the teacher has {name} = {mine}, the problem {name} = {theirs}: a teacher start is exact only when "
                    "they are equal"
                )
        if self.data != digest(problem.dataset.X, problem.dataset.y):
            raise InputError("the teacher did not make the X and y of this problem: a teacher start would not be exact")
        return self.w, self.v


def teacher_of(problem: Problem) -> Teacher:
    """The network that made the problem's labels. Raises InputError where the data set does not keep one."""
    if problem.dataset.teacher is None:
        raise InputError(
            f"starts: 'teacher' needs data that keep the network that made them, which {problem.dataset.name} do not; "
            "take the data set network-teacher, or the starts prior and aligned"
        )
    return problem.dataset.teacher
