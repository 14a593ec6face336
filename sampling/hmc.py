"""hmc: Hamiltonian Monte Carlo on the collapsed density, rotating exactly under the Gaussian prior (the default sampler)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from data.errors import InputError
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

    A trajectory alternates kicks by the likelihood's gradient with rotations, the exact flow of the Gaussian prior with mass m_k, at
    frequency 1/sqrt(m_k) for coordinate k (splitting of Shahbaba et al., Stat. Comput. 24, 339 (2014)). Its step is the two-stage
    scheme of least energy error, kick b, rotate 1/2, kick 1 - 2b, rotate 1/2, kick b (McLachlan, SIAM J. Sci. Comput. 16, 151 (1995);
    Blanes et al., SIAM J. Sci. Comput. 36, A1556 (2014)); on digits it gives 15 to 20% more draws a gradient than leapfrog. A
    Metropolis test on the energy follows. e, the angle of a rotation, is jittered by +-20% in every step, together for all
    chains, and is dual-averaged to the wanted acceptance in warm-up; m_k is the pooled mean curvature. Both are frozen by
    `finish`. There is no cap on the length once the early warm-up is over: short trajectories have looked converged and were wrong.

    path   length of a trajectory in radians. A quarter turn (pi/2) makes a Gaussian coordinate's draws independent; <D^2>, a
           sum of squares, costs fewest gradients per effective draw at about 1.2 (digits, T = 0.01 to 0.1; cos^2 = 0.13).
    kicks  "auto": kicks inside a trajectory in float32, where that agrees with float64 to 1e-3 at the warm-up's positions ("exact":
           never). Energies, draws and the kicks at both ends are in the target's own precision, so only the acceptance can suffer.
    """

    name = "hmc"
    biased = False
    JITTER = 0.2
    EARLY_STEPS = 4  # longest trajectory while chains still fall towards the typical set and e is unknown
    KICKS: tuple[float, ...] = (0.21178, 1 - 2 * 0.21178, 0.21178)  # shares of a step, a rotation between each two
    CLOSE = 1e-3  # relative error of float32 kicks that is let pass

    def __init__(
        self,
        target: Collapsed,
        warmup: int = 300,
        accept: float = 0.8,
        path: float = 1.2,
        step: float = 0.2,
        kicks: str = "auto",
    ):
        if kicks not in ("auto", "exact"):
            raise InputError(f"kicks = {kicks!r}: choose auto or exact")
        self.target, self.warmup, self.path = target, warmup, path
        self.may_be_single, self.single = kicks == "auto", False
        self.metric = PooledMetric(target.model.r, target.device)
        # Never more than a quarter turn: a half turn gives -g, whose <D^2> is the same.
        self.step_size = StepSize(step, accept, largest=math.pi / 2 / (len(self.KICKS) - 1))
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
        return select(moved, end, state), Info(accept=accept, moved=moved, nan=bad, gradients=self.gradients)

    def measured(self, state: State) -> State:
        """The state with its scalars, which a state from warm-up lacks."""
        return self.evaluate(state.position) if self.measuring and not state.scalars.shape[1] else state

    def jittered(self, streams: Streams) -> float:
        """This step's e: the step size +-20%, common to all chains so that they stay one batch."""
        return self.step_size.value * (1.0 + self.JITTER * (2.0 * streams.common() - 1.0))

    def trajectory(self, state: State, p0: Tensor, e: float, steps: int) -> tuple[State, Tensor, Tensor]:
        """`steps` steps from (state, p0): the end, its momentum, and log-density gained (C,) float64.

        Volume-preserving, and reversible under p -> -p, so exp(min(0, gain)) is its Metropolis acceptance.
        """
        mass = self.metric.mass.to(p0.dtype)
        root = mass.sqrt()
        cosine, sine = torch.cos(e / root), torch.sin(e / root)
        there, back = sine / root, sine * root
        length = (len(self.KICKS) - 1) * e  # of a step
        # The last kick of a step and the first of the next are at one position: they are one.
        shares = [*self.KICKS[1:-1], self.KICKS[-1] + self.KICKS[0]] * steps
        g, p = state.position, torch.add(p0, state.force, alpha=self.KICKS[0] * length)
        for share in shares[:-1]:
            g, p = torch.addcmul(cosine * g, there, p), torch.addcmul(cosine * p, back, g, value=-1.0)
            p.add_(self.inner_force(g), alpha=share * length)
        g, p = torch.addcmul(cosine * g, there, p), torch.addcmul(cosine * p, back, g, value=-1.0)
        end = self.evaluate(g)
        p.add_(end.force, alpha=self.KICKS[-1] * length)
        # Each part as a difference formed before it is summed, in float64: no two large energies are subtracted.
        gain = end.loglik - state.loglik - _half_difference(g, state.position) - _half_difference(p, p0, mass)
        return end, p, gain

    def inner_force(self, g: Tensor) -> Tensor:
        """What kicks inside a trajectory: the likelihood's gradient, in float32 where `adapt` found that accurate."""
        return self.target.kick(g) if self.single else self.target.likelihood(g)[1]

    def close_in_single(self, state: State) -> bool:
        """Whether float32 kicks agree with the forces at hand, to CLOSE in every chain."""
        exact = state.force
        error = (self.target.kick(state.position) - exact).norm(dim=(-2, -1)) / exact.norm(dim=(-2, -1))
        return bool((error < self.CLOSE).all())  # NaN compares false

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
            self.single = self.may_be_single and self.close_in_single(state)
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
            "gradients": self.gradients,
            "kicks": "float32" if self.single else str(self.target.dtype).removeprefix("torch."),
            "path": self.path,
            "target_acceptance": self.step_size.accept,
            "mass_min": float(mass.min()),
            "mass_max": float(mass.max()),
        }

    def state_dict(self) -> dict[str, np.ndarray]:
        counters = np.array([self.done, self.warmup, self.steps, self.measuring, self.single])
        return {"counters": counters} | self.step_size.state_dict() | self.metric.state_dict()

    def load_state_dict(self, stored: dict[str, np.ndarray]) -> None:
        self.done, self.warmup, self.steps, measuring, single = (int(x) for x in stored["counters"])
        self.measuring, self.single = bool(measuring), bool(single)
        self.step_size.load_state_dict(stored)
        self.metric.load_state_dict(stored)

    @property
    def gradients(self) -> int:
        """Gradients that a trajectory costs."""
        return self.steps * (len(self.KICKS) - 1)

    def _steps(self) -> int:
        steps = max(1, round(self.path / (self.step_size.value * (len(self.KICKS) - 1))))
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
    """The sampler for `sampling.run(..., sampler="hmc")`; options: accept, path, step, kicks."""
    return HMC(target, warmup=warmup, **options)
