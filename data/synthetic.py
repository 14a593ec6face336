"""Synthetic data: gaussian, clusters, linear teacher, and a network teacher drawn from the prior; numpy only.

Every random part has its own stream of the seed, so P = 50 is the beginning of P = 100 (unbalanced or per class), and
test rows never change training rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from data.errors import InputError
from data.problem import Dataset
from data.seeds import check_seed, stream
from data.selection import check_count
from data.teacher import SIGMA, Teacher, digest

Inputs = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def _signs(P: int, name: str, balanced: bool, rng: np.random.Generator) -> np.ndarray:
    if not balanced:
        return rng.choice([-1.0, 1.0], size=P)
    if P % 2:
        raise InputError(f"{name} = {P} is odd: with equal class sizes it must be even (or balanced=False)")
    return np.repeat([1.0, -1.0], P // 2)


def _dataset(
    name: str, rule: str, inputs: Inputs, P: int, N0: int, seed: int, balanced: bool, P_test: int, **parameters: Any
) -> Dataset:
    """Labels first, then X given the labels, from `inputs(signs, generator)`; the same law for the test rows."""
    check_count("P", P, 2)
    check_count("P_test", P_test, 0)
    y = _signs(P, "P", balanced, stream(seed, "labels"))
    test: dict[str, Any] = {}
    if P_test:
        y_test = _signs(P_test, "P_test", balanced, stream(seed, "test", "labels"))
        test = {"X_test": inputs(y_test, stream(seed, "test")), "y_test": y_test, "classes_test": y_test}
    return Dataset(
        inputs(y, stream(seed, "inputs")),
        y,
        y,
        name=name,
        provenance={
            "source": f"synthetic {name}: {rule}",
            "parameters": {"P": P, "N0": N0, "balanced": balanced, "P_test": P_test, **parameters},
            "seed": seed,
            "licence": "none needed: generated",
        },
        **test,
    )


def gaussian(P: int = 100, N0: int = 100, *, seed: int = 0, balanced: bool = True, P_test: int = 0) -> Dataset:
    """X (P, N0) ~ N(0, 1) entries, labels independent of X: P/2 of each sign, positives first, or fair coins.

    Raises InputError for a bad count or seed, or labels that came out all equal.
    """
    N0, seed = check_count("N0", N0, 1), check_seed("seed", seed)

    def inputs(signs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return rng.standard_normal((len(signs), N0))

    return _dataset("gaussian", "x ~ N(0, 1), y independent of x", inputs, P, N0, seed, balanced, P_test)


def clusters(
    P: int = 100, N0: int = 100, *, signal: float = 0.5, seed: int = 0, balanced: bool = True, P_test: int = 0
) -> Dataset:
    """Two Gaussian clouds: x = y signal m + N(0, 1), with m (N0,) of random signs, so |m|^2 = N0.

    C of physics.md section 1 then has y_mu y_nu signal^2/lambda0 on average between two patterns.
    Raises InputError for a bad count, seed or signal.
    """
    N0, seed = check_count("N0", N0, 1), check_seed("seed", seed)
    if not (math.isfinite(signal) and signal >= 0):
        raise InputError(f"signal = {signal}: it must be a finite number >= 0")
    m = stream(seed, "teacher").choice([-1.0, 1.0], size=N0)

    def inputs(signs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return signs[:, None] * (signal * m) + rng.standard_normal((len(signs), N0))

    rule = "x = y signal m + N(0, 1), m of random signs"
    return _dataset("clusters", rule, inputs, P, N0, seed, balanced, P_test, signal=signal)


def linear_teacher(P: int = 100, N0: int = 100, *, seed: int = 0, balanced: bool = True, P_test: int = 0) -> Dataset:
    """x ~ N(0, 1), y = sign(teacher . x) with a Gaussian teacher (N0,).

    Labels are drawn first and x is reflected to the side its label says: x and -x are equally likely, so this is the
    exact law of x given its label, also with equal class sizes. Raises InputError for a bad count or seed.
    """
    N0, seed = check_count("N0", N0, 1), check_seed("seed", seed)
    teacher = stream(seed, "teacher").standard_normal(N0)

    def inputs(signs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        x = rng.standard_normal((len(signs), N0))
        return x * (signs * np.where(x @ teacher >= 0, 1.0, -1.0))[:, None]

    rule = "x ~ N(0, 1), y = sign(teacher . x), teacher ~ N(0, 1)"
    return _dataset("linear-teacher", rule, inputs, P, N0, seed, balanced, P_test)


def network_teacher(
    P: int = 100,
    N0: int = 100,
    *,
    N1: int = 100,
    T: float = 0.1,
    lambda0: float = 1.0,
    lambda1: float = 1.0,
    activation: str = "erf",
    seed: int = 0,
    P_test: int = 0,
) -> Dataset:
    """Data of a network drawn from the prior: x ~ N(0, 1), y = f(x) + sqrt(T) N(0, 1), real-valued; classes = sign y.

    `Dataset.teacher` keeps w (N1, N0) and v (N1,). For Problem(dataset, N1, T, lambda0, lambda1, activation) with the
    same parameters they are an exact posterior draw (physics.md section 5.4); `teacher.weights(problem)` checks that.
    Classes cannot be balanced by choice of rows: that would condition on y and the draw would no longer be exact.
    Test rows: y_test = f + noise, classes_test its sign.

    Raises InputError for a bad count, seed or parameter, or labels of one sign only.
    """
    P, N0, N1 = check_count("P", P, 2), check_count("N0", N0, 1), check_count("N1", N1, 1)
    P_test, seed = check_count("P_test", P_test, 0), check_seed("seed", seed)
    for name, value in (("T", T), ("lambda0", lambda0), ("lambda1", lambda1)):
        if not (math.isfinite(value) and (value > 0 or (name == "T" and value == 0))):
            raise InputError(f"{name} = {value}: it must be a finite number {'>= 0' if name == 'T' else '> 0'}")
    if activation not in SIGMA:
        raise InputError(f"activation = {activation!r}: choose from {', '.join(SIGMA)}")
    w = stream(seed, "teacher").standard_normal((N1, N0)) / math.sqrt(lambda0)
    v = stream(seed, "readout").standard_normal(N1) / math.sqrt(lambda1)
    for array in (w, v):
        array.setflags(write=False)
    teacher = Teacher(w, v, float(T), float(lambda0), float(lambda1), activation)

    def draw(count: int, inputs: np.random.Generator, noise: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        X = inputs.standard_normal((count, N0))
        return X, teacher.f(X) + math.sqrt(T) * noise.standard_normal(count)

    X, y = draw(P, stream(seed, "inputs"), stream(seed, "noise"))
    test: dict[str, Any] = {}
    if P_test:
        X_test, y_test = draw(P_test, stream(seed, "test", "inputs"), stream(seed, "test", "noise"))
        test = {"X_test": X_test, "y_test": y_test, "classes_test": np.where(y_test >= 0, 1.0, -1.0)}
    parameters = {"P": P, "N0": N0, "P_test": P_test, "N1": N1, "T": T, "lambda0": lambda0, "lambda1": lambda1}
    return Dataset(
        X,
        y,
        np.where(y >= 0, 1.0, -1.0),
        name="network-teacher",
        provenance={
            "source": "synthetic network-teacher: x ~ N(0, 1), y = f(x) + sqrt(T) N(0, 1), f from the prior, classes = sign y",
            "parameters": {**parameters, "activation": activation},
            "seed": seed,
            "licence": "none needed: generated",
        },
        teacher=Teacher(w, v, float(T), float(lambda0), float(lambda1), activation, digest(X, y)),
        **test,
    )
