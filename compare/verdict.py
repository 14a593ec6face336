"""Equivalence of a measurement and a prediction, judged against a margin relative to the effect: agrees, differs, inconclusive."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from data.errors import InputError

MARGIN = 0.10  # of the effect |measured - prior|: relative to D^2 the prior part would hide everything (physics.md section 7)
ALPHA = 0.05
POWER = 0.80  # of the smallest deviation that a run is said to detect


@dataclass(frozen=True)
class Verdict:
    """One level against the measurement.

    outcome     "agrees": |difference| < margin |effect|, by two one-sided tests at level alpha each (TOST): a level off by
                the margin or more is passed with probability alpha at most
                "differs": |difference| > margin |effect|, significantly at level alpha (two-sided). A difference far from zero but
                significantly inside the margin agrees: z says how far from zero it is
                "inconclusive": neither could be shown, or the chains did not converge; `reason` says which
    difference  measured - predicted, with its standard error;  z  their ratio
    relative_to_effect  difference/(measured - prior), with its standard error (delta method; NaN where the effect is not resolved)
    power       probability that a run with these errors returns "agrees" when the level is exact
    detectable  smallest |difference| that such a run calls "differs" with probability 0.8 or more, on either side
    """

    outcome: str
    difference: float
    difference_se: float
    z: float
    relative_to_effect: float
    relative_se: float
    margin: float
    alpha: float
    power: float
    detectable: float
    reason: str


class Decision(NamedTuple):
    """The tests alone, elementwise over arrays of measurements.

    agrees, differs, resolved  bool: inside the margin, outside it, and the effect measured - prior told from 0
    above, below        (value, se) of difference -+ margin |effect|: < 0 and > 0 inside the margin
    dof_above, dof_below  effective degrees of freedom of their errors
    """

    agrees: np.ndarray
    differs: np.ndarray
    resolved: np.ndarray
    above: tuple[np.ndarray, np.ndarray]
    below: tuple[np.ndarray, np.ndarray]
    dof_above: np.ndarray
    dof_below: np.ndarray


def decide(
    measured: np.ndarray | float,
    measured_se: np.ndarray | float,
    predicted: np.ndarray | float,
    predicted_se: np.ndarray | float = 0.0,
    *,
    prior: np.ndarray | float,
    margin: float = MARGIN,
    alpha: float = ALPHA,
    dof: np.ndarray | float = math.inf,
) -> Decision:
    """Test |measured - predicted| < margin |measured - prior|, elementwise; see `equivalence`."""
    m, sm, p, sp, nu = np.broadcast_arrays(
        *(np.asarray(one, dtype=np.float64) for one in (measured, measured_se, predicted, predicted_se, dof))
    )
    difference, effect = m - p, m - prior
    sign = np.where(effect >= 0, 1.0, -1.0)
    # The margin has the error of `measured`, so each test is made on a linear combination, whose error is exact (Fieller's argument).
    above, below = difference - margin * sign * effect, difference + margin * sign * effect
    parts = [np.abs(1.0 - margin * sign) * sm, np.abs(1.0 + margin * sign) * sm]
    above_se, below_se = (np.hypot(one, sp) for one in parts)
    dof_above, dof_below, dof_difference = (_dof(one, sp, nu) for one in (*parts, sm))
    two = 1.0 - alpha / 2.0
    resolved = np.abs(effect) > student.ppf(two, nu) * sm
    inside = (above < -student.ppf(1.0 - alpha, dof_above) * above_se) & (
        below > student.ppf(1.0 - alpha, dof_below) * below_se
    )
    beyond = (above > student.ppf(two, dof_above) * above_se) | (below < -student.ppf(two, dof_below) * below_se)
    # Where the sign of the effect is unknown, the widest margin that the data admit must be exceeded.
    widest = margin * (np.abs(effect) + student.ppf(two, nu) * sm)
    far = np.abs(difference) > widest + student.ppf(two, dof_difference) * np.hypot(sm, sp)
    return Decision(
        agrees=resolved & inside,
        differs=np.where(resolved, beyond, far),
        resolved=resolved,
        above=(above, above_se),
        below=(below, below_se),
        dof_above=dof_above,
        dof_below=dof_below,
    )


def equivalence(
    measured: float,
    measured_se: float,
    predicted: float,
    predicted_se: float = 0.0,
    *,
    prior: float,
    margin: float = MARGIN,
    alpha: float = ALPHA,
    dof: float = math.inf,
    converged: bool = True,
) -> Verdict:
    """Test |measured - predicted| < margin |measured - prior|.

    The margin itself has the error of `measured`, so the two one-sided tests are made on the linear combinations
    (measured - predicted) -+ margin (measured - prior), whose errors are exact (Fieller's argument); measured and predicted are
    independent. `dof` are the degrees of freedom of measured_se (Student's t; Welch's where predicted_se enters too). A value or an
    error that is not finite gives "inconclusive".
    Raises InputError for a margin outside (0, 1), an alpha outside (0, 1/2), a negative error, or dof < 1.
    """
    if not 0 < margin < 1:
        raise InputError(f"margin = {margin}: it is a share of the effect, between 0 and 1")
    if not 0 < alpha < 0.5:
        raise InputError(f"alpha = {alpha}: the level of a test lies between 0 and 1/2")
    if measured_se < 0 or predicted_se < 0:
        raise InputError(f"standard errors must be >= 0; they are {measured_se} and {predicted_se}")
    if not dof >= 1:
        raise InputError(f"dof = {dof}: an error needs at least one degree of freedom")
    difference, effect = measured - predicted, measured - prior
    se = math.hypot(measured_se, predicted_se)
    if not math.isfinite(difference) or not math.isfinite(se) or not math.isfinite(effect):
        nan = math.nan
        reason = "the measurement or the prediction has no finite value or error"
        return Verdict("inconclusive", difference, se, nan, nan, nan, margin, alpha, 0.0, nan, reason)
    found = decide(measured, measured_se, predicted, predicted_se, prior=prior, margin=margin, alpha=alpha, dof=dof)
    resolved = bool(found.resolved)
    width = margin * abs(effect)
    sides = [(float(found.above[1]), float(found.dof_above)), (float(found.below[1]), float(found.dof_below))]
    if not converged:
        outcome, reason = "inconclusive", "the chains did not converge"
    elif found.agrees:
        outcome, reason = "agrees", "the difference lies inside the margin"
    elif found.differs:
        outcome, reason = "differs", "the difference lies outside the margin"
    elif not resolved:
        outcome = "inconclusive"
        reason = "the effect measured - prior is not resolved, so there is no margin to test against"
    else:
        outcome, reason = "inconclusive", "the error is too large to tell inside the margin from outside"
    relative, relative_se = math.nan, math.nan
    if resolved and effect != 0:
        relative = difference / effect
        # d/dM (M - L)/(M - prior) = (1 - relative)/effect
        relative_se = math.hypot((1.0 - relative) * measured_se, predicted_se) / abs(effect)
    return Verdict(
        outcome=outcome,
        difference=difference,
        difference_se=se,
        z=difference / se if se > 0 else (0.0 if difference == 0 else math.copysign(math.inf, difference)),
        relative_to_effect=relative,
        relative_se=relative_se,
        margin=margin,
        alpha=alpha,
        power=_power(width, sides, alpha) if resolved else 0.0,
        detectable=width + max(one * _reach(alpha / 2.0, POWER, nu) for one, nu in sides),
        reason=reason,
    )


def _dof(first: np.ndarray, second: np.ndarray, dof: np.ndarray) -> np.ndarray:
    """Welch's degrees of freedom of hypot(first, second): `first` has `dof`, `second` (level 4's many draws) has no end of them."""
    ratio = np.divide(second, first, out=np.zeros_like(first), where=first > 0)
    return np.maximum(dof * (1.0 + ratio**2) ** 2, 1.0)


def _exceeds(threshold: float, shift: float, dof: float) -> float:
    """P(t > threshold) for noncentral t with `dof` and noncentrality `shift` (the approximation of Johnson & Welch 1940)."""
    return float(norm.sf((threshold * (1.0 - 0.25 / dof) - shift) / math.sqrt(1.0 + 0.5 * threshold**2 / dof)))


def _power(width: float, sides: list[tuple[float, float]], alpha: float) -> float:
    """Probability of "agrees" when the true difference is 0: both one-sided tests pass (Bonferroni's bound, tight for TOST)."""
    fails = 0.0
    for se, dof in sides:
        if se > 0:
            fails += 1.0 - _exceeds(float(student.isf(alpha, dof)), width / se, dof)
    return max(0.0, 1.0 - fails) if width > 0 else 0.0


def _reach(tail: float, power: float, dof: float) -> float:
    """Distance from the margin, in standard errors, that a one-sided test at level `tail` finds with probability `power`."""
    threshold = float(student.isf(tail, dof))
    return threshold * (1.0 - 0.25 / dof) + float(norm.ppf(power)) * math.sqrt(1.0 + 0.5 * threshold**2 / dof)
