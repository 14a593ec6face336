"""importance: a non-linear posterior at P = 6, by self-normalised importance sampling from the prior."""

from __future__ import annotations

import time

from sampling import oracle
from sampling.battery import worlds
from sampling.battery.result import CheckResult, judge, mean_z
from sampling.battery.setting import Setting, components, sample
from sampling.battery.subject import Subject

NAME = "importance"
CONTROL = "T halved"
SCALARS = ("d2", "Q", "fbar_a", "residual", "norm_w")


def check(subject: Subject, setting: Setting) -> CheckResult:
    """Chain means against importance sampling (physics.md section 5.3), whose own error is carried."""
    begun, problem = time.monotonic(), worlds.importance()
    exact = oracle.importance(problem, draws=setting.count(1 << 18, 1 << 15), seed=setting.seed)
    found = sample(subject, problem, setting.count(400), setting.seed + 1)
    scores = {name: mean_z(found.means(name), exact[name], exact.se[name]) for name in SCALARS}
    truth, error = components(exact.ww), components(exact.ww_se)
    for name, value in components(found.ww).items():
        scores[name] = mean_z(value, float(truth[name]), float(error[name]))
    about = f"erf, P = 6, N1 = 6, T = 0.4; {exact.ess:.0f} effective prior draws"
    return judge(NAME, scores, setting.false_alarm, about, begun)
