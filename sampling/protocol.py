"""The shape that every target and every sampler has: what `sampling.chains` may rely on, and nothing more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor


class Info(NamedTuple):
    """What one step reports of itself, each field (C,) with one entry a chain.

    accept   acceptance probability (for gibbs: share of units that moved; 1 for unadjusted dynamics)
    moved    whether the proposal was taken (bool)
    nan      whether an energy was NaN or infinite, which is a rejection (bool)
    gradients  gradient evaluations (or their equivalent) that a chain spent in this step, one int for all chains
    """

    accept: Tensor
    moved: Tensor
    nan: Tensor
    gradients: int


@runtime_checkable
class Target(Protocol):
    """A log-density over batched positions, with what is measured at a position."""

    chains_axis: int  # the leading axis of a position counts chains: always 0
    device: torch.device
    dtype: torch.dtype

    def initial(self, starts: list[str], streams: Streams) -> Tensor:
        """A position for each entry of `starts` ("prior", "aligned", ...), chains leading."""

    def value_and_grad(self, position: Tensor) -> tuple[Tensor, Tensor]:
        """log-density (C,) in float64 up to a constant, and its gradient, shaped like the position."""

    def observe(self, position: Tensor, grad: Tensor | None = None) -> dict[str, Tensor]:
        """Per-draw scalars (C,) float64, by the names of `sampling.observables`; `grad` is reused where it is at hand."""

    def accumulate(self, position: Tensor, grad: Tensor, sums: dict[str, Tensor]) -> None:
        """Add this draw's matrices, chain by chain (C, ...), to `sums`, creating them when absent."""


class Kernel(Protocol):
    """A Markov kernel on a Target. Each sampler file has State, init, step; adaptation happens in warm-up only."""

    name: str
    target: Any  # the Target it was built on
    biased: bool  # True where the invariant density is not the target (unadjusted Langevin)

    def init(self, position: Tensor) -> Any:
        """State at a position; caches log-density and gradient. Every State has fields position, logp, grad."""

    def step(self, state: Any, streams: Streams) -> tuple[Any, Info]:
        """One transition of every chain; pure in `state`, draws its noise from `streams`."""

    def observe(self, state: Any) -> dict[str, Tensor]:
        """The target's scalars (C,) at a state; a kernel that has worked them out on the way returns those."""

    def adapt(self, state: Any, info: Info) -> Any:
        """Called after each warm-up step: learns step size and metric; returns the state to go on from."""

    def finish(self) -> None:
        """End of warm-up: settings are frozen from here on, so that the draws come from one fixed kernel."""

    def settings(self) -> dict[str, Any]:
        """JSON-able adapted settings for the manifest (step size, path length, metric summary, ...)."""

    def state_dict(self) -> dict[str, np.ndarray]:
        """Everything that adaptation has learned, as arrays, for a checkpoint; `load_state_dict` takes it back."""

    def load_state_dict(self, stored: dict[str, np.ndarray]) -> None: ...


class Streams:
    """Random streams: one generator a chain on the CPU, so that a chain does not depend on how many run beside it.

    On a CUDA device one generator serves all chains (a loop over chains would be launch-bound); `shared` is the stream of
    what all chains have in common, such as the jitter of the step size. Seeded by numpy.random.SeedSequence(seed).spawn.
    """

    def __init__(self, seed: int, chains: int, device: torch.device | str = "cpu", first: int = 0):
        self.device = torch.device(device)
        sequence = np.random.SeedSequence(seed)
        children = sequence.spawn(first + chains + 1)
        words = [int(child.generate_state(2, np.uint64)[0] >> np.uint64(1)) for child in children]
        self.shared = torch.Generator().manual_seed(words[0])
        if self.device.type == "cpu":
            self.each = [torch.Generator().manual_seed(word) for word in words[1 + first :]]
        else:
            self.each = [torch.Generator(self.device).manual_seed(words[1 + first])]
        self.chains = chains

    def normal(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """Standard normals of shape (C, *shape)."""
        if self.device.type != "cpu":
            return torch.randn((self.chains, *shape), generator=self.each[0], dtype=dtype, device=self.device)
        out = torch.empty((self.chains, *shape), dtype=dtype)
        for row, generator in zip(out, self.each, strict=True):
            torch.randn(shape, generator=generator, dtype=dtype, out=row)
        return out

    def uniform(self, shape: tuple[int, ...] = ()) -> Tensor:
        """Uniforms on [0, 1) of shape (C, *shape), float64."""
        if self.device.type != "cpu":
            size = (self.chains, *shape)
            return torch.rand(size, generator=self.each[0], dtype=torch.float64, device=self.device)
        return torch.stack([torch.rand(shape, generator=one, dtype=torch.float64) for one in self.each])

    def part(self, cut: slice) -> Streams:
        """The streams of some chains, sharing their generators, with a copy of the common stream at its present state."""
        if self.device.type != "cpu":
            raise ValueError("only CPU streams can be parted: on a CUDA device one generator serves all chains")
        other = Streams.__new__(Streams)
        other.device, other.each = self.device, self.each[cut]
        other.chains = len(other.each)
        other.shared = torch.Generator()
        other.shared.set_state(self.shared.get_state())
        return other

    def chosen(self, rows: Sequence[int]) -> Streams:
        """The streams of some chains; these and the common stream are shared, not copied."""
        other = Streams.__new__(Streams)
        other.device, other.shared, other.chains = self.device, self.shared, len(rows)
        other.each = [self.each[row] for row in rows] if self.device.type == "cpu" else self.each
        return other

    def common(self) -> float:
        """One uniform on [0, 1) that all chains share."""
        return float(torch.rand((), generator=self.shared, dtype=torch.float64))

    def state_dict(self) -> dict[str, np.ndarray]:
        """The generators' states, for a checkpoint."""
        states = {"shared": self.shared.get_state().numpy()}
        return states | {f"each{i}": one.get_state().cpu().numpy() for i, one in enumerate(self.each)}

    def load_state_dict(self, stored: dict[str, np.ndarray]) -> None:
        self.shared.set_state(torch.from_numpy(stored["shared"].copy()))
        for i, one in enumerate(self.each):
            one.set_state(torch.from_numpy(stored[f"each{i}"].copy()))
