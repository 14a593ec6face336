"""pairwise: on one problem beyond exact answers, a sampler agrees with every other exact sampler."""

from __future__ import annotations

import time
from collections.abc import Sequence

from sampling.battery import worlds
from sampling.battery.result import CheckResult, difference_z, judge
from sampling.battery.setting import Sample, Setting, components, sample
from sampling.battery.subject import Subject

NAME = "pairwise"
CONTROL = "T halved"
EXACT = ("hmc", "gibbs", "mala", "underdamped", "tempering", "nuts")
PARTNER_OPTIONS = {"nuts": {"density": "collapsed"}}  # as exact as the joint density, and a third of its time
SCALARS = ("d2", "Q", "fbar_a", "residual", "norm_w")


def check(subject: Subject, setting: Setting, partners: Sequence[str] = EXACT) -> CheckResult:
    """Welch's t between chain means, for each partner but itself, each scalar and each <w_h w_k>."""
    begun = time.monotonic()
    mine = _sample(subject, setting, own=True)
    partners = [name for name in partners if name != subject.name]
    scores: dict[str, float] = {}
    for partner in partners:
        theirs = _sample(Subject(partner, PARTNER_OPTIONS.get(partner, {})), setting, own=False)
        for name in SCALARS:
            scores[f"{partner} {name}"] = difference_z(mine.means(name), theirs.means(name))
        left, right = components(mine.ww), components(theirs.ww)
        for name in left:
            scores[f"{partner} {name}"] = difference_z(left[name], right[name])
    about = f"erf, P = 16, N1 = 8, T = 0.15, against {', '.join(partners)}"
    return judge(NAME, scores, setting.false_alarm, about, begun)


def _sample(subject: Subject, setting: Setting, own: bool) -> Sample:
    """Partners are sampled once for all subjects of a setting, on seeds of their own."""
    key = ("pairwise", subject.name)
    if own or key not in setting.shared:
        seed = setting.seed + (0 if own else 50 + EXACT.index(subject.name))
        found = sample(subject, worlds.pairwise(), setting.count(250), seed)
        if own:
            return found
        setting.shared[key] = found
    return setting.shared[key]
