"""Samplers spoiled on purpose, each by one mistake that has been made before: the battery must catch every one of them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from data.errors import InputError
from data.problem import Problem
from sampling.battery.subject import Subject
from sampling.posterior import Collapsed, Joint
from sampling.protocol import Info, Streams

GRADIENT = ("hmc", "mala", "underdamped", "langevin", "tempering")
METROPOLIS = ("hmc", "mala", "underdamped", "tempering")


def half_temperature(problem: Problem) -> Problem:
    """T/2 for T."""
    return problem.replace(T=problem.T / 2)


def swapped_precisions(problem: Problem) -> Problem:
    """lambda0 for lambda1 and lambda1 for lambda0."""
    return problem.replace(lambda0=problem.lambda1, lambda1=problem.lambda0)


def without_root_N0(problem: Problem) -> Problem:
    """h = w.x, the 1/sqrt(N0) missing."""
    data = problem.dataset
    return problem.replace(dataset=data.replace(X=data.X * math.sqrt(problem.N0)))


class _FlatCollapsed(Collapsed):
    """The collapsed density without its Gaussian prior: |g|^2/2 is given back to the log-likelihood."""

    def _evaluate(self, g: Tensor, measure: bool) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        loglik, force, scalars = super()._evaluate(g, measure)
        return loglik + 0.5 * (g.double() ** 2).sum((-2, -1)), force + g, scalars

    def kick(self, g: Tensor) -> Tensor:
        return super().kick(g) + g


class _FlatJoint(Joint):
    """The joint density without the prior of the first layer; the readout keeps its own."""

    def likelihood(self, position: Tensor) -> tuple[Tensor, Tensor]:
        loglik, force = super().likelihood(position)
        first = position.clone()
        first[..., -1] = 0.0
        return loglik + 0.5 * (first.double() ** 2).sum((-2, -1)), force + first


def without_first_prior(target: Any) -> Any:
    """The target with the first layer's prior dropped, as weight decay forgotten in the first layer does."""
    flat = _FlatJoint if isinstance(target, Joint) else _FlatCollapsed
    return flat(target.model)


def short_trajectories(kernel: Any) -> Any:
    """At most 8 steps a trajectory: under a flat prior weights drift off for ever, and the step that is then wanted shrinks without end."""
    for one in getattr(kernel, "kernels", [kernel]):
        if hasattr(one, "_steps"):
            one._steps = lambda steps=one._steps: min(8, steps())
    return kernel


class _Wrapped:
    """A kernel with its step replaced; all else is the kernel's."""

    def __init__(self, kernel: Any):
        self.kernel = kernel

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kernel, name)


class _NeverRejects:
    """Streams whose uniforms are 0, below every acceptance probability."""

    def __init__(self, streams: Streams):
        self.streams = streams

    def __getattr__(self, name: str) -> Any:
        return getattr(self.streams, name)

    def uniform(self, shape: tuple[int, ...] = ()) -> Tensor:
        return torch.zeros_like(self.streams.uniform(shape))


class AlwaysAccepts(_Wrapped):
    """Every proposal is taken."""

    def step(self, state: Any, streams: Streams) -> tuple[Any, Info]:
        return self.kernel.step(state, _NeverRejects(streams))


class DropsRejections(_Wrapped):
    """A rejected move is not counted as a draw: the chain tries again until it moves (at most 20 times)."""

    def step(self, state: Any, streams: Streams) -> tuple[Any, Info]:
        state, info = self.kernel.step(state, streams)
        moved = info.moved
        for _ in range(20):
            if bool(moved.all()):
                break
            new, again = self.kernel.step(state, streams)
            take = ~moved & again.moved
            fields = (
                torch.where(take.view(-1, *[1] * (value.dim() - 1)), value, old)
                for value, old in zip(new, state, strict=True)
            )
            state, moved = type(state)(*fields), moved | take
        return state, info


def _spoil(**maps: Any) -> Callable[[Subject], Subject]:
    return lambda subject: dataclasses.replace(subject, **maps)


# name -> (how a subject is spoiled, samplers it can be done to: those that have the part which is spoiled)
MUTATIONS: dict[str, tuple[Callable[[Subject], Subject], tuple[str, ...] | None]] = {
    "T halved": (_spoil(problem_map=half_temperature), None),
    "lambdas swapped": (_spoil(problem_map=swapped_precisions), None),
    "1/sqrt(N0) missing": (_spoil(problem_map=without_root_N0), None),
    "first-layer prior dropped": (_spoil(target_map=without_first_prior, kernel_map=short_trajectories), GRADIENT),
    "every proposal accepted": (_spoil(kernel_map=AlwaysAccepts), METROPOLIS),
    "rejections not counted": (_spoil(kernel_map=DropsRejections), METROPOLIS),
}


def mutations(sampler: str) -> list[str]:
    """Names of the mutations that can be made to a sampler."""
    return [name for name, (_, where) in MUTATIONS.items() if where is None or sampler in where]


def mutate(subject: Subject, name: str) -> Subject:
    """The subject with one mistake. Raises InputError for a name that is none, or that this sampler has no part for."""
    if name not in mutations(subject.name):
        raise InputError(f"mutation = {name!r}: {subject.name} can have {', '.join(mutations(subject.name))}")
    return MUTATIONS[name][0](subject)
