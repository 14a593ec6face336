"""Several data subsets: paired differences with random-effects mean, spread and prediction interval, and the verdict over all."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.stats import chi2
from scipy.stats import t as student

from compare.verdict import ALPHA, MARGIN
from data.errors import InputError


@dataclass(frozen=True)
class RandomEffects:
    """Differences d_i = theta_i + e_i over n subsets, theta_i ~ N(mean, tau^2), e_i of known standard error.

    mean, se   random-effects mean and its Hartung-Knapp standard error;  low, high  its interval at `level` (Student's t, n - 1)
    tau        spread between subsets (Paule-Mandel), beyond the error of each: the quenched disorder of the difference
    tau_low, tau_high  its interval (Q profile)
    predicted_low, predicted_high  where the difference of one more subset will lie, at `level`
    q, p       heterogeneity statistic and its p-value under tau = 0
    """

    n: int
    mean: float
    se: float
    low: float
    high: float
    tau: float
    tau_low: float
    tau_high: float
    predicted_low: float
    predicted_high: float
    q: float
    p: float
    level: float


def random_effects(differences: np.ndarray, errors: np.ndarray, level: float = 0.95) -> RandomEffects:
    """Combine paired differences (n,) with standard errors (n,): theory and measurement were made on the same subset.

    Mean and spread by Paule & Mandel (1982); interval of the mean by Hartung & Knapp (Stat. Med. 20, 3875 (2001)), which keeps
    its level with ten subsets; interval of tau by the Q profile (Viechtbauer, Stat. Med. 26, 37 (2007)); prediction interval with
    n - 2 degrees of freedom (Higgins et al., J. R. Stat. Soc. A 172, 137 (2009)).
    Errors that are all 0 (closed forms) leave the plain sample mean and spread, with q and p undefined.
    Raises InputError for fewer than three subsets, or for an error of 0 beside others.
    """
    d, s = np.asarray(differences, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    n = len(d)
    if n < 3:
        raise InputError(f"a spread between subsets needs three of them or more; there are {n}")
    if not 0 < level < 1:
        raise InputError(f"level = {level}: it lies between 0 and 1")
    if d.shape == s.shape and np.isfinite(d).all() and not s.any():
        return _exact(d, level)
    if d.shape != s.shape or not np.isfinite(d).all() or not (s > 0).all():
        raise InputError("each difference needs a finite value and a standard error > 0")
    tau, mean, se = _combine(d, s)
    tail = (1.0 - level) / 2.0
    tau_low = math.sqrt(_root(lambda tau2: _heterogeneity(tau2, d, s), float(chi2.isf(tail, n - 1)), d))
    tau_high = math.sqrt(_root(lambda tau2: _heterogeneity(tau2, d, s), float(chi2.ppf(tail, n - 1)), d))
    half = float(student.isf(tail, n - 1)) * se
    reach = float(student.isf(tail, n - 2)) * math.hypot(tau, se)
    q = _heterogeneity(0.0, d, s)
    return RandomEffects(
        n, mean, se, mean - half, mean + half, tau, tau_low, tau_high, mean - reach, mean + reach, q,
        float(chi2.sf(q, n - 1)), level,
    )  # fmt: skip


def _exact(d: np.ndarray, level: float) -> RandomEffects:
    """Values without errors: the limit of the estimators above, which are then Student's and the chi^2 of a normal sample."""
    n, mean, tau = len(d), float(d.mean()), float(d.std(ddof=1))
    tail, se = (1.0 - level) / 2.0, tau / math.sqrt(n)
    tau_low, tau_high = (tau * math.sqrt((n - 1) / float(quantile(tail, n - 1))) for quantile in (chi2.isf, chi2.ppf))
    half, reach = float(student.isf(tail, n - 1)) * se, float(student.isf(tail, n - 2)) * math.hypot(tau, se)
    return RandomEffects(
        n, mean, se, mean - half, mean + half, tau, tau_low, tau_high, mean - reach, mean + reach, math.nan, math.nan, level
    )  # fmt: skip


def _heterogeneity(tau2: float, d: np.ndarray, s: np.ndarray) -> float:
    """Cochran's Q of differences d with errors s, were the spread between subsets tau2."""
    weight = 1.0 / (s**2 + tau2)
    return float(weight @ (d - (weight @ d) / weight.sum()) ** 2)


def _combine(d: np.ndarray, s: np.ndarray) -> tuple[float, float, float]:
    """(tau, mean, se): Paule-Mandel spread, random-effects mean, Hartung-Knapp error."""
    n = len(d)
    tau2 = _root(lambda tau2: _heterogeneity(tau2, d, s), n - 1.0, d)
    weight = 1.0 / (s**2 + tau2)
    mean = float((weight @ d) / weight.sum())
    return math.sqrt(tau2), mean, math.sqrt(_heterogeneity(tau2, d, s) / ((n - 1) * float(weight.sum())))


@dataclass(frozen=True)
class Across:
    """One level against the measurement over n data subsets, theory and chains paired on each.

    outcome     "agrees": the mean difference over the population of subsets lies within margin times the mean effect measured - prior
                (two one-sided tests at level alpha); "differs": outside it, at level alpha two-sided; else "inconclusive"
    difference  random effects of measured - predicted;  relative  the same of (measured - predicted)/(measured - prior), subset by
                subset, or None where the effect of some subset is not resolved
    A single subset may lie outside the margin although the mean is inside: see the prediction interval.
    """

    outcome: str
    reason: str
    difference: RandomEffects
    relative: RandomEffects | None
    margin: float
    alpha: float


def across(
    measured: np.ndarray,
    measured_se: np.ndarray,
    predicted: np.ndarray,
    predicted_se: np.ndarray | float = 0.0,
    *,
    prior: np.ndarray,
    margin: float = MARGIN,
    alpha: float = ALPHA,
) -> Across:
    """The verdict over subsets: (n,) measured values and errors, predictions, and priors N1 a^T K a, each on its own subset.

    As for one cell (`compare.verdict`), the margin has the error and the spread of the effects, so the tests are made on the
    random-effects means of difference -+ margin effect, by Student's t with n - 1 degrees of freedom (Hartung-Knapp).
    Raises InputError for fewer than three subsets, a zero or missing error, or a margin or alpha out of range.
    """
    if not 0 < margin < 1 or not 0 < alpha < 0.5:
        raise InputError(f"margin = {margin} lies between 0 and 1, alpha = {alpha} between 0 and 1/2")
    m, sm, p, sp, prior = np.broadcast_arrays(
        *(np.asarray(one, dtype=np.float64) for one in (measured, measured_se, predicted, predicted_se, prior))
    )
    difference = random_effects(m - p, np.hypot(sm, sp))
    effect = m - prior
    overall = random_effects(effect, sm, level=1.0 - alpha)
    sign = 1.0 if overall.mean >= 0 else -1.0
    relative = None
    if (np.abs(effect) > 4.0 * sm).all():  # a ratio over a denominator near 0 has no mean
        ratio = (m - p) / effect
        relative = random_effects(ratio, np.hypot((1.0 - ratio) * sm, sp) / np.abs(effect))
    if overall.low <= 0.0 <= overall.high:
        reason = "the mean effect measured - prior is not resolved, so there is no margin to test against"
        return Across("inconclusive", reason, difference, relative, margin, alpha)

    def t_value(shift: float) -> float:
        """Of the mean of difference + shift |effect|."""
        _, mean, se = _combine(m - p + shift * sign * effect, np.hypot((1.0 + shift * sign) * sm, sp))
        return mean / se if se > 0 else math.copysign(math.inf, mean)

    above, below = t_value(-margin), t_value(margin)
    one_sided, two_sided = (float(student.isf(tail, len(m) - 1)) for tail in (alpha, alpha / 2.0))
    if above < -one_sided and below > one_sided:
        outcome, reason = "agrees", "the mean difference lies inside the margin"
    elif above > two_sided or below < -two_sided:
        outcome, reason = "differs", "the mean difference lies outside the margin"
    else:
        outcome, reason = (
            "inconclusive",
            "the spread and the errors are too large to tell inside the margin from outside",
        )
    return Across(outcome, reason, difference, relative, margin, alpha)


def _root(heterogeneity: Callable[[float], float], goal: float, d: np.ndarray) -> float:
    """tau^2 >= 0 where the statistic, which falls with tau^2, reaches `goal`; 0 where it never was above it."""
    if heterogeneity(0.0) <= goal:
        return 0.0
    high = max(float(d.var()), np.finfo(float).tiny)
    while heterogeneity(high) > goal:
        high *= 4.0
    return float(brentq(lambda tau2: heterogeneity(tau2) - goal, 0.0, high, xtol=1e-14 * high))
