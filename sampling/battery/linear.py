"""linear: the exact posterior of a linear network, by quadrature over Q: <D^2>, Q, a.f, residual and every <w_h w_k>."""

from __future__ import annotations

import time

from sampling import oracle
from sampling.battery import worlds
from sampling.battery.result import CheckResult, judge, mean_z
from sampling.battery.setting import Setting, components, sample
from sampling.battery.subject import Subject

NAME = "linear"
CONTROL = "T halved"
SCALARS = ("d2", "Q", "fbar_a", "residual")


def check(subject: Subject, setting: Setting) -> CheckResult:
    """Chain means, which are independent, against the exact values (physics.md section 5.1); Student's t."""
    begun, problem = time.monotonic(), worlds.linear()
    exact = oracle.linear(problem)
    found = sample(subject, problem, setting.count(400), setting.seed)
    scores = {name: mean_z(found.means(name), exact[name]) for name in SCALARS}
    truth = components(exact.ww)
    scores |= {name: mean_z(value, float(truth[name])) for name, value in components(found.ww).items()}
    return judge(NAME, scores, setting.false_alarm, "exact linear posterior, P = 6, N1 = 3, T = 0.3", begun)
