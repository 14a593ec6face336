"""Gaussian expectations K, Kdot, H of each zero-mean activation: closed forms, or a Hermite series with a stated error."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.special import erf

from data.errors import InputError

Array = np.ndarray


def _product_gap(m: Array, n: Array, c: Array) -> Array:
    """(1 + 2m)(1 + 2n) - 4c^2 > 0, for erf: the part of arcsin that is stable as patterns become parallel."""
    return (1.0 + 2.0 * m)[:, None] * (1.0 + 2.0 * n)[None, :] - 4.0 * c * c


class Activation:
    """Expectations over h ~ N(0, C) for patterns with variances m (P,), n (P',) and covariances c (P, P').

    k     K_mn    = E[sigma(h_m) sigma(h_n)]
    kdot  Kdot_mn = E[sigma'(h_m) sigma'(h_n)]
    h     H_mn    = E[sigma''(h_m) sigma(h_n)]        (physics.md sections 1 and 4)
    diagonal  E[sigma(h)^2] at variance m
    `error` bounds the absolute error of k; 0 for a closed form.
    """

    name: str
    error: float = 0.0

    def sigma(self, h: Array) -> Array:
        raise TypeError("an Activation is used through one of its kinds")

    def k(self, m: Array, n: Array, c: Array) -> Array:
        raise TypeError("an Activation is used through one of its kinds")

    def kdot(self, m: Array, n: Array, c: Array) -> Array:
        raise TypeError("an Activation is used through one of its kinds")

    def h(self, m: Array, n: Array, c: Array) -> Array:
        raise TypeError("an Activation is used through one of its kinds")

    def diagonal(self, m: Array) -> Array:
        raise TypeError("an Activation is used through one of its kinds")


class Erf(Activation):
    """erf(h): K = (2/pi) arcsin(...) in its arctan2 form (physics.md section 1; Williams, Neural Comput. 10, 1203 (1998))."""

    name = "erf"

    def sigma(self, h: Array) -> Array:
        return erf(h)

    def k(self, m: Array, n: Array, c: Array) -> Array:
        return (2.0 / np.pi) * np.arctan2(2.0 * c, np.sqrt(_product_gap(m, n, c)))

    def kdot(self, m: Array, n: Array, c: Array) -> Array:
        return (4.0 / np.pi) / np.sqrt(_product_gap(m, n, c))

    def h(self, m: Array, n: Array, c: Array) -> Array:
        return -(8.0 / np.pi) * c / ((1.0 + 2.0 * m)[:, None] * np.sqrt(_product_gap(m, n, c)))

    def diagonal(self, m: Array) -> Array:
        return (2.0 / np.pi) * np.arctan2(2.0 * m, np.sqrt(1.0 + 4.0 * m))


class Linear(Activation):
    """h: K = C, Kdot = 1, H = 0."""

    name = "linear"

    def sigma(self, h: Array) -> Array:
        return h

    def k(self, m: Array, n: Array, c: Array) -> Array:
        return c.copy()

    def kdot(self, m: Array, n: Array, c: Array) -> Array:
        return np.ones_like(c)

    def h(self, m: Array, n: Array, c: Array) -> Array:
        return np.zeros_like(c)

    def diagonal(self, m: Array) -> Array:
        return m.copy()


class Sin(Activation):
    """sin(h): K = exp(-(m+n)/2) sinh(c), Kdot = exp(-(m+n)/2) cosh(c), H = -K, written without overflow."""

    name = "sin"

    def _pair(self, m: Array, n: Array, c: Array) -> tuple[Array, Array]:
        half = 0.5 * (m[:, None] + n[None, :])
        return 0.5 * np.exp(c - half), 0.5 * np.exp(-c - half)

    def sigma(self, h: Array) -> Array:
        return np.sin(h)

    def k(self, m: Array, n: Array, c: Array) -> Array:
        near, far = self._pair(m, n, c)
        return near - far

    def kdot(self, m: Array, n: Array, c: Array) -> Array:
        near, far = self._pair(m, n, c)
        return near + far

    def h(self, m: Array, n: Array, c: Array) -> Array:
        return -self.k(m, n, c)

    def diagonal(self, m: Array) -> Array:
        return 0.5 * -np.expm1(-2.0 * m)


@dataclass
class HermiteSeries(Activation):
    """Any odd sigma: K = sum_k a_k(m) a_k(n) rho^k with a_k(m) = E[sigma(sqrt(m) z) He_k(z)]/sqrt(k!)  (Mehler's formula).

    Coefficients come from a trapezoid rule on the whole line, which converges geometrically for analytic sigma. The error of
    the cut series is bounded by Cauchy-Schwarz and Parseval: |error_mn| <= sqrt(tail_m tail_n), tail_m = E[sigma^2] - sum a_k^2.
    Raises InputError when `terms` do not bring the bound below `tolerance` (variances too large for this sigma).
    """

    name: str
    sigma_: Callable[[Array], Array]
    first: Callable[[Array], Array]
    second: Callable[[Array], Array]
    terms: int = 1200
    tolerance: float = 1e-11
    error: float = field(default=0.0, init=False)

    NODES, REACH, BLOCK = 6001, 13.0, 64

    def sigma(self, h: Array) -> Array:
        return self.sigma_(h)

    def k(self, m: Array, n: Array, c: Array) -> Array:
        return self._sum(self.sigma_, self.sigma_, m, n, c)

    def kdot(self, m: Array, n: Array, c: Array) -> Array:
        return self._sum(self.first, self.first, m, n, c)

    def h(self, m: Array, n: Array, c: Array) -> Array:
        return self._sum(self.second, self.sigma_, m, n, c)

    def diagonal(self, m: Array) -> Array:
        z, weight = self._grid()
        return np.array([weight @ self.sigma_(np.sqrt(v) * z) ** 2 for v in m])

    def _grid(self) -> tuple[Array, Array]:
        z = np.linspace(-self.REACH, self.REACH, self.NODES)
        return z, np.exp(-0.5 * z * z) * (z[1] - z[0]) / np.sqrt(2.0 * np.pi)

    def _sum(
        self, left: Callable[[Array], Array], right: Callable[[Array], Array], m: Array, n: Array, c: Array
    ) -> Array:
        z, weight = self._grid()
        same = left is right and m is n
        f = left(np.sqrt(m)[:, None] * z)
        g = f if same else right(np.sqrt(n)[:, None] * z)
        left_tail, right_tail = (f * f) @ weight, (g * g) @ weight
        scale = np.sqrt(m)[:, None] * np.sqrt(n)[None, :]
        rho = np.clip(np.divide(c, scale, out=np.zeros_like(c), where=scale > 0), -1.0, 1.0)
        total, power = np.zeros_like(c), np.ones_like(c)
        previous, current = np.zeros_like(z), np.ones_like(z)  # He_k/sqrt(k!)
        for k in range(self.terms):
            a = f @ (weight * current)
            b = a if same else g @ (weight * current)
            if np.any(a) and np.any(b):
                total += (a[:, None] * b[None, :]) * power
            left_tail, right_tail = left_tail - a * a, right_tail - b * b
            bound = np.sqrt(max(left_tail.max(), 0.0) * max(right_tail.max(), 0.0))
            if bound < self.tolerance:
                break
            power *= rho
            previous, current = current, (z * current - np.sqrt(k) * previous) / np.sqrt(k + 1.0)
        else:
            raise InputError(
                f"{self.name}: the Hermite series of {self.terms} terms leaves an error bound of {bound:.1e} at input variance "
                f"{max(m.max(), n.max()):.3g}; standardise the inputs or raise lambda0"
            )
        self.error = float(bound)
        return total


def _tanh_first(h: Array) -> Array:
    return 1.0 - np.tanh(h) ** 2


def _tanh_second(h: Array) -> Array:
    return -2.0 * np.tanh(h) * (1.0 - np.tanh(h) ** 2)


NOT_ODD = {
    "relu": "E[relu(h)] is not 0",
    "sigmoid": "E[sigmoid(h)] is 1/2, not 0",
    "softplus": "E[softplus(h)] is not 0",
    "gelu": "E[gelu(h)] is not 0",
    "cos": "E[cos(h)] is not 0",
}
NAMES = ("erf", "linear", "tanh", "sin")


def get(name: str) -> Activation:
    """The activation of that name.

    Raises InputError for a sigma that is not odd, with the reason (Eq. (1)-(8) have one order parameter, which needs
    E[sigma(h)] = 0; physics.md section 1), and for an unknown name, with the nearest known one.
    """
    if name == "erf":
        return Erf()
    if name == "linear":
        return Linear()
    if name == "sin":
        return Sin()
    if name == "tanh":
        return HermiteSeries("tanh", np.tanh, _tanh_first, _tanh_second)
    if name.lower() in NOT_ODD:
        raise InputError(
            f"activation = {name!r} is refused: {NOT_ODD[name.lower()]}, and the theory's one order parameter holds for "
            f"zero-mean activations only; use one of {', '.join(NAMES)}"
        )
    near = difflib.get_close_matches(name, NAMES, n=1)
    raise InputError(
        f"activation = {name!r} is unknown{f'; did you mean {near[0]!r}?' if near else ''} ({', '.join(NAMES)})"
    )
