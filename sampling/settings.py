"""What decides the numbers of a run, validated once; and which module samples under which name."""

from __future__ import annotations

import difflib
import hashlib
import importlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from data.errors import InputError
from data.problem import Problem
from sampling.held_out import digest
from sampling.model import Model
from sampling.posterior import Collapsed, Joint

# Warm-up steps that each sampler is given when none are asked for: what its adaptation and its slowest start need.
WARMUP = {"hmc": 300, "tempering": 400, "gibbs": 100, "underdamped": 1500, "mala": 2000, "langevin": 2000}
DENSITY = {"hmc": "collapsed", "tempering": "collapsed", "gibbs": "collapsed", "underdamped": "collapsed"}
DTYPES = {"float64": torch.float64, "float32": torch.float32}


def samplers() -> list[str]:
    """Names that `run` takes; each is a module of this package with `build`, imported when it is asked for."""
    return [*WARMUP, "nuts"]


@dataclass(frozen=True)
class Settings:
    """What decides the numbers of a run; a checkpoint is only resumed under equal settings."""

    sampler: str
    chains: int
    seed: int
    warmup: int
    thin: int
    starts: tuple[str, ...]
    device: str
    dtype: str
    temperatures: tuple[float, ...]
    max_kept: int
    options: dict[str, Any] = field(default_factory=dict)

    def describe(self, problem: Problem) -> dict[str, Any]:
        """As plain JSON, with the problem's fingerprint, and that of its test patterns where it has any."""
        test = digest(problem.dataset)
        more = {} if test is None else {"held_out": test}
        return json.loads(json.dumps(vars(self) | {"problem": problem.fingerprint} | more))

    def key(self, problem: Problem) -> str:
        """sha256 of `describe`: the identity of the run's numbers."""
        return hashlib.sha256(json.dumps(self.describe(problem), sort_keys=True).encode()).hexdigest()

    @classmethod
    def of(
        cls,
        *,
        sampler: str,
        chains: int,
        seed: int,
        warmup: int | None,
        thin: int,
        starts: Sequence[str],
        device: str,
        dtype: str,
        temperatures: Sequence[float] | None,
        max_kept: int,
        options: dict[str, Any],
    ) -> Settings:
        """Validated, with defaults filled in. Raises InputError that names the setting and the mend."""
        if sampler not in samplers():
            near = difflib.get_close_matches(str(sampler), samplers(), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise InputError(f"sampler = {sampler!r} is unknown ({', '.join(samplers())}){hint}")
        if dtype not in DTYPES:
            raise InputError(f"dtype = {dtype!r}: choose float64 or float32")
        warmup = WARMUP.get(sampler, 500) if warmup is None else warmup
        whole("chains", chains, 1)
        whole("thin", thin, 1)
        whole("seed", seed, 0)
        whole("warmup", warmup, 0)
        whole("max_kept", max_kept, 4)
        if max_kept % 2:
            raise InputError(f"max_kept = {max_kept}: it must be even, since entries are merged in pairs")
        _usable(device)
        if isinstance(starts, str) or not starts:
            raise InputError(f"starts = {starts!r}: give a list with at least one kind of start")
        grid = tuple(float(T) for T in (() if temperatures is None else temperatures))
        if any(not 0 < T < float("inf") for T in grid):
            raise InputError(f"temperatures = {list(grid)}: each must be a finite number > 0")
        return cls(
            sampler=sampler,
            chains=int(chains),
            seed=int(seed),
            warmup=int(warmup),
            thin=int(thin),
            starts=tuple(str(starts[c % len(starts)]) for c in range(int(chains))),
            device=device,
            dtype=dtype,
            temperatures=grid,
            max_kept=int(max_kept),
            options={name: _plain(name, value) for name, value in options.items()},
        )


def whole(name: str, value: Any, least: int) -> None:
    """Raise InputError unless `value` is a whole number >= least."""
    try:
        wrong = int(value) != value or value < least
    except (TypeError, ValueError, OverflowError):
        wrong = True
    if wrong:
        raise InputError(f"{name} = {value}: it must be a whole number >= {least}")


def _usable(device: str) -> None:
    """Raise InputError unless torch can put a tensor there."""
    kind = device.split(":")[0]
    if kind not in ("cpu", "cuda"):
        raise InputError(f"device = {device!r}: choose cpu, cuda or cuda:N")
    if kind == "cpu":
        return
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"device = {device!r} cannot be used here ({reason}); take cpu") from error


def _plain(name: str, value: Any) -> Any:
    """An option as plain JSON, so that it has an identity and can be put in the manifest."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{name} = {value!r}: an option must be a finite number, a text, a truth value or a list"
        ) from error


def build(problem: Problem, settings: Settings) -> Any:
    """The kernel of the settings on its target: collapsed, or joint for mala and langevin unless density says otherwise."""
    options = dict(settings.options)
    density = options.pop("density", DENSITY.get(settings.sampler, "joint"))
    if density not in ("joint", "collapsed"):
        raise InputError(f"density = {density!r}: choose joint or collapsed")
    if density == "joint" and settings.sampler in DENSITY:
        raise InputError(f"{settings.sampler} samples the collapsed density only; take density=collapsed")
    model = Model.of(problem, settings.device, DTYPES[settings.dtype])
    target = Joint(model) if density == "joint" else Collapsed(model)
    module = importlib.import_module(f"sampling.{settings.sampler}")
    try:
        return module.build(target, max(settings.warmup, 1), **options)
    except TypeError as error:
        raise InputError(f"{settings.sampler} does not take these options: {sorted(options)} ({error})") from error
