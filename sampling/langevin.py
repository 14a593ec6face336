"""langevin: unadjusted overdamped Euler, as the papers of the field run it. BIASED at finite step: never a ground truth."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from sampling.adaptation import StepSize
from sampling.posterior import Collapsed, Joint
from sampling.protocol import Info, Streams


class State(NamedTuple):
    """Position (C, N1, r or r + 1) with its log-density (C,) and gradient cached."""

    position: Tensor
    logp: Tensor
    grad: Tensor


class Langevin:
    """theta += eps grad log p(theta) + sqrt(2 eps) xi on the joint density of (w, v) (default) or the collapsed one.

    eps multiplies the gradient of the log-density itself. The older codes of the field write theta -= eps' (grad Loss + T lambda
    theta) - sqrt(2 eps' T) xi, with eps = eps' T. In the whitened coordinates used here w = g/sqrt(lambda0) and
    v = x/sqrt(lambda1), so one eps for (w, v) is lambda0 eps for g and lambda1 eps for x.

    Invariant density: NONE that is known; it differs from the posterior by O(eps). A mode of curvature h has its variance
    inflated by 1/(1 - eps h/2). Every Run carries `biased = True`, and reports mark it. With no `step` given, warm-up sets eps so
    that a Metropolis test, were there one, would accept `accept` of the moves; the draws then come from a fixed eps.
    """

    name = "langevin"
    biased = True
    adjusted = False
    FIRST_STEP = 1e-3

    def __init__(self, target: Joint | Collapsed, warmup: int = 1000, accept: float = 0.8, step: float | None = None):
        self.target, self.fixed = target, step is not None
        problem = target.model.problem
        scale = [problem.lambda0] * target.model.r + [problem.lambda1] * isinstance(target, Joint)
        self.scale = torch.tensor(scale, dtype=target.dtype, device=target.device)
        # At T << 1 the stiffest curvature grows as 1/T, so that is where dual averaging starts looking.
        start = self.FIRST_STEP * min(1.0, problem.T) if step is None else step
        self.step_size = StepSize(start, accept)
        self.done = 0

    def init(self, position: Tensor) -> State:
        return State(position, *self.target.value_and_grad(position))

    def observe(self, state: State) -> dict[str, Tensor]:
        return self.target.observe(state.position, state.grad)

    def step(self, state: State, streams: Streams) -> tuple[State, Info]:
        eps = self.step_size.value * self.scale
        noise = streams.normal(tuple(state.position.shape[1:]), state.position.dtype)
        move = eps * state.grad + torch.sqrt(2.0 * eps) * noise
        position = state.position + move
        logp, grad = self.target.value_and_grad(position)
        # log q(old | new) - log q(new | old): |noise|^2/2 against the noise that would lead back.
        back = -(move + eps * grad) / torch.sqrt(2.0 * eps)
        change = logp - state.logp + 0.5 * ((noise - back).double() * (noise + back).double()).sum((-2, -1))
        bad = ~torch.isfinite(change)
        accept = torch.exp(change.clamp(max=0.0)).masked_fill(bad, 0.0)
        moved = streams.uniform() < accept if self.adjusted else ~bad  # a NaN is never a draw, not even here
        pick = moved[:, None, None]
        new = State(
            torch.where(pick, position, state.position),
            torch.where(moved, logp, state.logp),
            torch.where(pick, grad, state.grad),
        )
        return new, Info(accept=accept, moved=moved, nan=bad, gradients=1)

    def adapt(self, state: State, info: Info) -> State:
        self.done += 1
        if not self.fixed:
            self.step_size.update(float(info.accept.mean()))
        return state

    def finish(self) -> None:
        if self.done and not self.fixed:
            self.step_size.freeze()

    def settings(self) -> dict[str, Any]:
        T = self.target.model.T
        return {
            "density": type(self.target).__name__.lower(),
            "step_size": self.step_size.value,
            "step_size_convention": "theta += eps grad log p + sqrt(2 eps) xi, on (w, v)",
            "step_size_published": self.step_size.value / T,
            "step_fixed": self.fixed,
            "adjusted": self.adjusted,
        }

    def state_dict(self) -> dict[str, np.ndarray]:
        return {"done": np.array(self.done)} | self.step_size.state_dict()

    def load_state_dict(self, stored: dict[str, np.ndarray]) -> None:
        self.done = int(stored["done"])
        self.step_size.load_state_dict(stored)


def build(target: Joint | Collapsed, warmup: int, **options: Any) -> Langevin:
    """The sampler for `sampling.run(..., sampler="langevin")`; options: accept, step."""
    return Langevin(target, warmup=warmup, **options)
