"""hmc: Hamiltonian Monte Carlo on the collapsed density, rotating exactly under the Gaussian prior (the default sampler)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from sampling.adaptation import PooledMetric, StepSize
from sampling.posterior import Collapsed
from sampling.protocol import Info, Streams


class State(NamedTuple):
    """g (C, N1, r) with the log-likelihood and its gradient cached, so that a step costs L gradients and no more.

    scalars (C, n) holds what `observe` returns, worked out with the last gradient of the trajectory; n = 0 during warm-up.
    """

    position: Tensor
    logp: Tensor
    grad: Tensor
    loglik: Tensor
    force: Tensor
    scalars: Tensor


class HMC:
    """Leaves p(g | y) proportional to exp(-|g|^2/2) N(y; 0, A(g)) invariant: first layer, readout integrated out, only
    the likelihood tempered.

    One trajectory is L times (kick e/2, rotate by e, kick e/2): the kick uses the likelihood's gradient, the rotation is the
    exact flow of the Gaussian prior with mass m_k, at frequency 1/sqrt(m_k) for coordinate k (splitting of Shahbaba et al.,
    Stat. Comput. 24, 339 (2014)). A Metropolis test on the energy follows. e is jittered by +-20% in every step, together
    for all chains, and is dual-averaged to the wanted acceptance in warm-up; m_k is the pooled mean curvature. Both are frozen
    by `finish`. There is no cap on L once the early warm-up is over: short trajectories have looked converged and were wrong.

    path  length of a trajectory in radians. A quarter turn (pi/2) makes a Gaussian coordinate's draws independent; <D^2>, a
          sum of squares, costs fewest gradients per effective draw at about 1.2 (digits, T = 0.01 to 0.1; cos^2 = 0.13).
    """

    name = "hmc"
    biased = False
    JITTER = 0.2
    EARLY_STEPS = 8  # longest trajectory while chains still fall towards the typical set and e is unknown

    def __init__(self, target: Collapsed, warmup: int = 300, accept: float = 0.8, path: float = 1.2, step: float = 0.2):
        self.target, self.warmup, self.path = target, warmup, path
        self.metric = PooledMetric(target.model.r, target.device)
        self.step_size = StepSize(step, accept, largest=math.pi / 2)
        self.done = 0
        self.steps = self._steps()
        self.measuring = False
        self.names: list[str] = []

    def init(self, position: Tensor) -> State:
        return self.evaluate(position)

    def evaluate(self, position: Tensor) -> State:
        """The State at a position, with its scalars once warm-up is over."""
        if not self.measuring:
            return assemble(position, *self.target.likelihood(position))
        loglik, force, scalars = self.target.likelihood_and_scalars(position)
        self.names = list(scalars)
        return assemble(position, loglik, force, torch.stack(list(scalars.values()), 1))

    def observe(self, state: State) -> dict[str, Tensor]:
        """The target's scalars (C,) at a state."""
        if not state.scalars.shape[1]:
            return self.target.observe(state.position, state.grad)
        if not self.names:  # a state from a checkpoint, before this kernel's first evaluation
            self.names = list(self.target.likelihood_and_scalars(state.position[:1])[2])
        return dict(zip(self.names, state.scalars.unbind(1), strict=True))

    def step(self, state: State, streams: Streams) -> tuple[State, Info]:
        e = self.jittered(streams)
        state = self.measured(state)
        root = self.metric.mass.to(state.position.dtype).sqrt()
        p0 = streams.normal(tuple(state.position.shape[1:]), state.position.dtype) * root
        end, _, change = self.trajectory(state, p0, e, self.steps)
        accept, bad = acceptance(change)
        moved = streams.uniform() < accept
        return select(moved, end, state), Info(accept=accept, moved=moved, nan=bad, gradients=self.steps)

    def measured(self, state: State) -> State:
        """The state with its scalars, which a state from warm-up lacks."""
        return self.evaluate(state.position) if self.measuring and not state.scalars.shape[1] else state

    def jittered(self, streams: Streams) -> float:
        """This step's e: the step size +-20%, common to all chains so that they stay one batch."""
        return self.step_size.value * (1.0 + self.JITTER * (2.0 * streams.common() - 1.0))

    def trajectory(self, state: State, p0: Tensor, e: float, steps: int) -> tuple[State, Tensor, Tensor]:
        """From (state, p0), `steps` times kick, rotate, kick: the end, its momentum, and log-density gained (C,) float64.

        Volume-preserving, and reversible under p -> -p, so exp(min(0, gain)) is its Metropolis acceptance.
        """
        mass = self.metric.mass.to(p0.dtype)
        root = mass.sqrt()
        cosine, sine = torch.cos(e / root), torch.sin(e / root)
        g, p = state.position, torch.add(p0, state.force, alpha=0.5 * e)
        for _ in range(steps - 1):
            g, p = cosine * g + (sine / root) * p, cosine * p - (sine * root) * g
            p = torch.add(p, self.target.likelihood(g)[1], alpha=e)
        g, p = cosine * g + (sine / root) * p, cosine * p - (sine * root) * g
        end = self.evaluate(g)
        p = torch.add(p, end.force, alpha=0.5 * e)
        # Each part as a difference formed before it is summed, in float64: no two large energies are subtracted.
        gain = end.loglik - state.loglik - _half_difference(g, state.position) - _half_difference(p, p0, mass)
        return end, p, gain

    def adapt(self, state: State, info: Info) -> State:
        self.done += 1
        share = self.done / self.warmup
        self.step_size.update(float(info.accept.mean()))
        if share > 0.1:
            self.metric.add(state.grad)
        # Three looks at the metric, each on draws that the last one made; the last quarter settles the step size.
        if self.done in {int(self.warmup * part) for part in (0.3, 0.5, 0.75)}:
            self.metric.adopt()
            self.step_size.restart(self.step_size.value)
        self.steps = self._steps()
        return state

    def finish(self) -> None:
        if self.done:
            self.step_size.freeze()
        self.warmup = self.done
        self.steps = self._steps()
        self.measuring = True

    def settings(self) -> dict[str, Any]:
        mass = self.metric.mass
        return {
            "step_size": self.step_size.value,
            "jitter": self.JITTER,
            "leapfrog_steps": self.steps,
            "path": self.path,
            "target_acceptance": self.step_size.accept,
            "mass_min": float(mass.min()),
            "mass_max": float(mass.max()),
        }

    def state_dict(self) -> dict[str, np.ndarray]:
        counters = np.array([self.done, self.warmup, self.steps, self.measuring])
        return {"counters": counters} | self.step_size.state_dict() | self.metric.state_dict()

    def load_state_dict(self, stored: dict[str, np.ndarray]) -> None:
        self.done, self.warmup, self.steps, measuring = (int(x) for x in stored["counters"])
        self.measuring = bool(measuring)
        self.step_size.load_state_dict(stored)
        self.metric.load_state_dict(stored)

    def _steps(self) -> int:
        steps = max(1, math.ceil(self.path / self.step_size.value))
        early = self.done < 0.1 * self.warmup
        return min(steps, self.EARLY_STEPS) if early else steps


