"""Gaussian expectations of any odd sigma by Mehler's series in Hermite polynomials, with a bound on the error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from data.errors import InputError
from theory.expectations import Activation

Array = np.ndarray
Function = Callable[[Array], Array]

STEPS, REACH = 3000, 13.0  # trapezoid rule on 0 <= z <= REACH; the normal density is 1e-37 at its end
TERMS = 4000  # most terms: enough for tanh up to an input variance of about 100
ROWS = 512  # patterns whose coefficients are computed together


@dataclass
class HermiteSeries(Activation):
    """K = sum_i a_i(m) a_i(n) rho^i, a_i(m) = E[sigma(sqrt(m) z) He_i(z)]/sqrt(i!), rho = C_mn/sqrt(mn)  (Mehler's formula).

    Kdot and H are the same sums over the coefficients of sigma' and sigma''. The coefficients come from a trapezoid rule, which
    converges geometrically for a sigma that is analytic around the real line. By Cauchy-Schwarz and Parseval, what a cut series
    leaves out is at most sqrt(tail_m tail_n), tail_m = E[sigma^2] - sum of the a_i^2 that were kept; terms are added until
    tail_m <= tolerance * E[sigma^2] for every pattern. So `error` = tolerance bounds |K_mn - exact|/sqrt(K_mm K_nn) at every rho,
    1 included.

    Raises InputError where `terms` terms do not reach that bound (input variances far above 1 for this sigma).
    """

    name: str
    function: Function
    first: Function
    second: Function
    terms: int = TERMS
    tolerance: float = 1e-12

    @property
    def error(self) -> float:  # type: ignore[override]
        return self.tolerance

    def sigma(self, h: Array) -> Array:
        return self.function(h)

    def sigma1(self, h: Array) -> Array:
        return self.first(h)

    def sigma2(self, h: Array) -> Array:
        return self.second(h)

    def k(self, m: Array, n: Array, c: Array) -> Array:
        return self._mehler(self.function, self.function, m, n, c, odd=True)

    def kdot(self, m: Array, n: Array, c: Array) -> Array:
        return self._mehler(self.first, self.first, m, n, c, odd=False)

    def h(self, m: Array, n: Array, c: Array) -> Array:
        return self._mehler(self.second, self.function, m, n, c, odd=True)

    def diagonal(self, m: Array) -> Array:
        z, weight = _rule()
        return np.concatenate([self.function(np.sqrt(rows)[:, None] * z) ** 2 @ weight for rows in _blocks(m)])

    def _mehler(self, f: Function, g: Function, m: Array, n: Array, c: Array, odd: bool) -> Array:
        """sum_i left_i(m) right_i(n) rho^i by Horner's rule in rho^2. The bound is a product, so both are cut at one order."""
        left = self._coefficients(f, m, odd, 1)
        right = left if f is g and n is m else self._coefficients(g, n, odd, left.shape[1])
        if left.shape[1] < right.shape[1]:
            left = self._coefficients(f, m, odd, right.shape[1])
        scale = np.sqrt(m)[:, None] * np.sqrt(n)[None, :]
        rho = np.clip(np.divide(c, scale, out=np.zeros_like(c), where=scale > 0), -1.0, 1.0)
        square, total = rho * rho, np.zeros_like(c)
        for i in range(left.shape[1] - 1, -1, -1):
            total *= square
            total += np.multiply.outer(left[:, i], right[:, i])
        return total * rho if odd else total

    def _coefficients(self, f: Function, m: Array, odd: bool, least: int) -> Array:
        """(P, n): a_i of f for i = 1, 3, 5, ... or i = 0, 2, 4, ..., as many as the bound asks for, and at least that many."""
        blocks = [self._block(f, rows, odd, least) for rows in _blocks(m)]
        needed = max(block.shape[1] for block in blocks)
        short = [block.shape[1] < needed for block in blocks]
        if any(short):
            pairs = zip(_blocks(m), blocks, short, strict=True)
            blocks = [self._block(f, rows, odd, needed) if redo else block for rows, block, redo in pairs]
        return np.concatenate(blocks)

    def _block(self, f: Function, m: Array, odd: bool, least: int) -> Array:
        z, weight = _rule()
        values = f(np.sqrt(m)[:, None] * z)
        total = values**2 @ weight
        tail, kept = total.copy(), []
        previous, current = np.zeros_like(z), np.ones_like(z)  # He_i/sqrt(i!)
        for i in range(self.terms):
            if i % 2 == odd:
                a = values @ (weight * current)
                kept.append(a)
                tail -= a * a
                if len(kept) >= least and (tail <= self.tolerance * total).all():
                    return np.array(kept).T
            previous, current = current, (z * current - np.sqrt(i) * previous) / np.sqrt(i + 1.0)
        worst = float(np.max(np.divide(tail, total, out=np.zeros_like(tail), where=total > 0)))
        raise InputError(
            f"{self.name}: the Hermite series of {self.terms} terms leaves an error bound of {worst:.1e} at input variance "
            f"{m.max():.3g}: standardise the inputs, raise lambda0, or take activation = 'erf', which has a closed form"
        )


def _rule() -> tuple[Array, Array]:
    """Nodes z >= 0 and weights of E[f(z)], z standard normal, for even f."""
    z = np.linspace(0.0, REACH, STEPS + 1)
    weight = np.exp(-0.5 * z * z) * (2.0 * z[1] / np.sqrt(2.0 * np.pi))
    weight[0] *= 0.5
    return z, weight


def _blocks(m: Array) -> list[Array]:
    return [m[i : i + ROWS] for i in range(0, len(m), ROWS)]
