"""tempering: parallel tempering of hmc over a ladder of temperatures, for low T where one start can sit in the wrong phase."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from data.errors import InputError
from sampling import hmc
from sampling.posterior import Collapsed
from sampling.protocol import Info, Streams


class State(NamedTuple):
    """The coldest replica (C, N1, r) with its log-density and gradient, which is what is measured, and the whole ladder.

    rungs    (C, K, N1, r) positions, rung 0 the coldest;  logliks (C, K) and forces (C, K, N1, r) at each rung's own T
    walker   (C, K) which replica sits on each rung;  crossed (C, K) the last end that replica touched (1 hot, -1 cold, 0 none)
    swapped  (C, K - 1) swaps accepted so far;  tried (C, K - 1);  trips (C,) replicas that came from the hot end to the cold one
    parity   (C,) which pairs (even or odd) swap next;  accepted (C, K) acceptance of each rung's last hmc step
    scalars  (C, n) of the coldest replica, as in hmc
    """

    position: Tensor
    logp: Tensor
    grad: Tensor
    rungs: Tensor
    logliks: Tensor
    forces: Tensor
    walker: Tensor
    crossed: Tensor
    swapped: Tensor
    tried: Tensor
    trips: Tensor
    parity: Tensor
    accepted: Tensor
    scalars: Tensor


class Tempering:
    """Leaves the product over rungs k of p_{T_k}(g_k | y) invariant, each the collapsed posterior with its likelihood at T_k; so
    the coldest rung, at the problem's own T, has the posterior asked for.

    A step is one hmc step on every rung, then swaps of neighbours, even pairs and odd pairs by turns (the non-reversible scheme
    of Syed et al., J. R. Stat. Soc. B 84, 321 (2022)), accepted with min(1, exp(l_i(g_j) + l_j(g_i) - l_i(g_i) - l_j(g_j))), l_k
    the log-likelihood at T_k; the prior cancels. In warm-up the temperatures between T and `hottest` are moved until all neighbours
    reject equally often, and each rung learns its own step size and metric. `settings` reports the swap rates, the global barrier
    (the sum of rejection rates) and the round trips that the chains made.

    hottest  largest temperature (default 100 T, at least 1: there the posterior is near the prior)
    rungs    number of temperatures; swap rates below about 0.3 call for more
    """

    name = "tempering"
    biased = False

    def __init__(
        self,
        target: Collapsed,
        warmup: int = 400,
        rungs: int = 6,
        hottest: float | None = None,
        accept: float = 0.8,
        kicks: str = "auto",
    ):
        T = target.model.T
        hottest = max(1.0, 100.0 * T) if hottest is None else float(hottest)
        if rungs < 2 or hottest <= T:
            raise InputError(
                f"rungs = {rungs}, hottest = {hottest}: tempering needs two rungs or more and hottest > T = {T}"
            )
        self.target, self.warmup, self.done = target, warmup, 0
        self.temperatures = np.geomspace(T, hottest, rungs)
        self.kernels = [hmc.HMC(self._target(k), warmup=warmup, accept=accept, kicks=kicks) for k in range(rungs)]

    def _target(self, rung: int) -> Collapsed:
        model = self.target.model
        if rung == 0:
            return self.target
        T = float(self.temperatures[rung])
        other = Collapsed.__new__(Collapsed)
        other.model = dataclasses.replace(model, T=T, problem=model.problem.replace(T=T))
        other.device, other.dtype, other.instruments = model.device, model.dtype, self.target.instruments
        return other

    def init(self, position: Tensor) -> State:
        """Every rung begins at the chain's own start."""
        K = len(self.kernels)
        states = [kernel.init(position) for kernel in self.kernels]
        C = len(position)
        place: dict[str, Any] = {"device": position.device}
        zeros = torch.zeros((C, K - 1), dtype=torch.int64, **place)
        walker = torch.arange(K, **place).expand(C, K).clone()
        crossed = torch.zeros((C, K), dtype=torch.int64, **place)
        crossed[:, -1] = 1
        none = torch.zeros(C, dtype=torch.int64, **place)
        accepted = torch.ones((C, K), dtype=torch.float64, **place)
        return _assemble(states, walker, crossed, zeros, zeros.clone(), none, none.clone(), accepted)

    def step(self, state: State, streams: Streams) -> tuple[State, Info]:
        states, infos = [], []
        for rung, kernel in enumerate(self.kernels):
            moved, info = kernel.step(kernel.measured(_rung(state, rung)), streams)
            states.append(moved)
            infos.append(info)
        walker, crossed = state.walker.clone(), state.crossed.clone()
        swapped, tried = state.swapped.clone(), state.tried.clone()
        first = int(state.parity[0])
        for low in range(first, len(self.kernels) - 1, 2):
            take = self._swap(states, low, streams)
            tried[:, low] += 1
            swapped[:, low] += take
            for table in (walker, crossed):
                pair = table[:, low : low + 2]
                table[:, low : low + 2] = torch.where(take[:, None], pair.flip(1), pair)
        # A replica that touched the hot end and now arrives at the cold one has made half a round trip.
        arrived = crossed[:, 0] == 1
        crossed[:, 0] = -1
        crossed[:, -1] = 1
        accepted = torch.stack([one.accept for one in infos], 1)
        new = _assemble(states, walker, crossed, swapped, tried, state.trips + arrived, 1 - state.parity, accepted)
        pairs = len(range(first, len(self.kernels) - 1, 2))
        info = Info(
            accept=accepted.mean(1),
            moved=infos[0].moved,
            nan=torch.stack([one.nan for one in infos]).any(0),
            gradients=sum(one.gradients for one in infos) + 2 * pairs,
        )
        return new, info

    def _swap(self, states: list[hmc.State], low: int, streams: Streams) -> Tensor:
        """Try to exchange rungs low and low + 1 in every chain; (C,) bool of those that did. `states` is changed in place."""
        cold, hot = states[low], states[low + 1]
        at_cold, at_hot = self.kernels[low].evaluate(hot.position), self.kernels[low + 1].evaluate(cold.position)
        gain = at_cold.loglik + at_hot.loglik - cold.loglik - hot.loglik
        accept, _ = hmc.acceptance(gain)
        take = streams.uniform() < accept
        states[low], states[low + 1] = hmc.select(take, at_cold, cold), hmc.select(take, at_hot, hot)
        return take

    def adapt(self, state: State, info: Info) -> State:
        self.done += 1
        for rung, kernel in enumerate(self.kernels):
            kernel.adapt(_rung(state, rung), info._replace(accept=state.accepted[:, rung]))
        if self.done in {int(self.warmup * part) for part in (0.2, 0.4, 0.6)}:
            tried = state.tried.sum(0).cpu().numpy()
            rejected = 1.0 - state.swapped.sum(0).cpu().numpy() / np.maximum(tried, 1)
            state = self._respace(state, rejected)
        return state

    def _respace(self, state: State, rejected: np.ndarray) -> State:
        """Move the inner temperatures so that the rejections seen would be equal, and take the counts from there."""
        barrier = np.concatenate([[0.0], np.cumsum(np.maximum(rejected, 0.01))])
        even = np.linspace(0.0, barrier[-1], len(barrier))
        self.temperatures = np.exp(np.interp(even, barrier, np.log(self.temperatures)))
        states = []
        for rung, kernel in enumerate(self.kernels):
            if rung:
                kernel.target = self._target(rung)
            states.append(kernel.init(state.rungs[:, rung]))
        zeros = torch.zeros_like(state.swapped)
        return _assemble(
            states, state.walker, state.crossed, zeros, zeros.clone(), state.trips * 0, state.parity, state.accepted
        )

    def finish(self) -> None:
        for rung, kernel in enumerate(self.kernels):
            kernel.finish()
            kernel.measuring = rung == 0  # only the coldest rung is measured

    def observe(self, state: State) -> dict[str, Tensor]:
        return self.kernels[0].observe(_rung(state, 0))

    def report(self, state: State) -> dict[str, Any]:
        """JSON-able: swap rate of each pair of neighbours, global barrier, and half round trips per chain."""
        rates = (state.swapped.sum(0) / state.tried.sum(0).clamp_min(1)).cpu().numpy()
        return {
            "swap_rates": rates.round(4).tolist(),
            "barrier": float((1.0 - rates).sum()),
            "hot_to_cold_trips": state.trips.cpu().numpy().tolist(),
        }

    def settings(self) -> dict[str, Any]:
        return {
            "temperatures": self.temperatures.tolist(),
            "step_sizes": [kernel.step_size.value for kernel in self.kernels],
            "gradients": [kernel.gradients for kernel in self.kernels],
        }

    def state_dict(self) -> dict[str, np.ndarray]:
        stored = {"temperatures": self.temperatures.copy(), "tempering_done": np.array(self.done)}
        for rung, kernel in enumerate(self.kernels):
            stored |= {f"rung{rung}_{name}": value for name, value in kernel.state_dict().items()}
        return stored

    def load_state_dict(self, stored: dict[str, np.ndarray]) -> None:
        self.temperatures, self.done = stored["temperatures"].copy(), int(stored["tempering_done"])
        for rung, kernel in enumerate(self.kernels):
            prefix = f"rung{rung}_"
            kernel.load_state_dict({k.removeprefix(prefix): v for k, v in stored.items() if k.startswith(prefix)})
            kernel.target = self._target(rung)


def _rung(state: State, rung: int) -> hmc.State:
    scalars = state.scalars if rung == 0 else None
    return hmc.assemble(state.rungs[:, rung], state.logliks[:, rung], state.forces[:, rung], scalars)


def _assemble(
    states: list[hmc.State],
    walker: Tensor,
    crossed: Tensor,
    swapped: Tensor,
    tried: Tensor,
    trips: Tensor,
    parity: Tensor,
    accepted: Tensor,
) -> State:
    return State(
        position=states[0].position,
        logp=states[0].logp,
        grad=states[0].grad,
        rungs=torch.stack([one.position for one in states], 1),
        logliks=torch.stack([one.loglik for one in states], 1),
        forces=torch.stack([one.force for one in states], 1),
        walker=walker,
        crossed=crossed,
        swapped=swapped,
        tried=tried,
        trips=trips,
        parity=parity,
        accepted=accepted,
        scalars=states[0].scalars,
    )


def build(target: Collapsed, warmup: int, **options: Any) -> Tempering:
    """The sampler for `sampling.run(..., sampler="tempering")`; options: rungs, hottest, accept, kicks."""
    return Tempering(target, warmup=warmup, **options)
