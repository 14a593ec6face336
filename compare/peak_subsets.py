"""The peak verdict over data subsets: of the mean curve, and what the subsets say one by one of place and origin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from compare.peak import ALPHA, FLAT
from compare.peak_answer import FACTOR, PeakAnswer
from compare.subsets import RandomEffects, random_effects
from data.errors import InputError

FINEST = 1e-3  # least error of log T of a maximum: intervals come from a grid


@dataclass(frozen=True)
class PeakAcross:
    """The answer over n subsets, each curve over the same T.

    outcome  of the mean over the population of subsets: "yes": it is significantly higher at some inner T than at both ends
             (intersection-union test on paired differences, Hartung-Knapp, Bonferroni over the inner T); "no": at every inner T it is
             significantly below the higher end plus FLAT of the mean largest effect; else "inconclusive". At the sampled T only
    yes, no, open  how many subsets answer so by themselves (see `compare.peak.Peak`)
    T_best   the inner T at which the test is clearest;  rise, fall  the mean curve there minus at T_min and at T_max
    T_peak   where, over the subsets that have one: random effects of log T, with the 95% interval of the mean, T_low and T_high, and the
             factor exp(tau) by which it varies between subsets; NaN for fewer than three
    T_eq4    geometric mean over the subsets where Eq. (4) has a maximum
    place    paired: "agrees" where the mean of log T_peak - log T_eq4 has its interval inside a factor 2, "differs" where outside, or
             where one of the two has a maximum in the mean and the other has none on any subset; "agrees" where neither has
    delta2   "yes" where of rise and fall the mean share that Delta2 makes is above one half on both sides, "no" where it is below on one
    """

    N1: int
    n: int
    outcome: str
    reason: str
    p: float
    yes: int
    no: int
    open: int
    T_min: float
    T_max: float
    T_best: float = math.nan
    rise: RandomEffects | None = None
    fall: RandomEffects | None = None
    T_peak: float = math.nan
    T_low: float = math.nan
    T_high: float = math.nan
    factor: float = math.nan
    T_eq4: float = math.nan
    place: str = "inconclusive"
    delta2: str = ""
    rise_share: RandomEffects | None = None
    fall_share: RandomEffects | None = None

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        span = f"between T = {self.T_min:g} and {self.T_max:g}"
        counts = f"; alone, {self.yes} of {self.n} subsets have one, {self.no} have none, {self.open} cannot tell"
        lead = f"At N₁ = {self.N1}, {span}, the mean ⟨D²⟩ over subsets "
        if self.outcome == "inconclusive":
            return f"{lead}may or may not have an interior maximum: {self.reason}{counts}."
        if self.outcome == "no":
            told = "nor has Eq. (4)" if self.place == "agrees" else ""
            if not math.isnan(self.T_eq4):
                told = f"where Eq. (4) has one near T = {self.T_eq4:.3g}"
            return f"{lead}has no interior maximum{', ' + told if told else ''}{counts}."
        text = f"{lead}has an interior maximum"
        if not math.isnan(self.T_peak):
            text += f", on average at T = {self.T_peak:.3g} [{self.T_low:.3g}, {self.T_high:.3g}]"
        text += (
            "; Eq. (4) has none"
            if math.isnan(self.T_eq4)
            else f"; Eq. (4) puts it at T = {self.T_eq4:.3g} ({self.place})"
        )
        return text + {"yes": "; Δ₂ makes it", "no": "; Δ₂ does not make it"}.get(self.delta2, "") + counts + "."


def peak_across(
    T: Sequence[float],
    d2: np.ndarray,
    se: np.ndarray,
    effect: np.ndarray,
    answers: Sequence[PeakAnswer],
    *,
    converged: np.ndarray | bool = True,
    alpha: float = ALPHA,
) -> PeakAcross:
    """d2, se, effect (n, K): measured <D^2>, its error, and measured minus prior, of n subsets at K ascending T; answers, one a subset.

    Raises InputError for fewer than three subsets or shapes that do not match.
    """
    temperatures = np.asarray(T, dtype=np.float64)
    n, K = d2.shape
    if n < 3:
        raise InputError(f"a verdict over subsets needs three of them or more; there are {n}")
    if se.shape != (n, K) or effect.shape != (n, K) or len(temperatures) != K or len(answers) != n:
        raise InputError("values, errors, effects and answers must be of the same subsets and temperatures")
    votes = [one.has_maximum for one in answers]
    known = {"N1": answers[0].N1, "n": n, "T_min": float(temperatures[0]), "T_max": float(temperatures[-1])}
    count = {"yes": votes.count("yes"), "no": votes.count("no"), "open": votes.count("inconclusive")}
    outcome, reason, p, best = _verdict(d2, se, effect, np.broadcast_to(converged, (n, K)), alpha)
    found: dict[str, object] = {}
    if best is not None:
        found["T_best"] = float(temperatures[best])
        found["rise"], found["fall"] = (_gap(d2, se, best, end) for end in (0, K - 1))
    have = [one for one in answers if one.has_maximum == "yes"]
    eq4 = [math.log(one.T_eq4) for one in answers if not math.isnan(one.T_eq4)]
    found["T_eq4"] = math.exp(float(np.mean(eq4))) if eq4 else math.nan
    if outcome == "yes":
        found |= _where(have) | _made(have, alpha)
    found["place"] = _place(outcome, have, len(eq4), n)
    return PeakAcross(outcome=outcome, reason=reason, p=p, **known, **count, **found)  # type: ignore[arg-type]


def _gap(d2: np.ndarray, se: np.ndarray, here: int, end: int) -> RandomEffects:
    """The mean curve at one temperature minus at another: paired on each subset, runs at different T independent."""
    return random_effects(d2[:, here] - d2[:, end], np.hypot(se[:, here], se[:, end]))


def _above(one: RandomEffects, bound: float = 0.0) -> float:
    """One-sided p of mean > bound."""
    if one.se <= 0:
        return 0.5 - 0.5 * float(np.sign(one.mean - bound))
    return float(student.sf((one.mean - bound) / one.se, one.n - 1))


def _verdict(
    d2: np.ndarray, se: np.ndarray, effect: np.ndarray, converged: np.ndarray, alpha: float
) -> tuple[str, str, float, int | None]:
    """(outcome, reason, p, index of the inner temperature where the test is clearest)."""
    K = d2.shape[1]
    if K < 3:
        return "inconclusive", "fewer than three temperatures", math.nan, None
    if not converged.all():
        bad = int((~converged.all(axis=1)).sum())
        told = f"{bad} of {len(d2)} subsets have runs that did not converge, and the others are no random choice"
        return "inconclusive", told, math.nan, None
    inner = range(1, K - 1)
    each = [max(_above(_gap(d2, se, i, end)) for end in (0, K - 1)) for i in inner]
    best = int(np.argmin(each)) + 1
    p = min(1.0, min(each) * len(each))
    if p < alpha:
        return "yes", "some inner temperature lies above both ends", p, best
    end = 0 if d2[:, 0].mean() >= d2[:, -1].mean() else K - 1
    flat = FLAT * float(np.abs(effect).max(axis=1).mean())
    if all(1.0 - _above(_gap(d2, se, i, end), flat) < alpha for i in inner):
        return "no", "no inner temperature lies above the higher end by more than a bump that counts", p, best
    return "inconclusive", "spread and errors are too large to tell a maximum from none", p, best


def _logs(have: Sequence[PeakAnswer]) -> tuple[np.ndarray, np.ndarray]:
    """(log T_peak, its error) of subsets that have a maximum."""
    where = np.log([one.T_peak for one in have])
    width = np.log([one.T_high / one.T_low for one in have]) / (2 * 1.96)
    return where, np.maximum(width, FINEST)


def _where(have: Sequence[PeakAnswer]) -> dict[str, float]:
    if len(have) < 3:
        return {}
    one = random_effects(*_logs(have))
    low, high, tau = math.exp(one.low), math.exp(one.high), math.exp(one.tau)
    return {"T_peak": math.exp(one.mean), "T_low": low, "T_high": high, "factor": tau}


def _place(outcome: str, have: Sequence[PeakAnswer], eq4: int, n: int) -> str:
    if outcome == "inconclusive" or 0 < eq4 < n:
        return "inconclusive"
    if outcome == "no":
        return "differs" if eq4 else "agrees"
    if not eq4:
        return "differs"
    if len(have) < 3:
        return "inconclusive"
    where, error = _logs(have)
    one = random_effects(where - np.log([each.T_eq4 for each in have]), error)
    reach = math.log(FACTOR)
    if -reach < one.low and one.high < reach:
        return "agrees"
    return "differs" if one.high < -reach or one.low > reach else "inconclusive"


def _made(have: Sequence[PeakAnswer], alpha: float) -> dict[str, object]:
    """Whether Delta2 makes the maximum, from the shares of the subsets that have one."""
    origins = [one.delta2 for one in have if one.delta2 is not None]
    sides = [np.array([getattr(o, side) for o in origins]).reshape(-1, 2) for side in ("rise_share", "fall_share")]
    if len(origins) < 3 or not all(np.isfinite(side).all() and (side[:, 1] > 0).all() for side in sides):
        return {"delta2": "inconclusive"}
    rise, fall = (random_effects(side[:, 0], side[:, 1]) for side in sides)
    more = [_above(one, 0.5) for one in (rise, fall)]
    outcome = "yes" if max(more) < alpha else ("no" if min(1.0 - q for q in more) < alpha / 2 else "inconclusive")
    return {"delta2": outcome, "rise_share": rise, "fall_share": fall}
