"""teacher: chains that start at the network which made the labels are stationary from step 0, and cold chains come to meet them."""

from __future__ import annotations

import time

import numpy as np

from sampling.battery.replicates import SCALARS, replicates
from sampling.battery.result import CheckResult, judge, mean_z
from sampling.battery.setting import Setting
from sampling.battery.subject import Subject

NAME = "teacher"
CONTROL = "T halved"


def check(subject: Subject, setting: Setting) -> CheckResult:
    """The true network is an exact posterior draw (physics.md section 5.4), so what the chain does to it must leave its law alone.

    Over many data sets, paired differences to the truth after 1 step, after one and after four autocorrelation-safe spacings,
    and of the cold chain's last draws; each has mean 0. Logarithms keep the differences near normal.
    """
    begun, found = time.monotonic(), replicates(subject, setting)
    state = found.chains.move(found.state, found.truth.w, found.truth.v)
    before = _logs(found.true)
    scores: dict[str, float] = {}
    done = 0
    for target in sorted({1, found.thin, 4 * found.thin}):
        state = found.chains.steps(state, target - done)
        done = target
        after = _logs(found.chains.observe(state))
        scores |= {f"{name} after {done}": mean_z(after[name] - before[name]) for name in before}
    cold = {name: np.mean([_logs({name: draw})[name] for draw in found.drawn[name].T], axis=0) for name in SCALARS}
    scores |= {f"{name} from cold": mean_z(cold[name] - before[name]) for name in before}
    about = f"{len(found.y)} data sets made by networks from the prior, erf, P = 5, N1 = 4, T = 0.3"
    return judge(NAME, scores, setting.false_alarm, about, begun)


def _logs(scalars: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Logarithms, but for the log-likelihood, which is one."""
    return {name: value if name == "loglik" else np.log(value) for name, value in scalars.items() if name in SCALARS}
