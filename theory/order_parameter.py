"""p(Q | y), the distribution of the order parameter at finite width, by quadrature in log Q."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln

from data.errors import InputError
from theory.action import SaddlePoint
from theory.spectrum import ROUNDING, Spectrum

DROP = 40.0  # integrated as far as exp(-DROP) of the maximum
ACCURACY = 1e-12  # relative change at the last halving of the step
MOST_POINTS = 2**18


@dataclass(frozen=True, eq=False)
class OrderParameter:
    """p(Q | y) proportional to Q^{N1/2 - 1} exp(-N1 Q/2) N(y; 0, K~(Q)), on a grid (physics.md section 2).

    In log Q the density is exp(-N1 S(Q)/2) exactly, so its mode is Qbar. Exact for linear sigma at every N1, P, T. At T = 0 (K
    invertible) it is the generalised inverse Gaussian with p = (N1 - P)/2, a = N1, b = lambda1 y^T K^{-1} y.

    Q (n,) nodes, even in log Q;  weights (n,) that sum to 1;  log_evidence = log integral, with every constant:
    log p(y) of the network whose order parameter is Q ~ chi^2_{N1}/N1
    error   largest change, relative to 1, of the integral, <Q> and <log Q> at the last halving of the step: at most 1e-12, or the
            rounding of N1 S where that is larger. The trapezoid rule converges geometrically: its own error is far smaller
    """

    Q: np.ndarray
    weights: np.ndarray
    log_evidence: float
    error: float

    @classmethod
    def of(cls, spectrum: Spectrum, saddle: SaddlePoint, points: int | None = None) -> OrderParameter:
        """Integrates between where the density has fallen to exp(-40) of its maximum.

        On `points` nodes (then `error` says nothing), or on as many as ACCURACY needs. Raises InputError if MOST_POINTS do not do.
        """
        N1 = saddle.N1
        lowest = min(point.action for point in saddle.stationary)

        def log_density(x: np.ndarray | float) -> np.ndarray:
            return -0.5 * N1 * _rise(spectrum, saddle, np.asarray(x, dtype=np.float64))

        # Phases too rare to weigh anything are left out.
        phases = [point for point in saddle.stationary if 0.5 * N1 * (point.action - lowest) < DROP]
        widths = [math.sqrt(2.0 / (N1 * point.curvature)) for point in phases if point.curvature > 0]
        width = min([1.0, *widths])
        low = _edge(log_density, math.log(phases[0].Q), -width)
        high = _edge(log_density, math.log(phases[-1].Q), width)
        first = points or 2 + int((high - low) / (0.6 * width))
        x = np.linspace(low, high, first)
        # N1 S is a sum of terms that cancel: its rounding is the floor of what the refinement can reach.
        accuracy = max(ACCURACY, 4.0 * ROUNDING * N1 * saddle.scale * min(high - low, 1.0))
        logs, last, error = log_density(x), np.zeros(3), math.inf
        while True:
            density = np.exp(logs)
            total = float(np.trapezoid(density, x))
            weights = density / density.sum()
            now = np.array([total, weights @ np.exp(x), weights @ x])
            error = float(np.max(np.abs(now - last) / np.array([total, now[1], 1.0])))
            if points is not None or error < accuracy:
                break
            if len(x) > MOST_POINTS:
                raise InputError(
                    f"p(Q|y) is not resolved by {len(x)} points at N1 = {N1}, T = {saddle.T:g}: check the data"
                )
            last = now
            middle = 0.5 * (x[:-1] + x[1:])
            x, logs = (_interleave(*pair) for pair in ((x, middle), (logs, log_density(middle))))
        constant = 0.5 * N1 * math.log(0.5 * N1) - float(gammaln(0.5 * N1)) - 0.5 * spectrum.P * math.log(2.0 * math.pi)
        return cls(np.exp(x), weights, constant - 0.5 * N1 * lowest + math.log(total), error)

    def mean(self, values: np.ndarray) -> float:
        """Average over p(Q|y) of a function given at the nodes (n,)."""
        return float(self.weights @ values)

    @property
    def Q_mean(self) -> float:
        return self.mean(self.Q)

    @property
    def Q_sd(self) -> float:
        return math.sqrt(max(self.mean((self.Q - self.Q_mean) ** 2), 0.0))


def _rise(spectrum: Spectrum, saddle: SaddlePoint, x: np.ndarray) -> np.ndarray:
    """S(e^x) - S(Qbar), from the changes of its terms, so that no digits are lost where N1 is large."""
    T, Q = saddle.T, saddle.value
    kappa = Q * spectrum.values / saddle.lambda1
    k, step = T + kappa, np.atleast_1d(x - math.log(Q))
    change = np.multiply.outer(np.expm1(step), kappa / k)  # K~(e^x)/K~(Qbar) - 1, by mode
    ratio = (T + np.multiply.outer(np.exp(step), kappa)) / k
    near = np.abs(step) < 0.5
    logs = np.empty(len(step))
    logs[near], logs[~near] = np.log1p(change[near]).sum(-1), np.log(ratio[~near]).sum(-1)
    rise = Q * np.expm1(step) - step + (logs - (change / ratio) @ (spectrum.y**2 / k)) / saddle.N1
    return rise.reshape(np.shape(x))


def _interleave(outer: np.ndarray, inner: np.ndarray) -> np.ndarray:
    both = np.empty(len(outer) + len(inner))
    both[::2], both[1::2] = outer, inner
    return both


def _edge(log_density: Callable[[float], np.ndarray], start: float, stride: float) -> float:
    """The log Q, from `start` in the direction of `stride`, where the density has fallen by DROP from its maximum."""
    inner, outer, reach = start, start + stride, stride
    while log_density(outer) > -DROP:
        reach *= 2.0
        inner, outer = outer, outer + reach
        if outer < -600:
            return -600.0  # Q has underflowed: what lies below weighs nothing in any average of finite functions
    if log_density(inner) <= -DROP:
        return inner
    near = 0.1 * abs(stride)
    edge = float(brentq(lambda x: float(log_density(x)) + DROP, inner, outer, xtol=near, rtol=1e-12))
    return edge + math.copysign(near, stride)  # never inside
