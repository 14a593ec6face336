"""geweke: labels and network drawn in turn have the joint prior as their law (Geweke, J. Am. Stat. Assoc. 99, 799 (2004))."""

from __future__ import annotations

import math
import time

import numpy as np

from sampling import oracle
from sampling.battery import worlds
from sampling.battery.result import CheckResult, judge, mean_z
from sampling.battery.setting import Setting, stride
from sampling.battery.subject import Subject

NAME = "geweke"
CONTROL = "T halved"
NOT_FOR = {
    "tempering": "its other rungs depend on the labels, whose law given all rungs is not known; calibration takes its place"
}
PRIOR_DRAWS = 1 << 15


def check(subject: Subject, setting: Setting) -> CheckResult:
    """y ~ p(y | network) by numpy, then one step of the sampler given y, from an exact draw of both: stationary from step 0.

    Averages of each chain over its rounds are independent; they are compared with prior draws, which know nothing of the sampler.
    Logarithms keep the tails of the averages near normal; squares about the prior mean look at spreads.
    """
    begun, problem = time.monotonic(), worlds.replicated()
    rng, n = setting.rng(11), setting.replicas(subject, 256)
    start = oracle.prior(problem, n, rng)
    chains = subject.chains(problem, n, setting.seed, oracle.labels(problem, start, rng))
    state = chains.warm(chains.cold())

    truth = oracle.prior(problem, PRIOR_DRAWS, rng)
    y = oracle.labels(problem, truth, rng)
    known = oracle.own_scalars(problem, truth, y) if subject.joint else oracle.scalars(problem, truth.w, y)
    raw = functions(problem.a, known, y)
    centre = {name: float(value.mean()) for name, value in raw.items()}
    expected = with_squares(raw, centre)

    start = oracle.prior(problem, n, rng)
    y = oracle.labels(problem, start, rng)
    state = chains.move(chains.relabel(state, y), start.w, start.v)
    rounds, skipped = setting.count(160, 40), 10
    total: dict[str, np.ndarray] = {}
    for turn in range(rounds + skipped):
        w, v = chains.weights(state)
        v = rng.normal(size=w.shape[:2]) / math.sqrt(problem.lambda1) if v is None else v
        y = oracle.labels(problem, oracle.Weights(w, v), rng)
        state = chains.steps(chains.relabel(state, y), stride(subject))
        if turn >= skipped:  # a wrong sampler starts right, too, and needs some rounds to go wrong
            row = with_squares(functions(problem.a, chains.observe(state), y), centre)
            total = {name: total.get(name, 0.0) + value / rounds for name, value in row.items()}
    scores = {}
    for name, value in expected.items():
        scores[name] = mean_z(total[name], float(value.mean()), float(value.std() / math.sqrt(PRIOR_DRAWS)))
    about = f"{n} chains of {rounds} rounds, erf, P = 5, N1 = 4, T = 0.3"
    return judge(NAME, scores, setting.false_alarm, about, begun)


def functions(a: np.ndarray, scalars: dict[str, np.ndarray], y: np.ndarray) -> dict[str, np.ndarray]:
    """Functions (n,) of network and labels that do not depend on the order or the signs of units."""
    return {
        "log d2": np.log(scalars["d2"]),
        "log Q": np.log(scalars["Q"]),
        "log residual": np.log(scalars["residual"]),
        "log norm_w": np.log(scalars["norm_w"]),
        "loglik": scalars["loglik"],
        "log |y|^2": np.log((y**2).sum(1)),
        "(a.f)(a.y)": scalars["fbar_a"] * (y @ a),
    }


def with_squares(values: dict[str, np.ndarray], centre: dict[str, float]) -> dict[str, np.ndarray]:
    """The same and their squares about `centre`."""
    return values | {f"{name}, squared": (value - centre[name]) ** 2 for name, value in values.items()}
