"""Chains side by side on CPU cores: a kernel wrapped so that groups of chains run in threads of their own.

Batched Cholesky factorisations and small products do not scale over torch's own threads (1.3-fold on two cores at P = 100), while
chains are independent: one lane a core, each with serial torch, comes near the number of cores. torch releases the
interpreter's lock inside its operations. A chain's numbers come from its own generator, so they do not depend on the lanes.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sampling.protocol import Info, Kernel, Streams


def _cut(chains: int, lanes: int) -> list[slice]:
    edges = np.linspace(0, chains, min(lanes, chains) + 1).round().astype(int)
    return [slice(int(low), int(high)) for low, high in itertools.pairwise(edges)]


def _part(state: Any, cut: slice) -> Any:
    return type(state)(*(field[cut] for field in state))


def _join(states: list[Any]) -> Any:
    return type(states[0])(*(torch.cat(fields) for fields in zip(*states, strict=True)))


class LaneKernel:
    """A kernel whose steps run by lanes. Adaptation sees all chains at once, as without lanes; so does `init`."""

    def __init__(self, kernel: Kernel, lanes: int):
        self.kernel, self.lanes = kernel, lanes
        self.pool = ThreadPoolExecutor(max_workers=lanes, thread_name_prefix="chains")
        self.name, self.biased = kernel.name, kernel.biased

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kernel, name)

    def init(self, position: Tensor) -> Any:
        return self.kernel.init(position)

    def step(self, state: Any, streams: Streams) -> tuple[Any, Info]:
        cuts = _cut(streams.chains, self.lanes)
        parts = [streams.part(cut) for cut in cuts]
        run: Callable[..., Any] = lambda cut, part: self.kernel.step(_part(state, cut), part)  # noqa: E731
        results = list(self.pool.map(run, cuts, parts))
        streams.shared.set_state(parts[0].shared.get_state())
        infos = [info for _, info in results]
        info = Info(
            accept=torch.cat([one.accept for one in infos]),
            moved=torch.cat([one.moved for one in infos]),
            nan=torch.cat([one.nan for one in infos]),
            gradients=infos[0].gradients,
        )
        return _join([new for new, _ in results]), info

    def observe(self, state: Any) -> dict[str, Tensor]:
        parts = list(self.pool.map(lambda cut: self.kernel.observe(_part(state, cut)), _cut(len(state[0]), self.lanes)))
        return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}

    def accumulate(self, state: Any, sums: dict[str, Tensor]) -> None:
        """The target's `accumulate` by lanes, each on its own chains' part of the sums."""
        accumulate = self.kernel.target.accumulate
        if not sums:  # the first draw creates them
            accumulate(state.position, state.grad, sums)
            return

        def run(cut: slice) -> None:
            # Slices are views: what is added to them is added to the sums.
            accumulate(state.position[cut], state.grad[cut], {name: value[cut] for name, value in sums.items()})

        list(self.pool.map(run, _cut(len(state[0]), self.lanes)))

    def adapt(self, state: Any, info: Info) -> Any:
        return self.kernel.adapt(state, info)

    def finish(self) -> None:
        self.kernel.finish()

    def settings(self) -> dict[str, Any]:
        return self.kernel.settings() | {"lanes": self.lanes}

    def state_dict(self) -> dict[str, np.ndarray]:
        return self.kernel.state_dict()

    def load_state_dict(self, stored: dict[str, np.ndarray]) -> None:
        self.kernel.load_state_dict(stored)

    def close(self) -> None:
        """End the threads."""
        self.pool.shutdown()
