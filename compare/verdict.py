"""Equivalence of a measurement and a prediction, judged against a margin relative to the effect: agrees, differs, inconclusive."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.stats import norm

from data.errors import InputError

MARGIN = 0.10  # of the effect |measured - prior|: relative to D^2 the prior part would hide everything (physics.md section 7)
ALPHA = 0.05


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


def equivalence(
    measured: float,
    measured_se: float,
    predicted: float,
    predicted_se: float = 0.0,
    *,
    prior: float,
    margin: float = MARGIN,
    alpha: float = ALPHA,
    converged: bool = True,
) -> Verdict:
    """Test |measured - predicted| < margin |measured - prior|.

    The margin itself has the error of `measured`, so the two one-sided tests are made on the linear combinations
    (measured - predicted) -+ margin (measured - prior), whose errors are exact (Fieller's argument); measured and predicted are
    independent. Raises InputError for a margin outside (0, 1), an alpha outside (0, 1/2), or an error that is negative or NaN.
    """
    if not 0 < margin < 1:
        raise InputError(f"margin = {margin}: it is a share of the effect, between 0 and 1")
    if not 0 < alpha < 0.5:
        raise InputError(f"alpha = {alpha}: the level of a test lies between 0 and 1/2")
    if not (measured_se >= 0 and predicted_se >= 0):
        raise InputError(f"standard errors must be >= 0; they are {measured_se} and {predicted_se}")
    difference, effect = measured - predicted, measured - prior
    se = math.hypot(measured_se, predicted_se)
    sign = 1.0 if effect >= 0 else -1.0
    above = difference - margin * sign * effect  # < 0 inside the margin
    below = difference + margin * sign * effect  # > 0 inside the margin
    above_se = math.hypot((1.0 - margin * sign) * measured_se, predicted_se)
    below_se = math.hypot((1.0 + margin * sign) * measured_se, predicted_se)
    one_sided, two_sided = norm.isf(alpha), norm.isf(alpha / 2)
    resolved = abs(effect) > two_sided * measured_se
    agrees = resolved and above < -one_sided * above_se and below > one_sided * below_se
    # Where the sign of the effect is unknown, the widest margin that the data admit must be exceeded.
    widest = margin * (abs(effect) + two_sided * measured_se)
    beyond = above > two_sided * above_se or below < -two_sided * below_se
    differs = beyond if resolved else abs(difference) > widest + two_sided * se
    width = margin * abs(effect)
    if not math.isfinite(measured) or not math.isfinite(se):
        outcome, reason = "inconclusive", "the measurement has no finite value or error"
    elif not converged:
        outcome, reason = "inconclusive", "the chains did not converge"
    elif agrees:
        outcome, reason = "agrees", "the difference lies inside the margin"
    elif differs:
        outcome, reason = "differs", "the difference lies outside the margin"
    elif not resolved:
        outcome, reason = (
            "inconclusive",
            "the effect measured - prior is not resolved, so there is no margin to test against",
        )
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
        power=_power(width, se, one_sided) if resolved else 0.0,
        detectable=width + (two_sided + norm.ppf(0.8)) * max(above_se, below_se),
        reason=reason,
    )


def _power(width: float, se: float, one_sided: float) -> float:
    """Probability of "agrees" when the true difference is 0: both tests pass where |difference| < width - one_sided se."""
    if se == 0:
        return 1.0 if width > 0 else 0.0
    return max(0.0, float(2.0 * norm.cdf(width / se - one_sided) - 1.0))
