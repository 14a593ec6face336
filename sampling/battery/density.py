"""density: the log-density that the sampler works with, and the scalars it reports, against plain numpy at the same weights."""

from __future__ import annotations

import time

import numpy as np

from sampling import oracle
from sampling.battery import worlds
from sampling.battery.result import CheckResult, exactly
from sampling.battery.setting import Setting
from sampling.battery.subject import Subject

NAME = "density"
CONTROL = "T halved"
TOLERANCE = 1e-8  # rounding at these sizes is 1e-12; any wrong constant is above 1e-2


def check(subject: Subject, setting: Setting) -> CheckResult:
    """Differences of the log-density between points (its constant is free), and the scalars, on three small problems."""
    begun = time.monotonic()
    errors: dict[str, float] = {}
    for problem in (worlds.linear(), worlds.importance(), worlds.identities()):
        chains = subject.chains(problem, 6, setting.seed)
        state = chains.steps(chains.cold(), 2)
        w, v = chains.weights(state)
        y = np.broadcast_to(problem.dataset.y, (len(w), problem.P))
        if v is None:
            expected = oracle.scalars(problem, w)
            logp = expected["loglik"] - 0.5 * problem.lambda0 * (w**2).sum((1, 2))
        else:
            expected = oracle.own_scalars(problem, oracle.Weights(w, v), y)
            logp = (
                expected["loglik"] - 0.5 * problem.lambda0 * (w**2).sum((1, 2)) - 0.5 * problem.lambda1 * (v**2).sum(1)
            )
        seen = chains.observe(state)
        pairs = {"log p": (np.diff(chains.logp(state)), np.diff(logp))}
        pairs |= {name: (seen[name], value) for name, value in expected.items()}
        for name, (left, right) in pairs.items():
            error = float(np.abs(left - right).max() / np.abs(right).max())
            errors[name] = max(errors.get(name, 0.0), error) if not np.isnan(error) else error
    return exactly(NAME, errors, TOLERANCE, "log-density and scalars against numpy at 18 points", begun)
