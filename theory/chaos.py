"""Wiener-chaos pieces of sigma: Hermite coefficients, moments of its derivatives, and exact covariances with s s^T.

With h ~ N(0, C) and :h^j: the Wick power (He_j scaled to the variance of h), sigma(h_m) = sum_j d_j(m) :h_m^j:/j! where
d_j(m) = E[sigma^(j)(h_m)]. Level 4 (theory.first_order) uses the parts of a.s that are of order 1, 3, 5, 7 as control variates.
"""

from __future__ import annotations

from math import comb, factorial, lgamma

import numpy as np

from data.errors import InputError
from theory import activations
from theory.activations import Activation, Erf, HermiteSeries, Linear, Sin

Array = np.ndarray


class Moments:
    """d_j(m) = E[sigma^(j)(h_m)] and M^{pq}_{mn} = E[sigma^(p)(h_m) sigma^(q)(h_n)] for h ~ N(0, C), C (P, P).

    orders  the odd j for which d_j and all M^{pq}, p + q <= j + 1 even, are known
    """

    orders: tuple[int, ...] = (1, 3, 5, 7)

    def __init__(self, activation: Activation, C: Array) -> None:
        self.activation, self.C, self.variance = activation, C, np.diagonal(C).copy()

    def coefficient(self, j: int) -> Array:
        """d_j (P,) for odd j."""
        raise TypeError("use moments(activation, C)")

    def matrix(self, p: int, q: int) -> Array:
        """M^{pq} (P, P); p + q even, the only ones that are not 0 for odd sigma. M^{pq} = (M^{qp})^T."""
        if p + q <= 2:
            parts = {(0, 0): self.activation.k, (1, 1): self.activation.kdot, (2, 0): self.activation.h}
            if (p, q) == (0, 2):
                return self.activation.h(self.variance, self.variance, self.C).T
            return parts[p, q](self.variance, self.variance, self.C)
        return self._higher(p, q) if p >= q else self._higher(q, p).T

    def _higher(self, p: int, q: int) -> Array:
        raise TypeError("use moments(activation, C)")


class LinearMoments(Moments):
    """sigma(h) = h: one order, and no derivative beyond the first."""

    orders = (1,)

    def coefficient(self, j: int) -> Array:
        return np.full(len(self.variance), 1.0 if j == 1 else 0.0)


