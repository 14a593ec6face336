"""A sampler under examination: one interface for the torch kernels and for NUTS, with labels of its own for every chain."""

from __future__ import annotations

import dataclasses
import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from data.errors import InputError
from data.problem import Problem
from sampling.posterior import Collapsed, Joint
from sampling.protocol import Streams
from sampling.settings import DENSITY, WARMUP, samplers

MANY = 64  # chains up to which each has a generator of its own, as in a run; a loop over more would cost more than the sampler
REFRESHED = (
    "position",
    "logp",
    "grad",
    "loglik",
    "force",
    "scalars",
)  # of a State: what follows from position and labels


class Chains(Protocol):
    """Chains of one sampler on one problem, vectorised. States are opaque; arrays are NumPy with chains leading."""

    joint: bool

    def cold(self) -> Any:
        """State at draws from the prior."""

    def warm(self, state: Any) -> Any:
        """The sampler's own warm-up, adaptation frozen at its end."""

    def steps(self, state: Any, n: int) -> Any:
        """n transitions."""

    def move(self, state: Any, w: np.ndarray, v: np.ndarray) -> Any:
        """The state moved to weights w (C, N1, N0), v (C, N1), with what is independent of them (momenta, other rungs) kept."""

    def relabel(self, state: Any, y: np.ndarray) -> Any:
        """The state on other labels (C, P)."""

    def observe(self, state: Any) -> dict[str, np.ndarray]:
        """name -> (C,), what the sampler reports of a draw."""

    def weights(self, state: Any) -> tuple[np.ndarray, np.ndarray | None]:
        """w (C, N1, N0) on the directions that the data see, and v (C, N1), or None on the collapsed density."""

    def logp(self, state: Any) -> np.ndarray:
        """(C,) the log-density that the sampler works with, up to a constant."""


@dataclass(frozen=True)
class Subject:
    """A sampler by name with its options, and how it is spoiled, if it is (`mutations`).

    problem_map  the problem that the sampler takes the given one for;  target_map, kernel_map  wrap what it is built from
    """

    name: str
    options: dict[str, Any] = field(default_factory=dict)
    problem_map: Callable[[Problem], Problem] | None = None
    target_map: Callable[[Any], Any] | None = None
    kernel_map: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        if self.name not in samplers():
            raise InputError(f"sampler = {self.name!r} is unknown ({', '.join(samplers())})")

    @property
    def key(self) -> tuple[Any, ...]:
        """What makes two subjects the same."""
        options = tuple(sorted((name, repr(value)) for name, value in self.options.items()))
        return self.name, options, self.problem_map, self.target_map, self.kernel_map

    @property
    def joint(self) -> bool:
        """Whether it samples (w, v) rather than the collapsed density of w."""
        return self.options.get("density", DENSITY.get(self.name, "joint")) == "joint"

    def chains(self, problem: Problem, count: int, seed: int, y: np.ndarray | None = None) -> Chains:
        """`count` chains on the problem, or on labels y (C, P), a row for each chain."""
        problem = problem if self.problem_map is None else self.problem_map(problem)
        if self.name == "nuts":
            return _NutsChains(self, problem, count, seed, y)
        return _KernelChains(self, problem, count, seed, y)


