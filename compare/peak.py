"""Is <D^2>(T) nonmonotonic: does it rise and then fall, where is its maximum, and does an independent witness agree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from compare.curve import Curve, pointwise
from data.errors import InputError

ALPHA = 0.05
FLAT = 0.10  # a bump smaller than this share of the largest effect |D^2 - prior| counts as no interior maximum
ROUNDING = 1e-10  # of the largest value: what a closed form's bump must exceed


@dataclass(frozen=True, eq=False)
class Temperature:
    """One temperature of a measured curve.

    mean, se    of the curve's quantity there (variance-reduced where it is)
    chains      (C,) its means over each chain, whose spread carries the error between temperatures
    slope       (C,) dO/dlogT as each chain gives it: (beta/2) Cov(O, sum (y-f)^2)    (physics.md 5.5: dO/dbeta = -Cov/2);
                NaN where it is not known: then the curve goes through the values with the slopes of parabolas, and no witness speaks
    converged   whether the run is acceptable
    """

    T: float
    mean: float
    se: float
    chains: np.ndarray
    slope: np.ndarray
    converged: bool = True


@dataclass(frozen=True)
class Peak:
    """The verdict on one curve over [T_min, T_max]; says nothing of temperatures outside.

    outcome  "yes": some inner sampled T lies significantly above both ends (intersection-union test, Bonferroni over the inner T)
             "no": everywhere between, the curve is significantly below the higher end plus `flat`, and the witness does not say "yes"
             "inconclusive": neither, or a run did not converge, or fewer than three temperatures; `reason` says which
    p        of "rises and then falls";  T_best the sampled T at which it is least, NaN unless "yes"
    T_peak   maximum of the curve between the sampled T (NaN unless "yes");  T_low, T_high  its 95% interval: the T around it at which a
             slope of 0 is not rejected, which holds the true maximum with 95% probability whatever the shape
    height, height_se       the curve at T_peak;  rise, fall  height minus the value at T_min and at T_max, with errors
    witness  sign change of dO/dlogT from + to -, each significant (Bonferroni over the T): "yes", "no", or "inconclusive". It uses
             covariances, not differences of means
    interpolation  see `compare.curve.Curve`;  method, note  how the curve between the sampled T was made
    """

    outcome: str
    reason: str
    T_min: float
    T_max: float
    p: float
    T_best: float = math.nan
    T_peak: float = math.nan
    T_low: float = math.nan
    T_high: float = math.nan
    height: float = math.nan
    height_se: float = math.nan
    rise: float = math.nan
    rise_se: float = math.nan
    fall: float = math.nan
    fall_se: float = math.nan
    witness: str = "inconclusive"
    interpolation: float = math.nan
    method: str = ""
    note: str = ""
    slopes: tuple[tuple[float, float, float], ...] = field(default=(), repr=False)


def slopes(values: np.ndarray, residual: np.ndarray, T: float) -> np.ndarray:
    """(C,) dO/dlogT of each chain, (beta/2) Cov(O, residual), about the means over all chains.

    values, residual (C, draws); O is a function of the first layer, so the residual averaged over the readout serves.
    """
    deviation = (values - values.mean()) * (residual - residual.mean())
    chains, draws = values.shape
    return deviation.mean(1) * (chains * draws / (chains * draws - 1)) / (2.0 * T)


def measured_peak(
    points: Sequence[Temperature], *, flat: float, alpha: float = ALPHA, curve: Curve | None = None, note: str = ""
) -> Peak:
    """The verdict for a measured curve. `flat` > 0 is the size below which a bump is no maximum, in the curve's units.

    curve  through the same temperatures, made by multi-temperature reweighting (`compare.reweight`). Without it the curve is the cubic
           Hermite interpolant in log T through the measured values with the measured slopes: both are posterior averages at that T,
           so no overlap between temperatures is needed; `note` may say why
    Raises InputError for repeated temperatures, flat <= 0, or a curve through other temperatures.
    """
    points = sorted(points, key=lambda point: point.T)
    T = np.array([point.T for point in points])
    if len(T) == 0 or len(np.unique(T)) != len(T):
        raise InputError("a curve needs different temperatures, one point each")
    if not flat > 0:
        raise InputError(f"flat = {flat}: the smallest bump that counts must be > 0")
    if curve is not None and not (len(curve.nodes) == len(T) and np.allclose(curve.x[curve.nodes], np.log(T))):
        raise InputError("the curve does not go through the temperatures of the points")
    ends: dict[str, Any] = {"T_min": float(T[0]), "T_max": float(T[-1])}
    slope_table = tuple(_slope(point) for point in points)
    witness = _witness(points, alpha)
    bad = [point.T for point in points if not point.converged]
    if len(T) < 3 or bad or min(len(point.chains) for point in points) < 2:
        few = "fewer than three temperatures" if not bad else f"the chains did not converge at T = {bad[0]:g}"
        few = few if len(T) < 3 or bad else "errors need two chains or more at every temperature"
        return Peak("inconclusive", few, **ends, p=math.nan, slopes=slope_table, note=note)
    if curve is None:
        curve = _through(points, note)
    p, best = _rises_and_falls(curve)
    common: dict[str, Any] = {
        "p": p,
        "witness": witness,
        "interpolation": curve.interpolation,
        "slopes": slope_table,
    } | ends
    common |= {"method": curve.method, "note": curve.note}
    if p < alpha:
        maximum = _maximum(curve)
        return Peak("yes", f"T = {T[best]:g} lies above both ends", **common, T_best=float(T[best]), **maximum)
    if _flat(curve, flat, alpha):
        if witness == "yes":  # it rises and falls between the temperatures looked at
            told = (
                "no inner temperature lies above both ends, but the slopes change sign: put temperatures between them"
            )
            return Peak("inconclusive", told, **common)
        return Peak("no", "no inner temperature lies above the higher end by more than a bump that counts", **common)
    return Peak("inconclusive", "the errors are too large to tell a maximum from none", **common)


def _through(points: Sequence[Temperature], note: str) -> Curve:
    return pointwise(
        np.array([point.T for point in points]),
        [point.chains for point in points],
        [point.slope for point in points],
        mean=np.array([point.mean for point in points]),
        se=np.array([point.se for point in points]),
        note=note,
    )


def _rises_and_falls(curve: Curve) -> tuple[float, int]:
    """p of "some inner sampled T is above both ends": for each the larger p of the two one-sided tests, times their number."""
    inner = curve.nodes[1:-1]
    each = np.maximum(*(_p_above(*curve.gaps(inner, curve.nodes[end])) for end in (0, -1)))
    best = int(np.argmin(each))
    return float(min(1.0, each[best] * len(inner))), best + 1


def _p_above(gap: np.ndarray, se: np.ndarray, dof: np.ndarray) -> np.ndarray:
    """One-sided p of gap > 0; an exact gap has p 0 or 1."""
    exact = np.where(gap > 0, np.inf, -np.inf)
    return student.sf(np.divide(gap, se, out=exact, where=se > 0), dof)


def _flat(curve: Curve, flat: float, alpha: float) -> bool:
    """Whether the curve is everywhere significantly below the higher end plus `flat` (each at level alpha: all must pass)."""
    end = int(curve.nodes[0] if curve.mean[0] >= curve.mean[-1] else curve.nodes[-1])
    gap, se, dof = curve.gaps(np.arange(len(curve.x)), end)
    # Between sampled T the interpolation may miss: by a sixteenth of what it misses when a T is left out.
    unsure = np.full(len(curve.x), 0.0 if math.isnan(curve.interpolation) else curve.interpolation / 16.0)
    unsure[curve.nodes] = 0.0
    return bool((gap + student.isf(alpha, dof) * se + unsure < flat).all())


def _slope(point: Temperature) -> tuple[float, float, float]:
    """(T, slope, its standard error from the spread of the chains)."""
    count = len(point.slope)
    error = float(point.slope.std(ddof=1) / math.sqrt(count)) if count > 1 else math.nan
    return float(point.T), float(point.slope.mean()), error


def _witness(points: Sequence[Temperature], alpha: float) -> str:
    """Whether the slope is significantly + at some T and significantly - at a higher one; "no" where one sign covers all T."""
    signs = []
    for point in points:
        _, slope, error = _slope(point)
        level = student.isf(alpha / (2 * len(points)), max(len(point.slope) - 1, 1))
        t = slope / error if error > 0 else 0.0
        signs.append(1 if t > level else (-1 if t < -level else 0))  # a NaN gives 0
    if 1 in signs and -1 in signs[signs.index(1) :]:
        return "yes"
    return "no" if signs and 0 not in signs and len(set(signs)) == 1 else "inconclusive"


def _maximum(curve: Curve, level: float = 0.95) -> dict[str, Any]:
    """Location with its interval, and height, rise and fall with errors."""
    inside = np.arange(1, len(curve.x) - 1)
    top = int(inside[np.argmax(curve.mean[inside])])
    location, _ = _parabola(curve.x, curve.mean, top)
    slope, se, dof = curve.slope()
    # > 0 where a slope of 0 is rejected; the interval is the stretch around the top where it is not
    rejected = np.abs(slope) - student.isf((1.0 - level) / 2.0, dof) * se
    low, high = (_edge(curve.x, rejected, top, step) for step in (-1, 1))
    (height,), (height_se,), _ = curve.combine(np.eye(len(curve.x))[[top]])
    (rise, fall), (rise_se, fall_se), _ = curve.gaps(np.array([top, top]), curve.nodes[[0, -1]])
    return {
        "T_peak": math.exp(location),
        "T_low": math.exp(min(low, location)),
        "T_high": math.exp(max(high, location)),
        "height": float(height),
        "height_se": float(height_se),
        "rise": float(rise),
        "rise_se": float(rise_se),
        "fall": float(fall),
        "fall_se": float(fall_se),
    }


def _edge(x: np.ndarray, rejected: np.ndarray, top: int, step: int) -> float:
    """Where, going from `top` in the direction of `step`, `rejected` becomes positive; the end of x where it never does."""
    at = top
    while 0 <= at + step < len(x):
        if rejected[at + step] > 0:
            before = min(float(rejected[at]), 0.0)
            return float(x[at] + (x[at + step] - x[at]) * before / (before - rejected[at + step]))
        at += step
    return float(x[at])


def _parabola(x: np.ndarray, y: np.ndarray, top: int) -> tuple[float, float]:
    """(location, height) of the parabola through the points around `top`; the point itself at an end or where it opens upwards."""
    if 0 < top < len(x) - 1:
        a, b, c = np.polyfit(x[top - 1 : top + 2] - x[top], y[top - 1 : top + 2], 2)
        if a < 0 and abs(b / (2 * a)) <= max(x[top + 1] - x[top], x[top] - x[top - 1]):
            return float(x[top] - b / (2 * a)), float(c - b * b / (4 * a))
    return float(x[top]), float(y[top])


def curve_peak(T: Sequence[float], values: Sequence[float], *, flat: float, se: Sequence[float] | None = None) -> Peak:
    """The verdict for a theory curve on a fine grid, whose ends are the range; `se` where a level is itself Monte Carlo.

    A closed form is exact to ROUNDING of its largest value. Errors of a Monte Carlo level are taken as independent between T, which is
    cautious where its draws serve every T. Raises InputError for repeated temperatures or values that are not finite.
    """
    x, y = np.log(np.asarray(T, dtype=np.float64)), np.asarray(values, dtype=np.float64)
    order = np.argsort(x)
    x, y = x[order], y[order]
    if len(x) == 0 or len(np.unique(x)) != len(x) or not np.isfinite(y).all():
        raise InputError("a theory curve needs finite values at different temperatures")
    error = np.zeros_like(y) if se is None else np.asarray(se, dtype=np.float64)[order]
    ends: dict[str, Any] = {"T_min": math.exp(x[0]), "T_max": math.exp(x[-1])}
    if len(x) < 3:
        return Peak("inconclusive", "fewer than three temperatures", **ends, p=math.nan)
    floor = ROUNDING * float(np.abs(y).max())
    inner = np.arange(1, len(x) - 1)
    tests = []
    for end in (0, -1):
        gap, joint = y[inner] - y[end] - floor, np.hypot(error[inner], error[end])
        tests.append(norm.sf(np.divide(gap, joint, out=np.where(gap > 0, np.inf, -np.inf), where=joint > 0)))
    each = np.maximum(*tests)
    p = float(min(1.0, each.min() * (len(inner) if error.any() else 1)))
    if not p < ALPHA:
        higher = 0 if y[0] >= y[-1] else -1
        bound = y[inner] - y[higher] + norm.isf(ALPHA) * np.hypot(error[inner], error[higher])
        settled = bool((bound < flat).all())
        return Peak("no" if settled else "inconclusive", "no inner temperature lies above both ends", **ends, p=p)
    top = int(inner[np.argmax(y[inner])])
    location, height = _parabola(x, y, top)
    return Peak(
        "yes",
        "rises and then falls",
        **ends,
        p=p,
        T_best=math.exp(x[top]),
        T_peak=math.exp(location),
        height=height,
        height_se=float(error[top]),
        rise=float(height - y[0]),
        rise_se=float(math.hypot(error[top], error[0])),
        fall=float(height - y[-1]),
        fall_se=float(math.hypot(error[top], error[-1])),
    )
