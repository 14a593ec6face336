"""tempering: parallel tempering of hmc over a ladder of temperatures, for low T where one start can sit in the wrong phase."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from data.errors import InputError
from sampling import hmc
from sampling.anneal import hottest as hottest_of
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
    the log-likelihood at T_k; the prior cancels. In warm-up the ladder is chosen from the swap rates, three times: the global
    barrier B, the sum of the rejection rates, says how many rungs there should be (2 B + 1, where half of the swaps are accepted: the
    optimum of Syed et al., section 5), and the temperatures between T and `hottest` are moved until all neighbours reject equally
    often. Each rung learns its own step size and metric. `report` gives the swap rates, the barrier and the replicas that came
    from the hot end to the cold one.

    hottest  largest temperature (default 100 T, at least 1: there the posterior is near the prior)
    rungs    number of temperatures; chosen as above when not given, MOST at most
    """

    name = "tempering"
    biased = False
    FIRST, FEWEST, MOST = 6, 3, 32  # rungs to begin with, and the bounds of the choice

    def __init__(
        self,
        target: Collapsed,
        warmup: int = 400,
        rungs: int | None = None,
        hottest: float | None = None,
        accept: float = 0.8,
        kicks: str = "auto",
    ):
        T = target.model.T
        top = hottest_of(T) if hottest is None else float(hottest)
        self.choosing = rungs is None
        rungs = self.FIRST if rungs is None else int(rungs)
        if rungs < 2 or top <= T:
            raise InputError(
                f"rungs = {rungs}, hottest = {top}: tempering needs two rungs or more and hottest > T = {T}"
            )
        self.target, self.warmup, self.done = target, warmup, 0
        self.accept, self.kicks = accept, kicks
        self.temperatures = np.geomspace(T, top, rungs)
        self.kernels: list[hmc.HMC] = []
        self._fit()

    def _fit(self) -> None:
        """As many kernels as there are temperatures, each on its own; those at hand are kept, with what they have learned."""
        options: dict[str, Any] = {"warmup": self.warmup, "accept": self.accept, "kicks": self.kicks}
        del self.kernels[len(self.temperatures) :]
        for rung, kernel in enumerate(self.kernels):
            kernel.target = self._target(rung)
        for rung in range(len(self.kernels), len(self.temperatures)):
            self.kernels.append(hmc.HMC(self._target(rung), **options))

    def _target(self, rung: int) -> Collapsed:
        if rung == 0:
            return self.target
        return Collapsed(self.target.model.at(float(self.temperatures[rung])))

    def init(self, position: Tensor) -> State:
        """Every rung begins at the chain's own start."""
        return self._begin([kernel.init(position) for kernel in self.kernels])

    def _begin(self, states: list[hmc.State], parity: Tensor | None = None) -> State:
        """A ladder at these states, with nothing counted yet."""
        place: dict[str, Any] = {"device": states[0].position.device}
        C, K = len(states[0].position), len(states)
        zeros = torch.zeros((C, K - 1), dtype=torch.int64, **place)
        crossed = torch.zeros((C, K), dtype=torch.int64, **place)
        crossed[:, -1] = 1
        none = torch.zeros(C, dtype=torch.int64, **place)
        return _assemble(
            states,
            walker=torch.arange(K, **place).expand(C, K).clone(),
            crossed=crossed,
            swapped=zeros,
            tried=zeros.clone(),
            trips=none,
            parity=none.clone() if parity is None else parity,
            accepted=torch.ones((C, K), dtype=torch.float64, **place),
        )

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
        """Choose the ladder from the rejection rates (K - 1,) seen: how many rungs, and inner temperatures that would reject equally
        often. A new rung takes replicas and settings of the nearest old one; all counts begin anew."""
        barrier = np.concatenate([[0.0], np.cumsum(np.maximum(rejected, 0.01))])
        count = len(barrier)
        if self.choosing:
            count = int(np.clip(round(2.0 * barrier[-1]) + 1, self.FEWEST, self.MOST))
        old, learned = np.log(self.temperatures), [kernel.state_dict() for kernel in self.kernels]
        new = np.interp(np.linspace(0.0, barrier[-1], count), barrier, old)
        nearest = abs(new[:, None] - old).argmin(1)
        self.temperatures = np.exp(new)
        self.temperatures[0] = self.target.model.T
        self._fit()
        states = []
        for kernel, rung in zip(self.kernels, nearest, strict=True):
            kernel.load_state_dict(learned[rung])
            states.append(kernel.init(state.rungs[:, rung]))
        return self._begin(states, state.parity)

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
            "temperatures": self.temperatures.tolist(),
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
        self._fit()
        for rung, kernel in enumerate(self.kernels):
            prefix = f"rung{rung}_"
            kernel.load_state_dict({k.removeprefix(prefix): v for k, v in stored.items() if k.startswith(prefix)})


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
