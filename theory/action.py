"""The effective action S(Q), its certified saddle point, and the zero-temperature limit."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from data.errors import InputError
from theory.roots import all_roots
from theory.spectrum import ROUNDING, Spectrum

STEP = 0.05  # of the scan in log Q: each mode changes over a width of about 1
TINY = 1e-280  # Q and T lambda1/Q are kept between this and its inverse
ROWS = 64  # nodes of the scan in one product


@dataclass(frozen=True)
class Stationary:
    """A zero of dS/dlogQ with the action and its second derivative in log Q there (a minimum where that is positive)."""

    Q: float
    action: float
    curvature: float


@dataclass(frozen=True)
class SaddlePoint:
    """Qbar = argmin S(Q), certified.

    value     Qbar
    residual  dS/dlogQ at Qbar: 0 up to rounding;  scale  the sum of the sizes of its terms, which sets that rounding
    bracket   (low, high) with dS/dlogQ < 0 at low and > 0 at high, and every stationary point between the two (a proven bound)
    status    "unique", "lowest of n" (several stationary points: Qbar has the lowest action), "closed form" (T = 0)
    stationary  all stationary points found, in ascending Q
    """

    T: float
    N1: int
    lambda1: float
    value: float
    residual: float
    bracket: tuple[float, float]
    status: str
    stationary: tuple[Stationary, ...]
    scale: float = 1.0

    @property
    def certified(self) -> bool:
        """Whether the residual is rounding, Qbar is a minimum in the bracket, and no stationary point has a lower action."""
        here = min(self.stationary, key=lambda point: abs(math.log(point.Q / self.value)))
        lowest = min(point.action for point in self.stationary)
        return (
            abs(self.residual) <= 1e-11 * self.scale
            and here.curvature > 0
            and here.action <= lowest
            and self.bracket[0] < self.value < self.bracket[1]
        )


def _terms(spectrum: Spectrum, Q: np.ndarray | float, T: float, lambda1: float) -> tuple[np.ndarray, np.ndarray]:
    """kappa/k and k = T + kappa, kappa = Q l/lambda1, each (..., P)."""
    kappa = np.multiply.outer(np.asarray(Q, dtype=np.float64), spectrum.values / lambda1)
    k = T + kappa
    return kappa / k, k


def action(spectrum: Spectrum, Q: np.ndarray | float, N1: int, T: float, lambda1: float = 1.0) -> np.ndarray:
    """S(Q) = Q - log Q + (1/N1)[log det K~ + y^T K~^{-1} y], K~ = T + (Q/lambda1) K (physics.md section 2)."""
    _, k = _terms(spectrum, Q, T, lambda1)
    return Q - np.log(Q) + (np.log(k).sum(-1) + (1.0 / k) @ spectrum.y**2) / N1


def slope(spectrum: Spectrum, Q: np.ndarray | float, N1: int, T: float, lambda1: float = 1.0) -> np.ndarray:
    """dS/dlogQ = Q - 1 + (1/N1) sum [kappa/k - y^2 kappa/k^2], kappa = Q l/lambda1, k = T + kappa."""
    share, k = _terms(spectrum, Q, T, lambda1)
    return Q - 1.0 + (share.sum(-1) - (share / k) @ spectrum.y**2) / N1


def curvature(spectrum: Spectrum, Q: np.ndarray | float, N1: int, T: float, lambda1: float = 1.0) -> np.ndarray:
    """d^2 S/d(log Q)^2 = Q + (1/N1) sum [kappa T/k^2 - y^2 kappa (T - kappa)/k^3]."""
    share, k = _terms(spectrum, Q, T, lambda1)
    return Q + ((share * T / k).sum(-1) - (share * (T / k - share) / k) @ spectrum.y**2) / N1


def bracket(spectrum: Spectrum, N1: int, T: float, lambda1: float = 1.0) -> tuple[float, float]:
    """(low, high) outside which dS/dlogQ has no zero, for T > 0.

    kappa/k <= Q l/(lambda1 T) makes the slope negative below low = 1/(1 + Tr K/(N1 lambda1 T)); kappa/k^2 <= min(1/(4T), lambda1/l)
    for Q >= 1 makes it positive above high = 1 + sum y^2 min(1/(4T), lambda1/l)/N1.
    """
    low = 1.0 / (1.0 + float(spectrum.values.sum()) / (N1 * lambda1 * T))
    largest = lambda1 / np.maximum(spectrum.values, 4.0 * T * lambda1)
    return low * (1.0 - 1e-9), (1.0 + float(spectrum.y**2 @ largest) / N1) * (1.0 + 1e-9)


def zero_temperature(spectrum: Spectrum, N1: int, lambda1: float = 1.0) -> float:
    """Qbar at T = 0, closed form: [(1-alpha) + sqrt((1-alpha)^2 + 4 alpha lambda1 y^T K^{-1} y/P)]/2 (physics.md section 2).

    Raises InputError where K is singular, or where y = 0 and alpha >= 1, where S has no minimum at Q > 0.
    """
    spectrum.check_temperature(0.0)
    alpha = spectrum.P / N1
    energy = lambda1 * float((spectrum.y**2 / spectrum.values).sum()) / N1
    half = 0.5 * (1.0 - alpha)
    if energy == 0.0 and half <= 0.0:
        raise InputError("y = 0 with P >= N1 has no saddle point at T = 0 (Qbar -> 0): take T > 0")
    # The root without cancellation for either sign of 1 - alpha.
    root = math.hypot(half, math.sqrt(energy))
    return half + root if half >= 0 else energy / (root - half)


def solve(spectrum: Spectrum, N1: int, T: float, lambda1: float = 1.0) -> SaddlePoint:
    """The certified saddle point. Raises InputError for a temperature, width or precision that has none."""
    return solve_grid(spectrum, [(N1, T, lambda1)])[0]


def solve_grid(spectrum: Spectrum, cells: Iterable[tuple[int, float, float]]) -> list[SaddlePoint]:
    """The certified saddle point of each (N1, T, lambda1), in that order.

    The sums over modes depend on the ridge t = T lambda1/Q alone, so one table of them in log t serves the scans of all cells.
    """
    cells = list(cells)
    for N1, T, lambda1 in cells:
        spectrum.check_temperature(T)
        for name, value in (("N1", N1), ("lambda1", lambda1)):
            if not (math.isfinite(value) and value > 0):
                raise InputError(f"{name} = {value}: it must be a finite number > 0")
    warm = [cell for cell in cells if cell[1] > 0]
    brackets = [bracket(spectrum, *cell) for cell in warm]
    ridges = [T * lambda1 / Q for (_, T, lambda1), pair in zip(warm, brackets, strict=True) for Q in pair]
    if not all(TINY < number < 1.0 / TINY for number in (*ridges, *itertools.chain(*brackets))):
        raise InputError("Qbar is out of the range of float64: the labels, T, lambda1 or X are too large or too small")
    table, ends = _Table.of(spectrum, ridges), iter(brackets)
    return [_frozen(spectrum, *cell) if cell[1] == 0 else _warm(spectrum, table, *cell, next(ends)) for cell in cells]


def _frozen(spectrum: Spectrum, N1: int, T: float, lambda1: float) -> SaddlePoint:
    Q = zero_temperature(spectrum, N1, lambda1)
    return _certificate(spectrum, N1, T, lambda1, (0.5 * Q, 2.0 * Q), [Q], "closed form")


def _warm(
    spectrum: Spectrum, table: _Table, N1: int, T: float, lambda1: float, ends: tuple[float, float]
) -> SaddlePoint:
    def value(x: float) -> float:
        return float(slope(spectrum, math.exp(x), N1, T, lambda1))

    def derivative(x: float) -> float:
        return float(curvature(spectrum, math.exp(x), N1, T, lambda1))

    low, high = math.log(ends[0]), math.log(ends[1])
    x, f, df = table.scan(N1, T, lambda1)
    inside = (x > low) & (x < high)
    x, f, df = (
        np.concatenate([[first], middle[inside], [last]])
        for first, middle, last in (
            (low, x, high),
            (value(low), f, value(high)),
            (derivative(low), df, derivative(high)),
        )
    )
    found = [math.exp(root) for root in all_roots(x, f, df, value, derivative)]
    return _certificate(
        spectrum, N1, T, lambda1, ends, found, "unique" if len(found) == 1 else f"lowest of {len(found)}"
    )


def _certificate(
    spectrum: Spectrum,
    N1: int,
    T: float,
    lambda1: float,
    ends: tuple[float, float],
    found: list[float],
    status: str,
) -> SaddlePoint:
    Q = np.array(found)
    values, bends = action(spectrum, Q, N1, T, lambda1), curvature(spectrum, Q, N1, T, lambda1)
    points = tuple(Stationary(*map(float, point)) for point in zip(Q, values, bends, strict=True))
    best = min(points, key=lambda point: point.action).Q
    if spectrum.singular and T * lambda1 < ROUNDING * spectrum.values[-1] * best:
        raise InputError(
            f"T = {T:g} is below what float64 resolves beside the largest eigenvalue of K, {spectrum.values[-1]:.3g}, and K is "
            "singular, so nothing else regularises it: take a larger T, or remove the patterns that depend on others"
        )
    share, k = _terms(spectrum, best, T, lambda1)
    scale = best + 1.0 + float(share.sum() + (share / k) @ spectrum.y**2) / N1
    return SaddlePoint(T, N1, lambda1, best, float(slope(spectrum, best, N1, T, lambda1)), ends, status, points, scale)


@dataclass(frozen=True, eq=False)
class _Table:
    """Sums over modes at ridges t (n,), descending, r = l/(l + t): A = sum r, A1 = sum r (1 - r), B = sum y^2 r/(l + t),
    B1 = sum y^2 r (1 - 2r)/(l + t). Then dS/dlogQ = Q - 1 + (A - lambda1 B/Q)/N1, d^2S/d(logQ)^2 = Q + (A1 - lambda1 B1/Q)/N1."""

    t: np.ndarray
    A: np.ndarray
    A1: np.ndarray
    B: np.ndarray
    B1: np.ndarray

    @classmethod
    def of(cls, spectrum: Spectrum, ridges: list[float]) -> _Table:
        """Even in log t, from the largest of these ridges to the smallest."""
        low, high = (math.log(min(ridges)), math.log(max(ridges))) if ridges else (0.0, 0.0)
        t = np.exp(np.linspace(high, low, 2 + int((high - low) / STEP)))
        y2, rows = spectrum.y**2, []
        for block in (t[i : i + ROWS] for i in range(0, len(t), ROWS)):
            w = 1.0 / np.add.outer(block, spectrum.values)
            r = spectrum.values * w
            rw = r * w
            rows.append((r.sum(1), block * rw.sum(1), rw @ y2, rw @ y2 - 2.0 * (r * rw) @ y2))
        return cls(t, *map(np.concatenate, zip(*rows, strict=True)))

    def scan(self, N1: int, T: float, lambda1: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """log Q ascending, dS/dlogQ and d^2S/d(log Q)^2 at the nodes."""
        Q = T * lambda1 / self.t
        return (
            np.log(Q),
            Q - 1.0 + (self.A - lambda1 * self.B / Q) / N1,
            Q + (self.A1 - lambda1 * self.B1 / Q) / N1,
        )
