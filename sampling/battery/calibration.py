"""calibration: the true network's rank among posterior draws is uniform (Talts et al. 2018; Cook, Gelman & Rubin 2006)."""

from __future__ import annotations

import math
import time

import numpy as np

from sampling.battery.replicates import DRAWS, SCALARS, replicates
from sampling.battery.result import CheckResult, judge, p_to_z
from sampling.battery.setting import Setting
from sampling.battery.subject import Subject

NAME = "calibration"
CONTROL = "T halved"


def check(subject: Subject, setting: Setting) -> CheckResult:
    """Network from the prior, labels from it, cold chain on the labels; rank of the true scalar among 31 thinned draws.

    Spread over its bin at random the rank is exactly uniform, so three statistics a scalar have known laws: the mean of u and of
    |2u - 1| (means of uniforms: the normal bound is conservative) and Kolmogorov-Smirnov (exact).
    """
    begun, found = time.monotonic(), replicates(subject, setting)
    rng = setting.rng(13)
    scores: dict[str, float] = {}
    for name in SCALARS:
        for which, score in rank_scores(found.true[name], found.drawn[name], rng).items():
            scores[f"{name} {which}"] = score
    about = f"{len(found.y)} data sets, {DRAWS} draws each, {found.thin} steps apart"
    return judge(NAME, scores, setting.false_alarm, about, begun)


def rank_scores(true: np.ndarray, drawn: np.ndarray, rng: np.random.Generator) -> dict[str, float]:
    """z of location, spread and shape of the ranks of true (n,) among drawn (n, L)."""
    from scipy.stats import kstest

    if not (np.isfinite(true).all() and np.isfinite(drawn).all()):
        return dict.fromkeys(("location", "spread", "shape"), math.nan)
    below = (drawn < true[:, None]).sum(1)
    ties = (drawn == true[:, None]).sum(1)
    rank = below + rng.integers(0, ties + 1)
    u = (rank + rng.random(len(true))) / (drawn.shape[1] + 1)
    root = math.sqrt(12 * len(u))
    return {
        "location": float((u.mean() - 0.5) * root),
        "spread": float((np.abs(2 * u - 1).mean() - 0.5) * root),
        "shape": p_to_z(float(kstest(u, "uniform", method="exact").pvalue)),
    }