def assemble(position: Tensor, loglik: Tensor, force: Tensor, scalars: Tensor | None = None) -> State:
    """A State from the likelihood's value and gradient; the standard normal prior is added here."""
    logp = loglik - 0.5 * (position.double() ** 2).sum((-2, -1))
    scalars = loglik.new_empty((len(loglik), 0)) if scalars is None else scalars
    return State(position, logp, force - position, loglik, force, scalars)


def acceptance(gain: Tensor) -> tuple[Tensor, Tensor]:
    """Metropolis acceptance (C,) of a gain in log-density, and where it was NaN or infinite: a rejection, and counted."""
    bad = ~torch.isfinite(gain)
    return torch.exp(gain.clamp(max=0.0)).masked_fill(bad, 0.0), bad


def select(moved: Tensor, new: State, old: State) -> State:
    """`new` for the chains that moved, `old` for the others, field by field."""
    fields = (
        torch.where(moved.view(-1, *[1] * (value.dim() - 1)), value, before)
        for value, before in zip(new, old, strict=True)
    )
    return State(*fields)


def _half_difference(new: Tensor, old: Tensor, mass: Tensor | None = None) -> Tensor:
    """(|new|^2 - |old|^2)/2 (C,) in float64, weighted by 1/mass, as sum (new - old)(new + old)/2."""
    product = (new - old).double() * (new + old).double()
    return 0.5 * (product if mass is None else product / mass.double()).sum((-2, -1))


def build(target: Collapsed, warmup: int, **options: Any) -> HMC:
    """The sampler for `sampling.run(..., sampler="hmc")`; options: accept, path, step."""
    return HMC(target, warmup=warmup, **options)
