"""Starts that come from other temperatures: chains cooled from near the prior to T, or cooled far past T and warmed back to it."""

from __future__ import annotations

import numpy as np
from torch import Tensor

from sampling.hmc import HMC
from sampling.model import Model
from sampling.posterior import Collapsed
from sampling.protocol import Streams

STEPS = 10  # hmc steps at each temperature
RATIO = 2.0  # of neighbouring temperatures, at most
BELOW = 30.0  # how far below T a "cold" start has been
LONGEST = 16  # steps of a trajectory: a start may be anything, so no cut can make it wrong, and a stuck chain must not cost hours


def hottest(T: float) -> float:
    """Where the posterior is near the prior: 100 T, at least 1."""
    return max(1.0, 100.0 * T)


def ladder(kind: str, T: float) -> np.ndarray:
    """Temperatures that a start passes through, the last one T itself: "hot" comes down from `hottest`, "cold" goes on down to
    T/30 and comes up again."""
    down = _spaced(hottest(T), T if kind == "hot" else T / BELOW)
    return down if kind == "hot" else np.concatenate([down, _spaced(T / BELOW, T)[1:]])


def _spaced(first: float, last: float) -> np.ndarray:
    """Geometric, neighbours at most RATIO apart."""
    rungs = 1 + int(np.ceil(abs(np.log(last / first)) / np.log(RATIO) - 1e-9))
    return np.geomspace(first, last, rungs)


def anneal(model: Model, g: Tensor, kind: str, streams: Streams) -> Tensor:
    """g (C, N1, r) after STEPS steps of hmc at each temperature of `ladder(kind, T)` in turn.

    Step size and metric are learned on the way, pooled over these chains, as in warm-up. A proposal whose energy is not finite is a
    rejection, so the result is finite wherever g is.
    """
    step, mass = 0.2, None
    for T in ladder(kind, model.T):
        kernel = HMC(Collapsed(model.at(float(T))), warmup=STEPS, step=step, kicks="exact")
        kernel.metric.mass = kernel.metric.mass if mass is None else mass
        state = kernel.init(g)
        for _ in range(STEPS):
            kernel.steps = min(kernel.steps, LONGEST)
            state, info = kernel.step(state, streams)
            state = kernel.adapt(state, info)
        g, step, mass = state.position, kernel.step_size.value, kernel.metric.mass
    return g
