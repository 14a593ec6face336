"""A measured curve <O>(T), continuous in log T, with the errors of all its points together: made from values and slopes, or by MBAR."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import BPoly, CubicHermiteSpline
from scipy.stats import t as student

GRID = 161  # points in log T, the sampled temperatures besides


@dataclass(frozen=True, eq=False)
class Curve:
    """<O>(T) on a grid of log T, linear to first order in independent contributions, one a chain.

    x           (m,) log T, ascending;  nodes (K,) where in x the sampled temperatures stand
    mean        (m,) the curve
    deviations  K arrays (C_k, m): what each chain of the run at T_k adds to the curve, about its mean over these chains. Chains are
                independent, so the covariance of the curve is sum_k dev_k^T dev_k/(C_k (C_k - 1))
    method      "mbar" or "pointwise";  note what a reader should know of it
    interpolation  bound on the error of what stands between the sampled T: the largest miss at an inner sampled T when it is left out
                (NaN with fewer than 4 T); the error itself is about 16 times smaller
    """

    x: np.ndarray
    nodes: np.ndarray
    mean: np.ndarray
    deviations: tuple[np.ndarray, ...]
    method: str
    note: str = ""
    interpolation: float = float("nan")

    def combine(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(value, se, dof) of linear combinations `weights` (n, m) of the curve; dof by Welch and Satterthwaite."""
        variance, parts = np.zeros(len(weights)), np.zeros(len(weights))
        for deviation in self.deviations:
            count = len(deviation)
            part = ((deviation @ weights.T) ** 2).sum(0) / (count * (count - 1))
            variance += part
            parts += part**2 / (count - 1)
        dof = np.divide(variance**2, parts, out=np.full(len(weights), np.inf), where=parts > 0)
        return weights @ self.mean, np.sqrt(variance), dof

    def points(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(value, se, dof) at every point of the grid."""
        return self.combine(np.eye(len(self.x)))

    def gaps(self, here: np.ndarray, there: np.ndarray | int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(value, se, dof) of the curve at grid points `here` minus at `there`, their covariance carried."""
        here, there = np.broadcast_arrays(np.asarray(here), np.asarray(there))
        rows = np.zeros((len(here), len(self.x)))
        rows[np.arange(len(here)), here] += 1.0
        rows[np.arange(len(here)), there] -= 1.0
        return self.combine(rows)

    def slope(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(value, se, dof) of d<O>/dlogT at every point of the grid, by differences on it."""
        return self.combine(np.asarray(np.gradient(np.eye(len(self.x)), self.x, axis=0)))

    def level(self, level: float = 0.95) -> np.ndarray:
        """(m,) half width of the pointwise interval."""
        _, se, dof = self.points()
        return student.ppf(0.5 + level / 2.0, dof) * se


def grid(T: np.ndarray, points: int = GRID) -> tuple[np.ndarray, np.ndarray]:
    """(x, nodes): log T from the lowest to the highest of T (K,), ascending, with every T on it."""
    logs = np.log(np.asarray(T, dtype=np.float64))
    even = np.linspace(logs[0], logs[-1], points)
    # A grid point next to a node would make differences on the grid lose digits.
    far = np.abs(even[:, None] - logs).min(1) > 0.2 * (even[1] - even[0])
    x = np.sort(np.concatenate([logs, even[far]]))
    return x, np.searchsorted(x, logs)


def pointwise(
    T: np.ndarray,
    values: Sequence[np.ndarray],
    slopes: Sequence[np.ndarray],
    *,
    mean: np.ndarray | None = None,
    se: np.ndarray | None = None,
    note: str = "",
) -> Curve:
    """The cubic Hermite interpolant in log T through values and slopes d<O>/dlogT at T (K,), ascending.

    values, slopes  K arrays (C_k,), as each chain gives them (slopes NaN where unknown: those of parabolas through neighbours)
    mean, se        (K,) better estimates of the values and their errors, where there are any (control variates): the deviations of
                    the chains are brought to that error
    The interpolant is linear in what it goes through, so a chain's share in it is the interpolant of its own deviations.
    """
    x, nodes = grid(T)
    logs = np.log(T)
    count = len(T)
    centre = np.array([one.mean() for one in values]) if mean is None else np.asarray(mean, dtype=np.float64)
    scaled = [_scaled(one, None if se is None else float(se[k])) for k, one in enumerate(values)]
    known = all(np.isfinite(one).all() for one in slopes)
    tangents = np.array([one.mean() for one in slopes]) if known else _parabolas(logs) @ centre
    deviations = []
    for k in range(count):
        rows = np.zeros((len(scaled[k]), count))
        rows[:, k] = scaled[k]
        own = rows @ _parabolas(logs).T
        if known:
            own = np.zeros_like(rows)
            own[:, k] = slopes[k] - slopes[k].mean()
        deviations.append(_hermite(logs, rows, own)(x).T)
    miss = np.nan
    if count >= 4:
        misses = []
        for out in range(1, count - 1):
            keep = np.arange(count) != out
            rest = tangents[keep] if known else _parabolas(logs[keep]) @ centre[keep]
            misses.append(abs(float(_hermite(logs[keep], centre[keep], rest)(logs[out])) - centre[out]))
        miss = max(misses)
    return Curve(x, nodes, _hermite(logs, centre, tangents)(x), tuple(deviations), "pointwise", note, float(miss))


def _hermite(x: np.ndarray, values: np.ndarray, slopes: np.ndarray) -> CubicHermiteSpline | BPoly:
    """Of the last axis of values (..., K); evaluates to (m, ...)."""
    return CubicHermiteSpline(x, np.moveaxis(values, -1, 0), np.moveaxis(slopes, -1, 0))


def _scaled(values: np.ndarray, se: float | None) -> np.ndarray:
    """Deviations of chain means from their mean, at the standard error `se` of it."""
    deviation = values - values.mean()
    spread = float(values.std(ddof=1)) / np.sqrt(len(values))
    if se is None:
        return deviation
    if spread == 0:  # chains that say nothing of the error: it is put on two of them
        deviation[:2] = np.array([1.0, -1.0]) * se * np.sqrt(len(values) * (len(values) - 1) / 2.0)
        return deviation
    return deviation * (se / spread)


def _parabolas(x: np.ndarray) -> np.ndarray:
    """(K, K) derivative at each of K points of the parabola through it and its neighbours, as a matrix on the values."""
    count = len(x)
    out = np.zeros((count, count))
    for i in range(count):
        some = np.arange(count)[max(0, min(i - 1, count - 3)) : max(0, min(i - 1, count - 3)) + 3]
        for j in some:
            others = [o for o in some if o != j]
            denominator = np.prod([x[j] - x[o] for o in others])
            numerator = sum(np.prod([x[i] - x[p] for p in others if p != o]) for o in others)
            out[i, j] = numerator / denominator
    return out
