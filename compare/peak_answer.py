"""The answer on nonmonotonicity at one width: is there an interior maximum, is it where Eq. (4) puts it, does Delta2 make it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import t as student

from compare.peak import ALPHA, Peak

if TYPE_CHECKING:
    from compare.measure import Measurement

FACTOR = 2.0  # maxima within this factor in T are at the same place


@dataclass(frozen=True)
class Origin:
    """Whether the part of D^2 that the readout explains, Delta2_m = lambda1 <a.f>^2/<Q>, makes the maximum.

    outcome  "yes": of the rise from T_min to T, and of the fall from T to T_max, Delta2_m makes significantly more than half;
             "no": of one of them it makes significantly less than half; else "inconclusive"
    T        the sampled temperature taken for the maximum;  rise_share, fall_share (value, se) what Delta2_m makes of each
    The rest of D^2 is prior - Delta1_m, and the prior term does not depend on T.
    """

    outcome: str
    T: float
    rise_share: tuple[float, float]
    fall_share: tuple[float, float]


def origin(T: Sequence[float], measurements: Sequence[Measurement], at: float, alpha: float = ALPHA) -> Origin:
    """Measurements at ascending T, with `at` the inner one taken for the maximum. Runs at different T are independent.

    "yes" is an intersection-union test at level alpha; "no" is at level alpha/2 on either side.
    """
    temperatures = np.asarray(T, dtype=np.float64)
    here = int(np.argmin(np.abs(np.log(temperatures / at))))
    if not 0 < here < len(temperatures) - 1:
        nothing = (math.nan, math.nan)
        return Origin("inconclusive", at, nothing, nothing)
    sides = [_side(measurements[here], measurements[end], alpha) for end in (0, -1)]
    if all(t > _quantile(alpha, dof) for _, t, dof in sides):
        outcome = "yes"
    elif any(t < -_quantile(alpha / 2, dof) for _, t, dof in sides):
        outcome = "no"
    else:
        outcome = "inconclusive"
    return Origin(outcome, float(temperatures[here]), sides[0][0], sides[1][0])


def _quantile(tail: float, dof: float) -> float:
    return float(student.isf(tail, dof))


def _side(top: Measurement, end: Measurement, alpha: float) -> tuple[tuple[float, float], float, float]:
    """((share, se), t of "more than half", dof) of Delta2_m in D^2 at the top minus at an end."""
    whole = top.combination(1.0, 0.0).value - end.combination(1.0, 0.0).value
    part = top.combination(0.0, 1.0).value - end.combination(0.0, 1.0).value
    share = part / whole if whole > 0 else math.nan
    # The share minus its value is a linear combination of mean 0; so is the part minus half of the whole.
    share_se = math.hypot(*(m.combination(-share, 1.0).se for m in (top, end))) / whole if whole > 0 else math.nan
    half_se = math.hypot(*(m.combination(-0.5, 1.0).se for m in (top, end)))
    t = (part - 0.5 * whole) / half_se if half_se > 0 else 0.0
    dof = min(m.d2.dof for m in (top, end))
    return (share, share_se), t, dof


@dataclass(frozen=True)
class PeakAnswer:
    """What is said of <D^2>(T) at one width, on one data set.

    has_maximum  "yes", "no" or "inconclusive" over [T_min, T_max], with the reason;  witness  of the slopes, see `compare.peak.Peak`
    T_peak, T_low, T_high  where, with its 95% interval;  T_eq4  where Eq. (4) has its interior maximum, NaN where it has none
    place   is it where Eq. (4) puts it: "agrees" where the interval lies within a factor 2 of T_eq4, "differs" where it lies wholly
            outside, or one of the two has a maximum and the other has none (and the bump of Eq. (4) counts, or the measured slopes
            keep one sign), "agrees" also where neither has one; else "inconclusive"
    delta2  does Delta2 make it, see `Origin`; None where there is no maximum to explain
    method  how the curve was made between the sampled T
    """

    N1: int
    has_maximum: str
    reason: str
    witness: str
    T_min: float
    T_max: float
    T_peak: float
    T_low: float
    T_high: float
    T_eq4: float
    place: str
    delta2: Origin | None
    method: str

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        span = f"between T = {self.T_min:g} and {self.T_max:g}"
        if self.has_maximum == "inconclusive":
            return f"At N1 = {self.N1}, {span}, an interior maximum of <D^2> is undecided: {self.reason}."
        if self.has_maximum == "no":
            told = {"agrees": "nor has Eq. (4)", "differs": f"where Eq. (4) has one at T = {self.T_eq4:.3g}"}
            return f"At N1 = {self.N1}, {span}, <D^2> has no interior maximum{_comma(told.get(self.place, ''))}."
        text = f"At N1 = {self.N1}, {span}, <D^2> has its maximum at T = {self.T_peak:.3g} [{self.T_low:.3g}, {self.T_high:.3g}]"
        where = (
            "Eq. (4) has none" if math.isnan(self.T_eq4) else f"Eq. (4) puts it at T = {self.T_eq4:.3g} ({self.place})"
        )
        made = {"yes": "; Delta2 makes it", "no": "; Delta2 does not make it"}
        return text + f"; {where}" + (made.get(self.delta2.outcome, "") if self.delta2 else "") + "."


def _comma(text: str) -> str:
    return f", {text}" if text else ""


def answer(N1: int, measured: Peak, eq4: Peak, delta2: Origin | None, flat: float) -> PeakAnswer:
    """Put the verdict on the measured curve and the one on Eq. (4)'s curve over the same T together; `flat` the bump that counts."""
    return PeakAnswer(
        N1=N1,
        has_maximum=measured.outcome,
        reason=measured.reason,
        witness=measured.witness,
        T_min=measured.T_min,
        T_max=measured.T_max,
        T_peak=measured.T_peak,
        T_low=measured.T_low,
        T_high=measured.T_high,
        T_eq4=eq4.T_peak,
        place=_place(measured, eq4, flat),
        delta2=delta2,
        method=measured.method,
    )


def _place(measured: Peak, eq4: Peak, flat: float) -> str:
    outcomes = (measured.outcome, eq4.outcome)
    if "inconclusive" in outcomes:
        return "inconclusive"
    if outcomes == ("no", "no"):
        return "agrees"
    if outcomes == ("no", "yes"):
        # A maximum of Eq. (4) too small to count might hide in the measured curve, unless its slopes keep one sign.
        return "differs" if min(eq4.rise, eq4.fall) >= flat or measured.witness == "no" else "inconclusive"
    if outcomes == ("yes", "no"):
        return "differs"
    low, high = eq4.T_peak / FACTOR, eq4.T_peak * FACTOR
    if low <= measured.T_low and measured.T_high <= high:
        return "agrees"
    return "differs" if measured.T_high < low or measured.T_low > high else "inconclusive"
