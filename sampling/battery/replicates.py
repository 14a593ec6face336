"""Many data sets, each made by a network drawn from the prior, and cold chains on each: what calibration and teacher share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from data.problem import Problem
from sampling import oracle
from sampling.battery import worlds
from sampling.battery.result import autocorrelation_time
from sampling.battery.setting import Setting, stride
from sampling.battery.subject import Chains, Subject

SCALARS = ("d2", "Q", "residual", "norm_w", "loglik")
DRAWS = 31
LONGEST = (
    3200  # steps of the pilot that measures the autocorrelation; one that does not settle here fails the checks anyway
)
THINNEST = 100


@dataclass(frozen=True, eq=False)
class Replicates:
    """Row c belongs to data set c: the true network, its labels, its scalars, and DRAWS thinned draws of a cold chain (n, DRAWS).

    thin  steps between draws, twice the longest autocorrelation time of a scalar: neighbours correlate by about 0.02
    """

    problem: Problem
    truth: oracle.Weights
    y: np.ndarray
    true: dict[str, np.ndarray]
    drawn: dict[str, np.ndarray]
    chains: Chains
    state: Any
    thin: int


def replicates(subject: Subject, setting: Setting) -> Replicates:
    """Made once for each subject and setting."""
    key = ("replicates", subject.key)
    if key not in setting.shared:
        setting.shared[key] = _make(subject, setting)
    return setting.shared[key]


def _make(subject: Subject, setting: Setting) -> Replicates:
    problem, rng, n = worlds.replicated(), setting.rng(12), setting.replicas(subject, 640)
    truth = oracle.prior(problem, n, rng)
    y = oracle.labels(problem, truth, rng)
    true = oracle.own_scalars(problem, truth, y) if subject.joint else oracle.scalars(problem, truth.w, y)
    chains = subject.chains(problem, n, setting.seed, y)
    state = chains.warm(chains.cold())
    state, thin = _thinning(chains, state, stride(subject))
    rows = []
    for _ in range(DRAWS):
        state = chains.steps(state, thin)
        rows.append(chains.observe(state))
    drawn = {name: np.stack([row[name] for row in rows], 1) for name in SCALARS}
    return Replicates(problem, truth, y, {name: true[name] for name in SCALARS}, drawn, chains, state, thin)


def _thinning(chains: Chains, state: Any, step: int) -> tuple[Any, int]:
    """The state after a pilot, and twice the longest autocorrelation time seen in it; the pilot is at least 20 of those long."""
    rows: list[dict[str, np.ndarray]] = []
    wanted = 60
    while True:
        while len(rows) < wanted:
            state = chains.steps(state, step)
            rows.append(chains.observe(state))
        times = [autocorrelation_time(np.stack([row[name] for row in rows], 1)) for name in SCALARS]
        longest = max(time if np.isfinite(time) else THINNEST for time in times)
        if 20 * longest <= wanted or 2 * wanted * step > LONGEST:
            return state, min(THINNEST, max(1, round(2 * longest * step)))
        wanted *= 2
