"""How thoroughly the battery looks, and plain sampling that several checks share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from data.problem import Problem
from sampling.battery.subject import Chains, Subject

# Steps between draws: one for samplers whose step is a trajectory or a sweep, more for those whose step is a small move.
STRIDE = {"mala": 5, "underdamped": 5, "langevin": 5}

# Share of chains and data sets given to a sampler whose transition is dear: tens of gradients, or a whole ladder of temperatures.
SHARE = {"nuts": 0.25, "tempering": 0.5}
CHAINS = 64


@dataclass(frozen=True)
class Setting:
    """seed; effort, a factor on numbers of draws and replicates; false_alarm of one check; `shared` keeps what checks share."""

    seed: int = 0
    effort: float = 1.0
    false_alarm: float = 1e-4
    shared: dict[Any, Any] = field(default_factory=dict, compare=False)

    def count(self, number: int, least: int = 8) -> int:
        """`number` scaled by the effort."""
        return max(least, round(number * self.effort))

    def replicas(self, subject: Subject, number: int) -> int:
        """`number` of independent chains or data sets, scaled by the effort and by what the sampler can afford."""
        return max(24, round(number * self.effort * SHARE.get(subject.name, 1.0)))

    def rng(self, *words: int) -> np.random.Generator:
        """A generator of its own for each use."""
        return np.random.default_rng([self.seed, *words])


@dataclass(frozen=True)
class Sample:
    """Scalars by name, each (chains, draws), and <w_h w_k> of each chain (chains, N0, N0) on the directions that the data see."""

    series: dict[str, np.ndarray]
    ww: np.ndarray

    def means(self, name: str) -> np.ndarray:
        """(chains,) averages: independent values, whatever the autocorrelation inside a chain."""
        return self.series[name].mean(1)


def stride(subject: Subject) -> int:
    """Steps between draws."""
    return STRIDE.get(subject.name, 1)


def sample(
    subject: Subject,
    problem: Problem,
    draws: int,
    seed: int,
    visit: Callable[[Chains, Any], dict[str, np.ndarray]] | None = None,
) -> Sample:
    """Cold chains, the sampler's own warm-up, then `draws` draws. `visit` adds scalars of its own at each draw."""
    group = subject.chains(problem, max(16, round(CHAINS * SHARE.get(subject.name, 1.0))), seed)
    state = group.warm(group.cold())
    rows: list[dict[str, np.ndarray]] = []
    ww: Any = 0.0
    for _ in range(draws):
        state = group.steps(state, stride(subject))
        w, _ = group.weights(state)
        ww = ww + np.einsum("cih,cik->chk", w, w) / (problem.N1 * draws)
        rows.append(group.observe(state) | ({} if visit is None else visit(group, state)))
    return Sample({name: np.stack([row[name] for row in rows], 1) for name in rows[0]}, ww)


def components(matrix: np.ndarray) -> dict[str, Any]:
    """The upper triangle of (..., k, k) as name -> (...)."""
    size = matrix.shape[-1]
    return {f"<w{h + 1} w{k + 1}>": matrix[..., h, k] for h in range(size) for k in range(h, size)}
