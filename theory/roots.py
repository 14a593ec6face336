"""All roots of a smooth function on a grid: sign changes, and pairs of roots that hide between two nodes of equal sign."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

Scalar = Callable[[float], float]


def all_roots(x: np.ndarray, f: np.ndarray, df: np.ndarray, value: Scalar, derivative: Scalar) -> list[float]:
    """Ascending roots of `value` on the nodes x (n,), given it and its derivative there, f and df (n,).

    A sign change of f brackets a root (Brent's method, then one Newton step where it lowers the residual). Between nodes of equal
    sign, a sign change of df with f turning towards 0 brackets an extremum; if f has the other sign there, it has two roots. All
    are found if the derivative has at most one root between two nodes.
    """
    found: list[float] = []
    sign = np.sign(f)
    dips = (sign[:-1] == sign[1:]) & (sign[:-1] * df[:-1] < 0) & (sign[1:] * df[1:] > 0)
    for i in np.flatnonzero((sign[:-1] != sign[1:]) | dips):
        low, high = float(x[i]), float(x[i + 1])
        if dips[i]:
            turn = float(brentq(derivative, low, high, xtol=1e-14))
            if np.sign(value(turn)) == sign[i]:
                continue
            found += [_root(value, derivative, low, turn), _root(value, derivative, turn, high)]
        elif sign[i] == 0:
            found.append(low)
        elif sign[i + 1] != 0 or i + 2 == len(
            x
        ):  # a root on a node is counted once, as the low end of the next interval
            found.append(_root(value, derivative, low, high))
    return found


def _root(value: Scalar, derivative: Scalar, low: float, high: float) -> float:
    if value(low) == 0.0:
        return low
    x = float(brentq(value, low, high, xtol=1e-14, rtol=8.9e-16, maxiter=200))
    slope = derivative(x)
    polished = x - value(x) / slope if slope != 0 else x
    return polished if abs(value(polished)) < abs(value(x)) else x
