"""All roots of a smooth function on a grid: sign changes, and pairs of roots that hide between two nodes of equal sign."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq

Scalar = Callable[[float], float]
INWARD = 1e-9  # of an interval: how far the search keeps from a node that is itself a root


def all_roots(x: np.ndarray, f: np.ndarray, df: np.ndarray, value: Scalar, derivative: Scalar) -> list[float]:
    """Ascending roots of `value` on the nodes x (n,), given it and its derivative there, f and df (n,).

    A sign change of f brackets a root (Brent's method, then one Newton step where it lowers the residual). Between nodes of equal
    sign, a sign change of df with f turning towards 0 brackets an extremum; if f has the other sign there, it has two roots. All
    simple roots are found if the derivative has at most one root between two nodes.
    """
    at_node = f == 0
    right = np.where(at_node, np.sign(df), np.sign(f))[:-1]  # sign of f just right of the low end of each interval
    left = np.where(at_node, -np.sign(df), np.sign(f))[1:]  # and just left of its high end
    dips = (right == left) & (right * df[:-1] < 0) & (left * df[1:] > 0)
    found = list(x[at_node])
    for i in np.flatnonzero((right != left) | dips):
        inward = INWARD * (x[i + 1] - x[i])
        low, high = float(x[i] + inward * at_node[i]), float(x[i + 1] - inward * at_node[i + 1])
        if dips[i]:
            turn = float(brentq(derivative, low, high, xtol=1e-14))
            if value(turn) * right[i] < 0:
                found += [_root(value, derivative, low, turn), _root(value, derivative, turn, high)]
        elif value(low) * value(high) <= 0:
            found.append(_root(value, derivative, low, high))
    return sorted(float(root) for root in found)


def _root(value: Scalar, derivative: Scalar, low: float, high: float) -> float:
    if value(low) == 0.0:
        return low
    x = float(brentq(value, low, high, xtol=1e-14, rtol=8.9e-16, maxiter=200))
    slope = derivative(x)
    polished = x - value(x) / slope if slope != 0 else x
    return polished if low <= polished <= high and abs(value(polished)) < abs(value(x)) else x
