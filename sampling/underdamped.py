"""underdamped: OBABO Langevin with a Metropolis test on the collapsed density; momentum persists from step to step."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from sampling import hmc
from sampling.posterior import Collapsed
from sampling.protocol import Info, Streams


class State(NamedTuple):
    """Position with the likelihood cached (as in hmc), and the momentum (C, N1, r)."""

    position: Tensor
    logp: Tensor
    grad: Tensor
    loglik: Tensor
    force: Tensor
    scalars: Tensor
    momentum: Tensor


class Underdamped(hmc.HMC):
    """Leaves p(g | y) x N(p; 0, m) invariant, so its positions have the collapsed posterior (only the likelihood tempered).

    O: p <- c p + sqrt(1 - c^2) sqrt(m) xi with c = exp(-friction e/2);  BAB: kick e/2, rotate e, kick e/2, accepted or rejected
    by Metropolis, where a rejection reverses p (Horowitz 1991; OBABO of Bussi & Parrinello 2007);  O again. One gradient a step. A
    reversal undoes progress, so the step size is adapted to a high acceptance.
    """

    name = "underdamped"
    KICKS = (0.5, 0.5)  # one gradient a step

    def __init__(
        self, target: Collapsed, warmup: int = 1000, accept: float = 0.95, friction: float = 0.5, step: float = 0.2
    ):
        # No kick lies inside a step of one gradient.
        super().__init__(target, warmup=warmup, accept=accept, step=step, kicks="exact")
        self.friction = friction
        self.steps = 1

    def init(self, position: Tensor) -> State:  # type: ignore[override]
        # The momentum starts at 0 and is refreshed before it is first used; it forgets this in 1/friction time units.
        return State(*super().init(position), momentum=torch.zeros_like(position))

    def step(self, state: State, streams: Streams) -> tuple[State, Info]:  # type: ignore[override]
        e = self.jittered(streams)
        root = self.metric.mass.to(state.position.dtype).sqrt()
        shape, dtype = tuple(state.position.shape[1:]), state.position.dtype

        def refresh(momentum: Tensor) -> Tensor:
            keep = math.exp(-0.5 * self.friction * e)
            return keep * momentum + math.sqrt(1.0 - keep * keep) * root * streams.normal(shape, dtype)

        p0 = refresh(state.momentum)
        old = self.measured(hmc.State(*state[:-1]))
        end, p1, gain = self.trajectory(old, p0, e, 1)
        accept, bad = hmc.acceptance(gain)
        moved = streams.uniform() < accept
        momentum = refresh(torch.where(moved[:, None, None], p1, -p0))
        new = State(*hmc.select(moved, end, old), momentum=momentum)
        return new, Info(accept=accept, moved=moved, nan=bad, gradients=1)

    def settings(self) -> dict[str, Any]:
        kept = {name: value for name, value in super().settings().items() if name != "path"}
        return kept | {"friction": self.friction}

    def _steps(self) -> int:
        return 1


def build(target: Collapsed, warmup: int, **options: Any) -> Underdamped:
    """The sampler for `sampling.run(..., sampler="underdamped")`; options: accept, friction, step."""
    return Underdamped(target, warmup=warmup, **options)
