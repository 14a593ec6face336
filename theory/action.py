"""The effective action S(Q), its certified saddle point, the zero-temperature limit, and p(Q|y) by quadrature."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln

from data.errors import InputError
from theory.spectrum import Spectrum

SCAN = 600  # points of the search for stationary points, even in log Q
DROP = 40.0  # p(Q|y) is integrated as far as exp(-DROP) of its maximum
POINTS = 1601  # of the trapezoid rule in log Q, whose error falls geometrically


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
    residual  dS/dlogQ at Qbar: 0 up to rounding
    bracket   (low, high) with dS/dlogQ < 0 at low and > 0 at high, and every stationary point between the two
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

    @property
    def certified(self) -> bool:
        """Whether the residual is rounding and no other stationary point found has a lower action."""
        lowest = min(point.action for point in self.stationary)
        here = min(self.stationary, key=lambda point: abs(point.Q - self.value))
        return abs(self.residual) < 1e-9 * (1.0 + self.value) and here.action <= lowest + 1e-12 * abs(lowest)


def _terms(spectrum: Spectrum, Q: np.ndarray, T: float, lambda1: float) -> tuple[np.ndarray, np.ndarray]:
    """kappa = Q l/lambda1 and k = T + kappa, each (..., P)."""
    kappa = np.multiply.outer(Q, spectrum.values) / lambda1
    return kappa, T + kappa


def action(spectrum: Spectrum, Q: np.ndarray | float, N1: int, T: float, lambda1: float = 1.0) -> np.ndarray:
    """S(Q) = Q - log Q + (1/N1)[log det K~ + y^T K~^{-1} y], K~ = T + (Q/lambda1) K (physics.md section 2)."""
    Q = np.asarray(Q, dtype=np.float64)
    _, k = _terms(spectrum, Q, T, lambda1)
    return Q - np.log(Q) + (np.log(k) + spectrum.y**2 / k).sum(-1) / N1


def slope(spectrum: Spectrum, Q: np.ndarray | float, N1: int, T: float, lambda1: float = 1.0) -> np.ndarray:
    """dS/dlogQ = Q - 1 + (1/N1) sum [kappa/k - y^2 kappa/k^2]."""
    Q = np.asarray(Q, dtype=np.float64)
    kappa, k = _terms(spectrum, Q, T, lambda1)
    return Q - 1.0 + (kappa / k * (1.0 - spectrum.y**2 / k)).sum(-1) / N1


def curvature(spectrum: Spectrum, Q: np.ndarray | float, N1: int, T: float, lambda1: float = 1.0) -> np.ndarray:
    """d^2 S/d(log Q)^2 = Q + (1/N1) sum [kappa T/k^2 - y^2 kappa (T - kappa)/k^3]."""
    Q = np.asarray(Q, dtype=np.float64)
    kappa, k = _terms(spectrum, Q, T, lambda1)
    return Q + (kappa * T / k**2 - spectrum.y**2 * kappa * (T - kappa) / k**3).sum(-1) / N1


def bracket(spectrum: Spectrum, N1: int, T: float, lambda1: float = 1.0) -> tuple[float, float]:
    """(low, high) outside which dS/dlogQ has no zero, for T > 0.

    kappa/k <= Q l/(lambda1 T) makes the slope negative below low = 1/(1 + Tr K/(N1 lambda1 T)); kappa/k^2 <= min(1/(4T), lambda1/l)
    for Q >= 1 makes it positive above high = 1 + sum y^2 min(1/(4T), lambda1/l)/N1.
    """
    values = spectrum.values
    low = 1.0 / (1.0 + values.sum() / (N1 * lambda1 * T))
    with np.errstate(divide="ignore"):
        largest = np.minimum(0.25 / T, lambda1 / values)
    return low * (1.0 - 1e-12), (1.0 + (spectrum.y**2 * largest).sum() / N1) * (1.0 + 1e-12)


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
    """The certified saddle point. Raises InputError for a temperature or width that has none."""
    spectrum.check_temperature(T)
    if T == 0:
        Q = zero_temperature(spectrum, N1, lambda1)
        point = _stationary(spectrum, Q, N1, T, lambda1)
        residual = float(slope(spectrum, Q, N1, T, lambda1))
        return SaddlePoint(T, N1, lambda1, Q, residual, (Q, Q), "closed form", (point,))
    low, high = bracket(spectrum, N1, T, lambda1)
    grid = np.geomspace(low, high, SCAN)
    slopes = slope(spectrum, grid, N1, T, lambda1)
    crossings = np.flatnonzero(np.sign(slopes[:-1]) * np.sign(slopes[1:]) <= 0)
    found: list[Stationary] = []
    for i in crossings:
        root = _root(spectrum, float(np.log(grid[i])), float(np.log(grid[i + 1])), N1, T, lambda1)
        if not found or abs(root / found[-1].Q - 1.0) > 1e-12:
            found.append(_stationary(spectrum, root, N1, T, lambda1))
    best = min(found, key=lambda point: point.action)
    status = "unique" if len(found) == 1 else f"lowest of {len(found)}"
    residual = float(slope(spectrum, best.Q, N1, T, lambda1))
    return SaddlePoint(T, N1, lambda1, best.Q, residual, (low, high), status, tuple(found))


def _root(spectrum: Spectrum, low: float, high: float, N1: int, T: float, lambda1: float) -> float:
    def at(x: float) -> float:
        return float(slope(spectrum, math.exp(x), N1, T, lambda1))

    if at(low) == 0.0:
        return math.exp(low)
    x = brentq(at, low, high, xtol=1e-15, rtol=8.9e-16, maxiter=300)
    bend = float(curvature(spectrum, math.exp(x), N1, T, lambda1))
    polished = x - at(x) / bend if bend != 0 else x
    return math.exp(polished if abs(at(polished)) <= abs(at(x)) else x)


def _stationary(spectrum: Spectrum, Q: float, N1: int, T: float, lambda1: float) -> Stationary:
    return Stationary(
        Q=Q,
        action=float(action(spectrum, Q, N1, T, lambda1)),
        curvature=float(curvature(spectrum, Q, N1, T, lambda1)),
    )


@dataclass(frozen=True, eq=False)
class OrderParameter:
    """p(Q | y) proportional to Q^{N1/2 - 1} exp(-N1 Q/2) N(y; 0, K~(Q)), on a grid (physics.md section 2).

    In log Q the density is exp(-N1 S(Q)/2) exactly, so its mode is Qbar. Exact for linear sigma at every N1, P, T.

    Q (n,) nodes, even in log Q;  weights (n,) that sum to 1;  log_evidence = log integral, with every constant:
    log p(y) of the network whose order parameter is Q ~ chi^2_{N1}/N1.
    """

    Q: np.ndarray
    weights: np.ndarray
    log_evidence: float

    @classmethod
    def of(cls, spectrum: Spectrum, saddle: SaddlePoint, points: int = POINTS) -> OrderParameter:
        """Integrates between where the density has fallen to exp(-40) of its maximum. Needs T > 0."""
        T, N1, lambda1 = saddle.T, saddle.N1, saddle.lambda1
        if T == 0:
            raise InputError("p(Q|y) needs T > 0: at T = 0 the evidence has no density (take a small T)")
        lowest = min(point.action for point in saddle.stationary)
        low, high = (
            _edge(spectrum, saddle, math.log(point.Q), direction, lowest)
            for point, direction in ((saddle.stationary[0], -1.0), (saddle.stationary[-1], 1.0))
        )
        x = np.linspace(low, high, points)
        S = action(spectrum, np.exp(x), N1, T, lambda1)
        density = np.exp(-0.5 * N1 * (S - lowest))
        total = float(np.trapezoid(density, x))
        constant = 0.5 * N1 * math.log(0.5 * N1) - float(gammaln(0.5 * N1)) - 0.5 * spectrum.P * math.log(2.0 * math.pi)
        weights = density * np.gradient(x)
        return cls(
            Q=np.exp(x), weights=weights / weights.sum(), log_evidence=constant - 0.5 * N1 * lowest + math.log(total)
        )

    def mean(self, values: np.ndarray) -> float:
        """Average over p(Q|y) of a function given at the nodes (n,)."""
        return float(self.weights @ values)

    @property
    def Q_mean(self) -> float:
        return self.mean(self.Q)

    @property
    def Q_sd(self) -> float:
        return math.sqrt(max(self.mean((self.Q - self.Q_mean) ** 2), 0.0))


def _edge(spectrum: Spectrum, saddle: SaddlePoint, start: float, direction: float, lowest: float) -> float:
    """The log Q in a direction where the density has fallen by DROP from its maximum."""

    def above(x: float) -> float:
        value = float(action(spectrum, math.exp(x), saddle.N1, saddle.T, saddle.lambda1))
        return 0.5 * saddle.N1 * (value - lowest) - DROP

    stride = 1.0 / math.sqrt(saddle.N1)
    inner = start
    outer = start + direction * stride
    while above(outer) < 0:
        inner, stride = outer, 2.0 * stride
        outer = outer + direction * stride
        if outer < -600:
            return -600.0  # Q has underflowed: what lies below weighs nothing in any average of finite functions
    if above(inner) >= 0:
        return inner
    return float(brentq(above, min(inner, outer), max(inner, outer), xtol=1e-6))
