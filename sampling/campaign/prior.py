"""<D^2> of the prior, N1 a^T K a, which the effect is measured from: a fact of the prior alone, written apart from theory."""

from __future__ import annotations

import math

import numpy as np
import torch

from data.problem import Problem
from sampling import activations

DRAWS = 1 << 17  # of one unit, where K has no closed form
CHUNK = 1 << 12


def prior_d2(problem: Problem) -> tuple[float, float]:
    """(value, standard error) of <D^2> before any data: N1 E[(a.sigma(h))^2], h ~ N(0, C), C = X X^T/(lambda0 N0).

    Closed form for erf (Williams, Neural Comput. 10, 1203 (1998)), linear and sin, with error 0; a Monte Carlo of 131,072 one-unit
    draws for tanh, whose error of about 0.4% of <D^2> is small beside an effect that a cell can resolve.
    """
    X = problem.dataset.X / math.sqrt(problem.lambda0 * problem.N0)
    C = X @ X.T
    a, variance = problem.a, np.diag(C)
    if problem.activation == "linear":
        K = C
    elif problem.activation == "sin":  # E[sin sin] = exp(-(v + v')/2) sinh C, as two exponentials that cannot overflow
        half = 0.5 * (variance[:, None] + variance)
        K = 0.5 * (np.exp(C - half) - np.exp(-C - half))
    elif problem.activation == "erf":
        root = np.sqrt(1 + 2 * variance)
        K = (2 / math.pi) * np.arcsin(np.clip(2 * C / np.outer(root, root), -1, 1))
    else:
        return _drawn(problem, X)
    return float(problem.N1 * (a @ K @ a)), 0.0


def _drawn(problem: Problem, X: np.ndarray) -> tuple[float, float]:
    rng = np.random.default_rng(np.random.SeedSequence([problem.P, problem.N0]))
    sigma, squares = activations.get(problem.activation).sigma, []
    for _ in range(DRAWS // CHUNK):
        h = torch.from_numpy(X @ rng.standard_normal((problem.N0, CHUNK)))
        squares.append((problem.a @ sigma(h).numpy()) ** 2)
    values = problem.N1 * np.concatenate(squares)
    return float(values.mean()), float(values.std(ddof=1) / math.sqrt(len(values)))
