"""Families of components, measured against predicted: slope, R^2, chi^2 with the measured covariance, false-discovery control."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import f as f_distribution
from scipy.stats import t as t_distribution

from data.errors import InputError

CONVERGED = 1e-12


@dataclass(frozen=True, eq=False)
class Fit:
    """Straight line measured = intercept + slope predicted.

    slope_se, intercept_se  jackknife over chains, so correlations between components are in them (Student's t, chains - 1), and the
                part that errors of the predictions make
    correlation  Pearson's, and r2 its square: both of the noisy points
    n  components;  predicted, measured, measured_se (n,) the points
    """

    slope: float
    slope_se: float
    intercept: float
    intercept_se: float
    correlation: float
    r2: float
    n: int
    predicted: np.ndarray
    measured: np.ndarray
    measured_se: np.ndarray


def york(
    x: np.ndarray, y: np.ndarray, x_se: np.ndarray | float, y_se: np.ndarray | float, iterations: int = 200
) -> tuple[float, float]:
    """(slope, intercept) of the best line with independent errors in both variables (York et al., Am. J. Phys. 72, 367 (2004)).

    With x_se = 0 it is weighted least squares. Raises InputError where fewer than three points or all x are equal.
    """
    x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if len(x) < 3 or np.ptp(x) == 0:
        raise InputError(f"a slope needs three components or more with different predictions; there are {len(x)}")
    sx, sy = np.broadcast_to(x_se, x.shape), np.broadcast_to(y_se, y.shape)
    floor = 1e-9 * max(np.ptp(y), np.finfo(float).tiny)  # an exact point must not carry an infinite weight
    vx, vy = sx**2, np.maximum(sy, floor) ** 2
    slope = float(np.polyfit(x, y, 1)[0])
    for _ in range(iterations):
        w = 1.0 / (vy + slope**2 * vx)
        xbar, ybar = np.average(x, weights=w), np.average(y, weights=w)
        u, v = x - xbar, y - ybar
        beta = w * (u * vy + slope * v * vx)
        new = float((w * beta * v).sum() / (w * beta * u).sum())
        done = abs(new - slope) <= CONVERGED * (1.0 + abs(new))
        slope = new
        if done:
            break
    w = 1.0 / (vy + slope**2 * vx)
    return slope, float(np.average(y, weights=w) - slope * np.average(x, weights=w))


def fit(chains: np.ndarray, predicted: np.ndarray, predicted_se: np.ndarray | float = 0.0) -> Fit:
    """Line through n components: `chains` (C, n) their means over each of C chains, `predicted` (n,) with its errors.

    Raises InputError for fewer than three chains or components.
    """
    chains, predicted = np.asarray(chains, dtype=np.float64), np.asarray(predicted, dtype=np.float64)
    count = len(chains)
    if count < 3:
        raise InputError(
            f"errors of a family come from the spread of its chains: at least 3 are needed, there are {count}"
        )
    measured = chains.mean(0)
    se = chains.std(0, ddof=1) / math.sqrt(count)
    # Equal weights: single errors from a few chains are too noisy to weigh by, and would favour lucky components.
    common = float(np.sqrt((se**2).mean()))
    slope, intercept = york(predicted, measured, predicted_se, common)
    left_out = np.array(
        [york(predicted, np.delete(chains, c, axis=0).mean(0), predicted_se, common) for c in range(count)]
    )
    spread = np.sqrt((count - 1) / count * ((left_out - left_out.mean(0)) ** 2).sum(0))
    spread = np.hypot(spread, _from_predictions(predicted, measured, predicted_se, common))
    r = float(np.corrcoef(predicted, measured)[0, 1]) if np.ptp(measured) > 0 else 0.0
    return Fit(slope, float(spread[0]), intercept, float(spread[1]), r, r * r, len(predicted), predicted, measured, se)


def _from_predictions(
    predicted: np.ndarray, measured: np.ndarray, predicted_se: np.ndarray | float, common: float
) -> np.ndarray:
    """(2,) errors of slope and intercept that independent errors of the predictions make: each is moved by its error in turn."""
    errors = np.broadcast_to(np.asarray(predicted_se, dtype=np.float64), predicted.shape)
    moved = np.zeros((2, len(predicted), 2))
    for i in np.flatnonzero(errors > 0):
        for side, sign in enumerate((1.0, -1.0)):
            shifted = predicted.copy()
            shifted[i] += sign * errors[i]
            moved[side, i] = york(shifted, measured, predicted_se, common)
    return np.sqrt((0.25 * (moved[0] - moved[1]) ** 2).sum(0))


@dataclass(frozen=True)
class Hotelling:
    """T^2 of a family against its prediction: statistic, its F-distributed form, degrees of freedom, and the p-value."""

    t2: float
    f: float
    components: int
    chains: int
    p: float


def hotelling(chains: np.ndarray, predicted: np.ndarray) -> Hotelling:
    """chi^2 of the mean of `chains` (C, n) about `predicted` (n,) with the measured covariance (Hotelling 1931).

    The covariance comes from only C chains, so the statistic follows T^2, not chi^2: (C - n) T^2/(n (C - 1)) ~ F(n, C - n).
    Raises InputError unless C > n: choose fewer components or run more chains; or where the covariance is singular.
    """
    chains = np.asarray(chains, dtype=np.float64)
    count, n = chains.shape
    if count <= n:
        raise InputError(f"{n} components need more than {n} chains for their covariance; there are {count}")
    deviation = chains.mean(0) - np.asarray(predicted)
    covariance = np.atleast_2d(np.cov(chains, rowvar=False)) / count
    scale = np.sqrt(np.diag(covariance))
    if not (scale > 0).all() or np.linalg.cond(covariance / np.outer(scale, scale)) > 1e12:
        raise InputError("the components do not vary independently between chains: leave out constant or repeated ones")
    t2 = float(deviation @ np.linalg.solve(covariance, deviation))
    f = (count - n) / (n * (count - 1)) * t2
    return Hotelling(t2, f, n, count, float(f_distribution.sf(f, n, count - n)))


def p_values(chains: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """(n,) two-sided p-values of single components: Student's t over the C chain means; NaN where a value is NaN."""
    chains = np.asarray(chains, dtype=np.float64)
    count = len(chains)
    se = chains.std(0, ddof=1) / math.sqrt(count)
    gap = abs(chains.mean(0) - predicted)
    t = np.divide(gap, se, out=np.where(gap > 0, np.inf, gap), where=se > 0)  # 0 where there is no gap, NaN stays NaN
    return 2.0 * t_distribution.sf(t, count - 1)


def discoveries(p: np.ndarray, rate: float = 0.05) -> np.ndarray:
    """(n,) bool: components that deviate, with the expected share of false ones at most `rate` (Benjamini & Hochberg 1995)."""
    p = np.asarray(p, dtype=np.float64)
    order = np.argsort(p)
    passed = p[order] <= rate * np.arange(1, len(p) + 1) / len(p)
    found = np.zeros(len(p), dtype=bool)
    if passed.any():
        found[order[: np.flatnonzero(passed)[-1] + 1]] = True
    return found


def upper(matrices: np.ndarray) -> np.ndarray:
    """(..., k(k+1)/2) the independent components of symmetric matrices (..., k, k)."""
    rows, columns = np.triu_indices(matrices.shape[-1])
    return matrices[..., rows, columns]
