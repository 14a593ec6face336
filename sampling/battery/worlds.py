"""The small problems that the battery is run on: each as hard as its exact answer allows, with every constant different from 1."""

from __future__ import annotations

import numpy as np

from data.problem import Dataset, Problem


def _problem(P: int, plus: int, N0: int, N1: int, T: float, seed: int, activation: str = "erf") -> Problem:
    rng = np.random.default_rng(seed)
    classes = np.where(np.arange(P) < plus, 1.0, -1.0)
    # Precisions apart from each other and from 1, so that swapping or forgetting one shows.
    data = Dataset(1.5 * rng.normal(size=(P, N0)), classes, classes, name=f"battery P={P} N0={N0}")
    return Problem(data, N1, T, lambda0=1.4, lambda1=0.6, activation=activation)


def linear() -> Problem:
    """Linear sigma, unbalanced classes, N1 < P: the N1 x N1 form."""
    return _problem(P=6, plus=2, N0=4, N1=3, T=0.3, seed=1, activation="linear")


def importance() -> Problem:
    """erf, unbalanced, N1 = P: the P x P form; the prior still reaches the posterior."""
    return _problem(P=6, plus=2, N0=3, N1=6, T=0.4, seed=2)


def replicated() -> Problem:
    """erf; its labels are drawn anew for each chain (Geweke, calibration, teacher start)."""
    return _problem(P=5, plus=2, N0=3, N1=4, T=0.3, seed=3)


def identities() -> Problem:
    """erf, balanced and trained on its classes, so that y.f = P (a.f)/2."""
    return _problem(P=8, plus=4, N0=4, N1=5, T=0.5, seed=4)


def pairwise() -> Problem:
    """erf, N1 < P, low T: beyond importance sampling."""
    return _problem(P=16, plus=6, N0=6, N1=8, T=0.15, seed=5)