class SinMoments(Moments):
    """Every derivative of sin is +-sin or +-cos, so every moment is K or Kdot up to its sign."""

    def coefficient(self, j: int) -> Array:
        return (-1.0) ** ((j - 1) // 2) * np.exp(-0.5 * self.variance)

    def _higher(self, p: int, q: int) -> Array:
        base = self.activation.kdot if p % 2 else self.activation.k
        sign = (-1.0) ** (p // 2 + q // 2)
        return sign * base(self.variance, self.variance, self.C)


class ErfMoments(Moments):
    """sigma' is a Gaussian, so E[sigma'(h_m + x) sigma'(h_n + y)] = (4/pi) D^{-1/2} exp(-A_mm x^2/2 - A_mn x y - A_nn y^2/2) with
    D = (1 + 2 C_mm)(1 + 2 C_nn) - 4 C_mn^2 and A = (2/D)(1 + 2 C_nn, -2 C_mn; -2 C_mn, 1 + 2 C_mm), and
    E[sigma'(h_m + x) sigma(h_n)] = (2/sqrt(pi)) sqrt(r) exp(-r x^2) erf(-B x), r = 1/(1 + 2 C_mm), B = 2 C_mn sqrt(r/D).
    M^{pq} are the Taylor coefficients of these in x and y.
    """

    def coefficient(self, j: int) -> Array:
        i, r = (j - 1) // 2, 1.0 / (1.0 + 2.0 * self.variance)
        return (2.0 / np.sqrt(np.pi)) * np.sqrt(r) * (-r) ** i * (factorial(2 * i) / factorial(i))

    def _higher(self, p: int, q: int) -> Array:
        gap = activations._product_gap(self.variance, self.variance, self.C)
        r = 1.0 / (1.0 + 2.0 * self.variance)[:, None]
        if q == 0:
            n = (p - 2) // 2
            B2 = 4.0 * self.C**2 * (r / gap)
            series = sum(
                (-r) ** (n - i) * (-B2) ** i / (factorial(n - i) * factorial(i) * (2 * i + 1)) for i in range(n + 1)
            )
            return -(8.0 / np.pi) * factorial(p - 1) * self.C * r / np.sqrt(gap) * series
        m, n = p - 1, q - 1
        own, cross = -1.0 / (r.T * gap), 4.0 * self.C / gap  # -A_mm/2 and -A_mn
        other = own.T
        total = np.zeros_like(self.C)
        for c in range(n % 2, n + 1, 2):
            i, j = (m - c) // 2, (n - c) // 2
            total += own**i * other**j * cross**c * (factorial(m) * factorial(n) / (factorial(i) * factorial(j) * factorial(c)))
        return (4.0 / np.pi) * total / np.sqrt(gap)


class SeriesMoments(Moments):
    """Any odd analytic sigma by Mehler's series: M^{pq} = sum_i A^p_i(m) A^q_i(n) rho^i with
    A^p_i(m) = a_{i+p}(m) sqrt((i+p)!/i!)/sd_m^p and a_i(m) = E[sigma(sd_m z) He_i(z)]/sqrt(i!) (trapezoid rule).

    The cut leaves |error| <= sqrt(tail^p_m tail^q_n), tail^p = sum of (A^p_i)^2 left out. Orders whose tails do not fall below
    `TOLERANCE` of the whole are left out of `orders`; order 1 needs only K, Kdot and H of the activation itself.
    """

    TERMS, TOLERANCE = 700, 1e-11

    def __init__(self, activation: Activation, C: Array) -> None:
        super().__init__(activation, C)
        self.sd = np.sqrt(self.variance)
        z = np.linspace(-13.0, 13.0, 6001)
        weight = np.exp(-0.5 * z * z) * (z[1] - z[0]) / np.sqrt(2.0 * np.pi)
        values = activation.sigma(self.sd[:, None] * z) * weight
        self.table = np.zeros((len(self.sd), self.TERMS))
        previous, current = np.zeros_like(z), np.ones_like(z)
        for i in range(self.TERMS):
            if i % 2:
                self.table[:, i] = values @ current
            previous, current = current, (z * current - np.sqrt(i) * previous) / np.sqrt(i + 1.0)
        scale = self.sd[:, None] * self.sd[None, :]
        self.rho = np.clip(np.divide(C, scale, out=np.zeros_like(C), where=scale > 0), -1.0, 1.0)
        self.orders = (1, *(j for j in (3, 5) if self._cut(self._derivative(j + 1)) is not None))

    def coefficient(self, j: int) -> Array:
        power = np.where(self.sd > 0, self.sd, 1.0) ** j
        return np.where(self.sd > 0, self.table[:, j] * np.sqrt(factorial(j)) / power, 0.0)

    def _derivative(self, p: int) -> Array:
        """A^p_i(m), (P, TERMS - p). A pattern of variance 0 gets 0: its moments only ever multiply a C_mk that is 0."""
        i = np.arange(self.TERMS - p)
        ratio = np.exp([0.5 * (lgamma(k + p + 1.0) - lgamma(k + 1.0)) for k in i])
        power = np.where(self.sd > 0, self.sd, np.inf)[:, None] ** p
        return self.table[:, p:] * ratio / power

    def _cut(self, series: Array) -> int | None:
        """The number of terms after which every pattern's tail is below TOLERANCE^2 of its whole, or None."""
        squares = series**2
        whole = squares.sum(1, keepdims=True)
        tails = whole - squares.cumsum(1)
        low = (np.maximum(tails, 0.0) <= self.TOLERANCE**2 * whole + 1e-300).all(0)
        small = (squares[:, -40:] <= (self.TOLERANCE**2 / self.TERMS) * whole + 1e-300).all()
        return int(np.argmax(low)) + 1 if small and low.any() else None

    def _higher(self, p: int, q: int) -> Array:
        left, right = self._derivative(p), self._derivative(q)
        terms = min(max(self._cut(left) or left.shape[1], self._cut(right) or right.shape[1]), left.shape[1], right.shape[1])
        total, power = np.zeros_like(self.C), np.ones_like(self.C) if p % 2 == 0 else self.rho.copy()
        # a_{i+p} is 0 unless i + p is odd: i runs over the parity of p + 1.
        for i in range((p + 1) % 2, terms, 2):
            del i
        raise NotImplementedError
