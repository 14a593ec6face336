"""Wiener-chaos pieces of sigma: moments of its derivatives, and the exact covariance of a control variate with s s^T.

With h ~ N(0, C) and :h^j: the Wick power (He_j at the variance of h), sigma(h_m) = sum_j d_j(m) :h_m^j:/j! with
d_j(m) = E[sigma^(j)(h_m)]. So a.s = alpha_1 + alpha_3 + alpha_5 + ..., alpha_j = sum_m a_m d_j(m) :h_m^j:/j!. The products
alpha_1 alpha_j have exactly known covariances with every s_k s_l: they are the control variates of level 4 (theory.first_order).
"""

from __future__ import annotations

from math import comb, factorial

import numpy as np

from theory.activations import Activation

Array = np.ndarray


class Moments:
    """d_j(m) = E[sigma^(j)(h_m)] and M^{pq}_{mn} = E[sigma^(p)(h_m) sigma^(q)(h_n)], h ~ N(0, C), C (P, P), sigma odd.

    orders  the odd j for which d_j and every M^{pq} with p + q = j + 1 or j - 1 are known
    """

    orders: tuple[int, ...] = (1, 3, 5, 7)

    def __init__(self, activation: Activation, C: Array) -> None:
        self.activation, self.C, self.variance = activation, C, np.diagonal(C).copy()
        self._kept: dict[tuple[int, int], Array] = {}

    def coefficient(self, j: int) -> Array:
        """d_j (P,) for odd j."""
        raise TypeError("Moments are made by moments(activation, C)")

    def matrix(self, p: int, q: int) -> Array:
        """M^{pq} (P, P) for p + q even (it is 0 otherwise). M^{pq} = (M^{qp})^T. Kept until a p + q higher by 4 is asked for."""
        if p < q:
            return self.matrix(q, p).T
        if (p, q) not in self._kept:
            self._kept = {pair: kept for pair, kept in self._kept.items() if sum(pair) > p + q - 4}
            self._kept[p, q] = self._low(p, q) if p + q <= 2 else self._higher(p, q)
        return self._kept[p, q]

    def _low(self, p: int, q: int) -> Array:
        kind = {(0, 0): self.activation.k, (1, 1): self.activation.kdot, (2, 0): self.activation.h}[p, q]
        return kind(self.variance, self.variance, self.C)

    def _higher(self, p: int, q: int) -> Array:
        raise TypeError("Moments are made by moments(activation, C)")


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
        return (-1.0) ** (p // 2 + q // 2) * base(self.variance, self.variance, self.C)


class ErfMoments(Moments):
    """sigma' is a Gaussian, so the shifted moments are closed forms, and M^{pq} are their Taylor coefficients:

    E[sigma'(h_m + x) sigma'(h_n + y)] = (4/pi) D^{-1/2} exp(-A_mm x^2/2 - A_nn y^2/2 - A_mn x y)
    E[sigma'(h_m + x) sigma(h_n)]      = -(2/sqrt(pi)) sqrt(r_m) exp(-r_m x^2) erf(B x)
    r_m = 1/(1 + 2 C_mm),  D = 1/(r_m r_n) - 4 C_mn^2,  A_mm = 2/(r_n D),  A_mn = -4 C_mn/D,  B = 2 C_mn sqrt(r_m/D).
    """

    def coefficient(self, j: int) -> Array:
        i, r = (j - 1) // 2, 1.0 / (1.0 + 2.0 * self.variance)
        return (2.0 / np.sqrt(np.pi)) * np.sqrt(r) * (-r) ** i * (factorial(2 * i) / factorial(i))

    def _higher(self, p: int, q: int) -> Array:
        r = 1.0 / (1.0 + 2.0 * self.variance)
        D = 1.0 / np.multiply.outer(r, r) - 4.0 * self.C**2
        if q == 0:
            n = (p - 2) // 2
            minus_B2 = -4.0 * self.C**2 * r[:, None] / D
            series = np.zeros_like(D)  # Horner in -B^2, with powers of r by row
            for i in range(n, -1, -1):
                weight = factorial(n - i) * factorial(i) * (2 * i + 1)
                series = series * minus_B2 + ((-r) ** (n - i) / weight)[:, None]
            return -(8.0 / np.pi) * factorial(p - 1) * r[:, None] * self.C * series / np.sqrt(D)
        m, n = p - 1, q - 1
        # x^2/D and y^2/D carry (-1/r_n)^i (-1/r_m)^j, and (x y)^c carries (4 C)^c: every term has D^{-(m+n)/2}.
        total, square = np.zeros_like(D), (4.0 * self.C) ** 2
        for c in range(n, -1, -2):  # Horner in (4 C)^2
            i, j = (m - c) // 2, (n - c) // 2
            weight = factorial(m) * factorial(n) // (factorial(i) * factorial(j) * factorial(c))
            total = total * square + float(weight) * np.multiply.outer((-1.0 / r) ** j, (-1.0 / r) ** i)
        if n % 2:
            total *= 4.0 * self.C
        return (4.0 / np.pi) * total / (_power(D, (m + n) // 2) * np.sqrt(D))


class SeriesMoments(Moments):
    """Any odd analytic sigma, by Mehler's series M^{pq} = sum_i A^p_i(m) A^q_i(n) rho_mn^i.

    A^p_i(m) = a_{i+p}(m) sqrt((i+p)!/i!)/sd_m^p, a_i(m) = E[sigma(sd_m z) He_i(z)]/sqrt(i!) by a trapezoid rule. The series
    stops where all |a_i| have fallen below CUT of their norm; what is left out is of order CUT^2 i^{(p+q)/2}, 1e-9 or less.
    Where they have not after TERMS terms (input variance far above 1), `orders` is (1,), which needs only K, Kdot and H of
    the activation itself.
    """

    TERMS, CUT = 1000, 1e-9

    def __init__(self, activation: Activation, C: Array) -> None:
        super().__init__(activation, C)
        self.sd = np.sqrt(self.variance)
        z = np.linspace(-13.0, 13.0, 6001)
        weighted = activation.sigma(self.sd[:, None] * z) * (
            np.exp(-0.5 * z * z) * (z[1] - z[0]) / np.sqrt(2.0 * np.pi)
        )
        self.table = np.zeros((len(self.sd), self.TERMS))
        previous, current = np.zeros_like(z), np.ones_like(z)  # He_i/sqrt(i!)
        self.orders = (1,)
        for i in range(self.TERMS):
            if i % 2:
                self.table[:, i] = weighted @ current
                norm = np.sqrt((self.table**2).sum(1))
                if i > 8 and (np.abs(self.table[:, [i - 2, i]]) <= self.CUT * norm[:, None]).all():
                    self.table = self.table[:, : i + 1]
                    self.orders = (1, 3, 5)
                    break
            previous, current = current, (z * current - np.sqrt(i) * previous) / np.sqrt(i + 1.0)
        scale = self.sd[:, None] * self.sd[None, :]
        self.rho = np.clip(np.divide(C, scale, out=np.zeros_like(C), where=scale > 0), -1.0, 1.0)

    def coefficient(self, j: int) -> Array:
        return self._derivative(j)[:, 0]

    def _low(self, p: int, q: int) -> Array:
        return super()._low(p, q) if self.orders == (1,) else self._higher(p, q)

    def _derivative(self, p: int) -> Array:
        """A^p_i(m), (P, terms). A pattern of variance 0 gets 0 for p > 0: there d_p only ever multiplies powers of h = 0."""
        i = np.arange(self.table.shape[1] - p)
        rising = np.prod([np.sqrt(i + k) for k in range(1, p + 1)], axis=0) if p else np.ones(len(i))
        power = np.where(self.sd > 0, self.sd, np.inf)[:, None] ** p
        return self.table[:, p:] * rising / power

    def _higher(self, p: int, q: int) -> Array:
        left, right = self._derivative(p), self._derivative(q)
        total, square = np.zeros_like(self.C), self.rho**2
        start = (p + 1) % 2  # a_i is 0 for even i
        power = self.rho.copy() if start else np.ones_like(self.C)
        for i in range(start, left.shape[1], 2):
            total += (left[:, i, None] * right[:, i]) * power
            power *= square
        return total


def moments(activation: Activation, C: Array) -> Moments:
    """The moments of that activation over h ~ N(0, C)."""
    kinds = {"erf": ErfMoments, "linear": LinearMoments, "sin": SinMoments}
    return kinds.get(activation.name, SeriesMoments)(activation, C)


def wick_table(known: Moments) -> Array:
    """(J, J', P) coefficients t with  d_j(m) :h_m^j:/j! = sum_i t[j', i, m] h_m^{2i+1},  j = known.orders[j']."""
    size = len(known.orders)
    table = np.zeros((size, size, len(known.variance)))
    for row, j in enumerate(known.orders):
        d = known.coefficient(j)
        for k in range((j + 1) // 2):  # He_j(x) = j! sum_k (-1)^k x^{j-2k}/(k! (j-2k)! 2^k)
            table[row, (j - 1) // 2 - k] = d * (-0.5 * known.variance) ** k / (factorial(k) * factorial(j - 2 * k))
    return table


def covariance_with_features(known: Moments, a: Array, j: int) -> Array:
    """Cov_0(alpha_1 alpha_j, s_k s_l) (P, P), exact, for contrast a (P,) and j in known.orders.

    alpha_1 :h_m^j: = :alpha_1 h_m^j: + j b_m :h_m^{j-1}:, b_m = Cov(alpha_1, h_m), and by Stein's lemma
    E[:alpha_1 h_m^j: s_k s_l] = E[(b.d)(C_m.d)^j s_k s_l], d the gradient in h: a sum over how many of the derivatives fall
    on k. Summed over m, each term is one matrix product C^x diag(.) C^y (powers by element), so all of it is O(P^3).
    """
    C = known.C
    b = C @ (a * known.coefficient(1))
    g = a * known.coefficient(j) / factorial(j)
    half = np.zeros_like(C)
    for x in range(j + 1):
        half += comb(j, x) * _joined(C, g, x, j - x) * known.matrix(x + 1, j - x)
    half *= b[:, None]
    total = half + half.T
    if j > 1:
        for x in range(j):
            total += comb(j - 1, x) * _joined(C, j * g * b, x, j - 1 - x) * known.matrix(x, j - 1 - x)
    return total


def _joined(C: Array, g: Array, x: int, y: int) -> Array:
    """sum_m C_km^x g_m C_ml^y, (P, P) or what broadcasts to it."""
    if x == 0:
        return (g @ _power(C, y))[None, :]
    if y == 0:
        return (_power(C, x) @ g)[:, None]
    return (_power(C, x) * g) @ _power(C, y)


def _power(C: Array, n: int) -> Array:
    """C^n by element; repeated products, which are many times faster than numpy's power."""
    result = np.ones_like(C) if n == 0 else C
    for _ in range(n - 1):
        result = result * C
    return result


def covariance_with_form(known: Moments, M: Array, block: Array, j: int) -> Array:
    """Cov_0(alpha_1^m alpha_j^n + alpha_j^m alpha_1^n, s^T M s) (B, B), exact, for m, n in block.

    block (B,) holds indices of patterns, M (P, P) is symmetric, alpha_j^m = d_j(m) :h_m^j:/j! is the order-j part of s_m. For j = 1
    the value is Cov_0(alpha_1^m alpha_1^n, s^T M s), once. The terms are those of covariance_with_features, summed over k and l
    with M instead of over m: O(P^2 B).
    """
    C = known.C[:, block]
    first, last = known.coefficient(1)[block], known.coefficient(j)[block] / factorial(j)
    total = np.zeros((C.shape[1], C.shape[1]))
    for x in range(j + 1):
        solved = (M * known.matrix(x + 1, j - x)) @ _power(C, j - x)
        total += (2.0 * comb(j, x)) * (C.T @ (_power(C, x) * solved))
    if j > 1:
        own = np.zeros(C.shape[1])
        for x in range(j):
            solved = (M * known.matrix(x, j - 1 - x)) @ _power(C, j - 1 - x)
            own += comb(j - 1, x) * np.einsum("kn,kn->n", _power(C, x), solved)
        total += j * C[block] * own
    total *= np.multiply.outer(first, last)
    return 0.5 * (total + total.T) if j == 1 else total + total.T
