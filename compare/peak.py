"""Is <D^2>(T) nonmonotonic: does it rise and then fall, where is its maximum, and does an independent witness agree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.interpolate import CubicHermiteSpline, PchipInterpolator
from scipy.stats import norm

from data.errors import InputError

ALPHA = 0.05
FLAT = 0.10  # a bump smaller than this share of the largest effect |D^2 - prior| counts as no interior maximum
BOOTSTRAP = 400
GRID = 400


@dataclass(frozen=True, eq=False)
class Temperature:
    """One temperature of a measured curve.

    mean, se    of the curve's quantity there (variance-reduced where it is)
    chains      (C,) its means over each chain, for the bootstrap
    slope       (C,) dO/dlogT as each chain gives it: (beta/2) Cov(O, sum (y-f)^2)    (physics.md 5.5: dO/dbeta = -Cov/2);
                NaN where the quantity has none, and then the curve is a monotone cubic through the values (PCHIP)
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

    outcome  "yes": some inner T lies significantly above both ends (intersection-union test, Bonferroni over the inner T)
             "no": at every inner T the curve is significantly below the higher end plus `flat`, and the witness does not say "yes"
             "inconclusive": neither, or a run did not converge, or fewer than three temperatures; `reason` says which
    p        of "rises and then falls"
    T_peak, T_low, T_high   maximum of the interpolated curve with a 95% bootstrap interval over chains (NaN unless "yes")
    height, height_se       its value;  rise, fall  height minus the value at T_min and at T_max, with errors
    witness  sign change of dO/dlogT from + to -, each significant (Bonferroni over the T): "yes", "no", or "inconclusive". It uses
             covariances, not differences of means
    interpolation  largest miss of the interpolation when an inner T is left out, a bound on its error; NaN with fewer than 4 T
    """

    outcome: str
    reason: str
    T_min: float
    T_max: float
    p: float
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
    slopes: tuple[tuple[float, float, float], ...] = field(default=(), repr=False)


def slopes(values: np.ndarray, residual: np.ndarray, T: float) -> np.ndarray:
    """(C,) dO/dlogT of each chain, (beta/2) Cov(O, residual), about the means over all chains.

    values, residual (C, draws); O is a function of the first layer, so the residual averaged over the readout serves.
    """
    deviation = (values - values.mean()) * (residual - residual.mean())
    chains, draws = values.shape
    return deviation.mean(1) * (chains * draws / (chains * draws - 1)) / (2.0 * T)


def measured_peak(points: Sequence[Temperature], *, flat: float, alpha: float = ALPHA, seed: int = 0) -> Peak:
    """The verdict for a measured curve. `flat` > 0 is the size below which a bump is no maximum, in the curve's units.

    Between temperatures the curve is the cubic Hermite interpolant in log T through the measured values with the measured slopes:
    both are posterior averages at that T, so no overlap between temperatures is needed (multi-temperature reweighting would
    need neighbours within a factor of about 2).  Raises InputError for repeated temperatures or flat <= 0.
    """
    points = sorted(points, key=lambda point: point.T)
    T = np.array([point.T for point in points])
    if len(T) == 0 or len(np.unique(T)) != len(T):
        raise InputError("a curve needs different temperatures, one point each")
    if not flat > 0:
        raise InputError(f"flat = {flat}: the smallest bump that counts must be > 0")
    ends: dict[str, Any] = {"T_min": float(T[0]), "T_max": float(T[-1])}
    slope_table = tuple(_slope(point) for point in points)
    witness = _witness(slope_table, alpha)
    bad = [point.T for point in points if not point.converged]
    if len(T) < 3 or bad:
        few = "fewer than three temperatures" if not bad else f"the chains did not converge at T = {bad[0]:g}"
        return Peak("inconclusive", few, **ends, p=math.nan, slopes=slope_table)
    mean, se = np.array([point.mean for point in points]), np.array([point.se for point in points])
    p, best = _rises_and_falls(mean, se)
    miss = _interpolation(np.log(T), mean, np.array([row[1] for row in slope_table]))
    common: dict[str, Any] = {"p": p, "witness": witness, "interpolation": miss, "slopes": slope_table} | ends
    if p < alpha:
        return Peak("yes", f"T = {T[best]:g} lies above both ends", **common, **_maximum(points, seed))
    if _flat(mean, se, flat, alpha):
        if witness == "yes":  # it rises and falls between the temperatures looked at
            told = (
                "no inner temperature lies above both ends, but the slopes change sign: put temperatures between them"
            )
            return Peak("inconclusive", told, **common)
        return Peak("no", "no inner temperature lies above the higher end by more than a bump that counts", **common)
    return Peak("inconclusive", "the errors are too large to tell a maximum from none", **common)


def _rises_and_falls(mean: np.ndarray, se: np.ndarray) -> tuple[float, int]:
    """p of "some inner point is above both ends": for each the larger p of the two one-sided tests, times their number."""
    inner = np.arange(1, len(mean) - 1)
    tests = []
    for end in (0, -1):
        error = np.hypot(se[inner], se[end])
        gap = mean[inner] - mean[end]
        tests.append(norm.sf(np.divide(gap, error, out=np.where(gap > 0, np.inf, -np.inf), where=error > 0)))
    each = np.maximum(*tests)
    best = int(np.argmin(each))
    return float(min(1.0, each[best] * len(inner))), int(inner[best])


def _flat(mean: np.ndarray, se: np.ndarray, flat: float, alpha: float) -> bool:
    """Whether every inner point is significantly below the higher end plus `flat` (each at level alpha: all must pass)."""
    end = 0 if mean[0] >= mean[-1] else len(mean) - 1
    inner = np.arange(1, len(mean) - 1)
    bound = mean[inner] - mean[end] + norm.isf(alpha) * np.hypot(se[inner], se[end])
    return bool((bound < flat).all())


def _slope(point: Temperature) -> tuple[float, float, float]:
    """(T, slope, its standard error from the spread of the chains)."""
    count = len(point.slope)
    error = float(point.slope.std(ddof=1) / math.sqrt(count)) if count > 1 else math.nan
    return float(point.T), float(point.slope.mean()), error


def _witness(table: Sequence[tuple[float, float, float]], alpha: float) -> str:
    """Whether the slope is significantly + at some T and significantly - at a higher one; "no" where one sign covers all T."""
    level = norm.isf(alpha / (2 * max(len(table), 1)))
    signs = []
    for _, slope, error in table:
        z = slope / error if error > 0 else 0.0
        signs.append(1 if z > level else (-1 if z < -level else 0))  # a NaN gives 0
    if 1 in signs and -1 in signs[signs.index(1) :]:
        return "yes"
    return "no" if signs and 0 not in signs and len(set(signs)) == 1 else "inconclusive"


def _interpolation(x: np.ndarray, mean: np.ndarray, slope: np.ndarray) -> float:
    """Largest miss at an inner temperature of the interpolant made without it: its true error is about 16 times smaller."""
    if len(x) < 4:
        return math.nan
    misses = []
    for left_out in range(1, len(x) - 1):
        keep = np.arange(len(x)) != left_out
        misses.append(abs(_curve(x[keep], mean[keep], slope[keep])(x[left_out]) - mean[left_out]))
    return float(max(misses))


def _curve(x: np.ndarray, values: np.ndarray, slope: np.ndarray) -> CubicHermiteSpline | PchipInterpolator:
    """The interpolant in log T: cubic Hermite where the slopes are known, PCHIP otherwise."""
    return CubicHermiteSpline(x, values, slope) if np.isfinite(slope).all() else PchipInterpolator(x, values)


def _maximum(points: Sequence[Temperature], seed: int) -> dict[str, Any]:
    """Location and height of the interpolated maximum with bootstrap errors: chains are drawn again at every temperature."""
    rng = np.random.default_rng(np.random.SeedSequence(seed))
    x = np.log([point.T for point in points])
    fine = np.linspace(x[0], x[-1], GRID)

    def summits(values: np.ndarray, derivative: np.ndarray) -> np.ndarray:
        """(4, B) location, height, rise and fall of B curves (n, B)."""
        curves = _curve(x, values, derivative)(fine)
        top = curves.argmax(0)
        height = curves[top, np.arange(curves.shape[1])]
        return np.stack([fine[top], height, height - values[0], height - values[-1]])

    values = np.array([[point.mean] for point in points])
    derivative = np.array([[point.slope.mean()] for point in points])
    best = summits(values, derivative)[:, 0]
    drawn_values, drawn_slopes = np.empty((len(points), BOOTSTRAP)), np.empty((len(points), BOOTSTRAP))
    for i, point in enumerate(points):
        count = len(point.chains)
        pick = rng.integers(count, size=(BOOTSTRAP, count))
        # The spread of chain means, brought to the standard error that the draws themselves give.
        spread = point.chains.std(ddof=1) / math.sqrt(count) if count > 1 else 0.0
        shift = point.chains[pick].mean(1) - point.chains.mean()
        drawn_values[i] = point.mean + shift * (point.se / spread if spread > 0 else 0.0)
        drawn_slopes[i] = point.slope[pick].mean(1)
    table = summits(drawn_values, drawn_slopes).T
    low, high = np.exp(np.quantile(table[:, 0], [0.025, 0.975]))
    errors = table.std(0, ddof=1)
    return {
        "T_peak": float(math.exp(best[0])),
        "T_low": float(low),
        "T_high": float(high),
        "height": float(best[1]),
        "height_se": float(errors[1]),
        "rise": float(best[2]),
        "rise_se": float(errors[2]),
        "fall": float(best[3]),
        "fall_se": float(errors[3]),
    }


def curve_peak(T: Sequence[float], values: Sequence[float], *, flat: float, se: Sequence[float] | None = None) -> Peak:
    """The verdict for a theory curve on a fine grid, whose ends are the range; `se` where a level is itself Monte Carlo."""
    x, y = np.log(np.asarray(T, dtype=np.float64)), np.asarray(values, dtype=np.float64)
    order = np.argsort(x)
    x, y = x[order], y[order]
    error = np.zeros_like(y) if se is None else np.asarray(se, dtype=np.float64)[order]
    ends: dict[str, Any] = {"T_min": math.exp(x[0]), "T_max": math.exp(x[-1])}
    top = int(np.argmax(y))
    if len(x) < 3:
        return Peak("inconclusive", "fewer than three temperatures", **ends, p=math.nan)
    p, _ = _rises_and_falls(y, error)
    if not p < ALPHA:
        settled = _flat(y, error, flat, ALPHA)
        return Peak("no" if settled else "inconclusive", "no inner temperature lies above both ends", **ends, p=p)
    location, height = x[top], y[top]
    if 0 < top < len(x) - 1:  # the parabola through the three highest points
        a, b, c = np.polyfit(x[top - 1 : top + 2] - x[top], y[top - 1 : top + 2], 2)
        if a < 0:
            location, height = x[top] - b / (2 * a), c - b * b / (4 * a)
    return Peak(
        "yes",
        "rises and then falls",
        **ends,
        p=p,
        T_peak=float(math.exp(location)),
        height=float(height),
        height_se=float(error[top]),
        rise=float(height - y[0]),
        rise_se=float(math.hypot(error[top], error[0])),
        fall=float(height - y[-1]),
        fall_se=float(math.hypot(error[top], error[-1])),
    )
