"""What a check returns, and how many statistics become one verdict at a stated false-alarm rate."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

CAP = 38.0  # |z| beyond which the tail of a normal is no longer a floating-point number


@dataclass(frozen=True)
class CheckResult:
    """One item of the battery.

    statistic    largest |z| of the check's statistics: two-sided p-values as normal deviates, so that all checks read alike
    threshold    |z| from which the check fails: the false-alarm rate shared equally by the statistics (Bonferroni)
    false_alarm  probability that a correct sampler fails this check; 0 where nothing in it is random
    detail       which statistic was the largest, of how many, and on what problem
    """

    name: str
    passed: bool
    statistic: float
    threshold: float
    false_alarm: float
    detail: str
    seconds: float


def judge(
    name: str, scores: Mapping[str, float], false_alarm: float, about: str, begun: float, names_shown: int = 3
) -> CheckResult:
    """The verdict on |z| scores by name. A score that is not a number fails the check."""
    from scipy.stats import norm

    threshold = float(norm.isf(0.5 * false_alarm / len(scores)))
    order = sorted(scores, key=lambda key: -math.inf if math.isnan(scores[key]) else -abs(scores[key]))
    worst = scores[order[0]]
    passed = bool(all(abs(value) <= threshold for value in scores.values()))
    shown = ", ".join(f"{key} {scores[key]:+.1f}" for key in order[:names_shown])
    detail = f"{about}; largest z of {len(scores)}: {shown}"
    return CheckResult(name, passed, abs(worst), threshold, false_alarm, detail, time.monotonic() - begun)


def exactly(name: str, errors: Mapping[str, float], tolerance: float, about: str, begun: float) -> CheckResult:
    """The verdict on deterministic errors by name, each against the same tolerance (a bound on rounding, not on luck)."""
    order = sorted(errors, key=lambda key: -math.inf if math.isnan(errors[key]) else -errors[key])
    passed = bool(all(value <= tolerance for value in errors.values()))
    shown = ", ".join(f"{key} {errors[key]:.1e}" for key in order[:3])
    detail = f"{about}; largest relative error of {len(errors)}: {shown}"
    return CheckResult(name, passed, errors[order[0]], tolerance, 0.0, detail, time.monotonic() - begun)


def mean_z(values: np.ndarray, expected: float = 0.0, se: float = 0.0, rounding: float = 1e-10) -> float:
    """z of the mean of independent values (n,) against `expected`, itself known to within `se`.

    Student's t on n - 1 degrees of freedom, whatever the autocorrelation was inside of what each value averages. A spread that is
    rounding (below `rounding` of the size of the values) counts as that much, so that an exact identity is no 0/0.
    """
    values = np.asarray(values, dtype=np.float64)
    if not np.isfinite(values).all():
        return math.nan
    floor = rounding * max(abs(expected), float(np.abs(values).max()), 1e-300)
    spread = math.sqrt(values.var(ddof=1) / len(values) + se**2 + floor**2)
    return _normal_score((values.mean() - expected) / spread, len(values) - 1)


def difference_z(left: np.ndarray, right: np.ndarray) -> float:
    """z of the difference of two means of independent values, Welch's t."""
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        return math.nan
    parts = left.var(ddof=1) / len(left), right.var(ddof=1) / len(right)
    dof = sum(parts) ** 2 / (parts[0] ** 2 / (len(left) - 1) + parts[1] ** 2 / (len(right) - 1))
    return _normal_score((left.mean() - right.mean()) / math.sqrt(sum(parts)), dof)


def p_to_z(p: float) -> float:
    """|z| of a two-sided p-value."""
    from scipy.special import ndtri

    return min(CAP, -float(ndtri(0.5 * p))) if p > 0 else CAP


def _normal_score(t: float, dof: float) -> float:
    from scipy.special import stdtr

    return math.copysign(p_to_z(2.0 * float(stdtr(dof, -abs(t)))), t)


def autocorrelation_time(values: np.ndarray) -> float:
    """Integrated autocorrelation time of (chains, n) in steps, pooled over chains, each around its own mean.

    Geyer's initial positive sequence; centring on chain means takes (2 W + 1)/n of the sum away, which is given back. Good to 20%
    or so, enough to choose a thinning by.
    """
    n = values.shape[1]
    centred = values - values.mean(1, keepdims=True)
    spectrum = np.abs(np.fft.rfft(centred, 2 * n, axis=1)) ** 2
    covariance = np.fft.irfft(spectrum.mean(0), 2 * n)[:n] / np.arange(n, 0, -1)
    if not covariance[0] > 0:
        return 1.0
    rho = covariance / covariance[0]
    pairs = rho[: n - n % 2].reshape(-1, 2).sum(1)
    negative = np.flatnonzero(pairs <= 0)
    count = max(1, int(negative[0]) if len(negative) else len(pairs))
    tau = 2.0 * float(pairs[:count].sum()) - 1.0
    return max(1.0, tau / max(1.0 - (4 * count + 1) / n, 0.1))
