"""invariances: changes of units, rotations and relabellings that leave the posterior what it was (physics.md section 5.6)."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from data.problem import Problem
from sampling.battery import worlds
from sampling.battery.result import CheckResult, difference_z, judge
from sampling.battery.setting import Setting, sample
from sampling.battery.subject import Subject

NAME = "invariances"
CONTROL = "lambdas swapped"
ROUNDING = 1e-8
UNITS_Y, UNITS_X = 1.7, 0.6


def check(subject: Subject, setting: Setting) -> CheckResult:
    """At the level of the log-density, point by point and exact to rounding; and at the level of means, with all changes at once.

    A density that is not invariant to rounding counts as |z| = 38, an invariant one as 0.
    """
    begun, problem = time.monotonic(), worlds.importance()
    rng = setting.rng(14)
    scores = _density(subject, problem, setting, rng)
    rotation = np.linalg.qr(rng.normal(size=(problem.N0, problem.N0)))[0]
    other = _changed(problem, rotation=rotation, order=rng.permutation(problem.P), y=UNITS_Y, x=UNITS_X)
    draws = setting.count(250)
    left = sample(subject, problem, draws, setting.seed)
    right = sample(subject, other, draws, setting.seed + 41)
    for name, power in {"d2": 0, "Q": 0, "fbar_a": 1, "residual": 2, "norm_w": 0}.items():
        scores[f"<{name}>"] = difference_z(left.means(name), right.means(name) / UNITS_Y**power)
    return judge(
        NAME, scores, setting.false_alarm, "five changes of the log-density, and means under all at once", begun
    )


def _changed(
    problem: Problem,
    rotation: np.ndarray | None = None,
    order: np.ndarray | None = None,
    y: float = 1.0,
    x: float = 1.0,
) -> Problem:
    """(y, T, lambda1) -> (c y, c^2 T, lambda1/c^2), (X, lambda0) -> (cX, c^2 lambda0), X -> X O, patterns in another order."""
    data = problem.dataset
    order = np.arange(problem.P) if order is None else order
    X = data.X if rotation is None else data.X @ rotation
    changed = data.replace(X=x * X[order], y=y * data.y[order], classes=data.classes[order])
    return problem.replace(
        dataset=changed, T=y**2 * problem.T, lambda1=problem.lambda1 / y**2, lambda0=x**2 * problem.lambda0
    )


def _density(subject: Subject, problem: Problem, setting: Setting, rng: np.random.Generator) -> dict[str, float]:
    """Differences of log p between the same six networks, before and after each change."""
    n = 6
    w = rng.normal(size=(n, problem.N1, problem.N0)) / math.sqrt(problem.lambda0)
    v = rng.normal(size=(n, problem.N1)) / math.sqrt(problem.lambda1)

    def logp(changed: Problem, w: np.ndarray, v: np.ndarray) -> np.ndarray:
        chains: Any = subject.chains(changed, n, setting.seed)
        return np.diff(chains.logp(chains.move(chains.cold(), w, v)))

    rotation = np.linalg.qr(rng.normal(size=(problem.N0, problem.N0)))[0]
    units, signs = rng.permutation(problem.N1), rng.choice([-1.0, 1.0], problem.N1)
    here = logp(problem, w, v)
    pairs = {
        "units of y": logp(_changed(problem, y=UNITS_Y), w, UNITS_Y * v),
        "units of X": logp(_changed(problem, x=UNITS_X), w / UNITS_X, v),
        "rotation": logp(_changed(problem, rotation=rotation), w @ rotation, v),
        "order of patterns": logp(_changed(problem, order=rng.permutation(problem.P)), w, v),
        "order and signs of units": logp(problem, (signs[:, None] * w)[:, units], (signs * v)[:, units]),
    }
    scale = np.abs(here).max()
    return {name: 0.0 if np.abs(there - here).max() <= ROUNDING * scale else 38.0 for name, there in pairs.items()}