class _OneStream(Streams):
    """Streams of many chains from one generator."""

    def __init__(self, seed: int, chains: int):
        super().__init__(seed, 1)
        self.chains = chains

    def normal(self, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        return torch.randn((self.chains, *shape), generator=self.each[0], dtype=dtype)

    def uniform(self, shape: tuple[int, ...] = ()) -> Tensor:
        return torch.rand((self.chains, *shape), generator=self.each[0], dtype=torch.float64)


class _KernelChains:
    """A torch kernel, stepped as `sampling.chains` steps it."""

    def __init__(self, subject: Subject, problem: Problem, count: int, seed: int, y: np.ndarray | None):
        self.joint, self.count = subject.joint, count
        target: Any = (Joint if subject.joint else Collapsed).of(problem)
        target = target if subject.target_map is None else subject.target_map(target)
        self.target, self.reduction = target, target.model.reduction
        self.lambda0, self.lambda1 = problem.lambda0, problem.lambda1
        if y is not None:
            self._set_labels(y)
        options = {name: value for name, value in subject.options.items() if name != "density"}
        self.warmup = int(options.pop("warmup", WARMUP[subject.name]))
        kernel = importlib.import_module(f"sampling.{subject.name}").build(target, self.warmup, **options)
        self.kernel = kernel if subject.kernel_map is None else subject.kernel_map(kernel)
        self.streams = Streams(seed, count) if count <= MANY else _OneStream(seed, count)

    def _set_labels(self, y: np.ndarray) -> None:
        self.target.model = dataclasses.replace(self.target.model, y=torch.tensor(y, dtype=self.target.dtype))

    def cold(self) -> Any:
        return self.kernel.init(self.target.initial(["prior"] * self.count, self.streams))

    def warm(self, state: Any) -> Any:
        for _ in range(self.warmup):
            state, info = self.kernel.step(state, self.streams)
            state = self.kernel.adapt(state, info)
        self.kernel.finish()
        return state

    def steps(self, state: Any, n: int) -> Any:
        for _ in range(n):
            state, _ = self.kernel.step(state, self.streams)
        return state

    def move(self, state: Any, w: np.ndarray, v: np.ndarray) -> Any:
        position = torch.tensor(math.sqrt(self.lambda0) * w @ self.reduction.V)
        if self.joint:
            position = torch.cat([position, torch.tensor(math.sqrt(self.lambda1) * v).unsqueeze(-1)], -1)
        return self._refresh(state, position)

    def relabel(self, state: Any, y: np.ndarray) -> Any:
        self._set_labels(y)
        return self._refresh(state, state.position)

    def _refresh(self, state: Any, position: Tensor) -> Any:
        """What follows from the position and the labels made afresh; the rest of the state (momentum, other rungs) kept."""
        fresh = self.kernel.init(position)
        changes = {name: getattr(fresh, name) for name in REFRESHED if name in state._fields}
        if "rungs" in state._fields:
            for name in ("rungs", "logliks", "forces"):
                stack = getattr(state, name).clone()
                stack[:, 0] = getattr(fresh, name)[:, 0]
                changes[name] = stack
        return state._replace(**changes)

    def observe(self, state: Any) -> dict[str, np.ndarray]:
        return {name: value.numpy() for name, value in self.kernel.observe(state).items()}

    def weights(self, state: Any) -> tuple[np.ndarray, np.ndarray | None]:
        position = state.position.numpy()
        g = position[..., :-1] if self.joint else position
        w = g @ self.reduction.V.T / math.sqrt(self.lambda0)
        return w, position[..., -1] / math.sqrt(self.lambda1) if self.joint else None

    def logp(self, state: Any) -> np.ndarray:
        return state.logp.numpy()


class _NutsChains:
    """NumPyro's NUTS; what warm-up learned lives in its state."""

    def __init__(self, subject: Subject, problem: Problem, count: int, seed: int, y: np.ndarray | None):
        from sampling.nuts import Nuts

        self.joint, self.count, self.seed, self.problem = subject.joint, count, seed, problem
        options = dict(subject.options)
        self.warmup = int(options.pop("warmup", 300))
        # Labels always go chain by chain, so that every check of one shape shares a compilation.
        y = np.broadcast_to(problem.dataset.y, (count, problem.P)) if y is None else y
        self.sampler = Nuts(problem, self.warmup, y, **options)

    def cold(self) -> Any:
        rng = np.random.default_rng([self.seed, 1])
        w = rng.normal(size=(self.count, self.problem.N1, self.problem.N0)) / math.sqrt(self.problem.lambda0)
        v = rng.normal(size=(self.count, self.problem.N1)) / math.sqrt(self.problem.lambda1)
        return self.sampler.init(w, v, self.seed)

    def warm(self, state: Any) -> Any:
        return self.steps(state, self.warmup)

    def steps(self, state: Any, n: int) -> Any:
        for _ in range(n):
            state = self.sampler.step(state)
        return state

    def move(self, state: Any, w: np.ndarray, v: np.ndarray) -> Any:
        return self.sampler.settle(state, w, v)

    def relabel(self, state: Any, y: np.ndarray) -> Any:
        self.sampler.data = self.sampler.data._replace(y=y)
        return self.sampler.settle(state)

    def observe(self, state: Any) -> dict[str, np.ndarray]:
        return self.sampler.observe(state)

    def weights(self, state: Any) -> tuple[np.ndarray, np.ndarray | None]:
        return np.asarray(state.z["w"]), np.asarray(state.z["v"]) if self.joint else None

    def logp(self, state: Any) -> np.ndarray:
        return -np.asarray(state.potential_energy)
