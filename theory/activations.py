"""Gaussian expectations K, Kdot, H of each zero-mean activation: closed forms here, tanh by theory.hermite."""

from __future__ import annotations

import difflib

import numpy as np
from scipy.special import erf

from data.errors import InputError
from theory.expectations import Activation
from theory.hermite import HermiteSeries

__all__ = ["NAMES", "Activation", "Erf", "HermiteSeries", "Linear", "Sin", "get"]

Array = np.ndarray


class Erf(Activation):
    """erf(h): K = (2/pi) arcsin(...) in its arctan2 form (physics.md section 1; Williams, Neural Comput. 10, 1203 (1998))."""

    name = "erf"

    def sigma(self, h: Array) -> Array:
        return erf(h)

    def sigma1(self, h: Array) -> Array:
        return (2.0 / np.sqrt(np.pi)) * np.exp(-h * h)

    def sigma2(self, h: Array) -> Array:
        return -2.0 * h * self.sigma1(h)

    def k(self, m: Array, n: Array, c: Array) -> Array:
        return (2.0 / np.pi) * np.arctan2(2.0 * c, np.sqrt(_gap(m, n, c)))

    def kdot(self, m: Array, n: Array, c: Array) -> Array:
        return (4.0 / np.pi) / np.sqrt(_gap(m, n, c))

    def h(self, m: Array, n: Array, c: Array) -> Array:
        return -(8.0 / np.pi) * c / ((1.0 + 2.0 * m)[:, None] * np.sqrt(_gap(m, n, c)))

    def diagonal(self, m: Array) -> Array:
        return (2.0 / np.pi) * np.arctan2(2.0 * m, np.sqrt(1.0 + 4.0 * m))


def _gap(m: Array, n: Array, c: Array) -> Array:
    """(1 + 2m)(1 + 2n) - 4c^2, written so that parallel patterns (c^2 = mn up to rounding) give 1 + 2m + 2n and never less."""
    own, other = m[:, None], n[None, :]
    return 1.0 + 2.0 * (own + other) + 4.0 * np.maximum(own * other - c * c, 0.0)


class Linear(Activation):
    """h: K = C, Kdot = 1, H = 0."""

    name = "linear"

    def sigma(self, h: Array) -> Array:
        return h

    def sigma1(self, h: Array) -> Array:
        return np.ones_like(h)

    def sigma2(self, h: Array) -> Array:
        return np.zeros_like(h)

    def k(self, m: Array, n: Array, c: Array) -> Array:
        return c.copy()

    def kdot(self, m: Array, n: Array, c: Array) -> Array:
        return np.ones_like(c)

    def h(self, m: Array, n: Array, c: Array) -> Array:
        return np.zeros_like(c)

    def diagonal(self, m: Array) -> Array:
        return m.copy()


class Sin(Activation):
    """sin(h): K = exp(-(m+n)/2) sinh(c), Kdot = exp(-(m+n)/2) cosh(c), H = -K, written without overflow or cancellation."""

    name = "sin"

    def sigma(self, h: Array) -> Array:
        return np.sin(h)

    def sigma1(self, h: Array) -> Array:
        return np.cos(h)

    def sigma2(self, h: Array) -> Array:
        return -np.sin(h)

    def k(self, m: Array, n: Array, c: Array) -> Array:
        half = 0.5 * (m[:, None] + n[None, :])
        # sinh(c) e^-half = sign(c) e^(|c| - half) (1 - e^(-2|c|))/2: expm1 keeps the digits of a small c
        size = np.abs(c)
        return np.sign(c) * (-0.5) * np.exp(size - half) * np.expm1(-2.0 * size)

    def kdot(self, m: Array, n: Array, c: Array) -> Array:
        half = 0.5 * (m[:, None] + n[None, :])
        return 0.5 * (np.exp(c - half) + np.exp(-c - half))

    def h(self, m: Array, n: Array, c: Array) -> Array:
        return -self.k(m, n, c)

    def diagonal(self, m: Array) -> Array:
        return -0.5 * np.expm1(-2.0 * m)


NOT_ODD = {
    "relu": "E[relu(h)] is not 0",
    "leaky_relu": "E[leaky_relu(h)] is not 0",
    "elu": "E[elu(h)] is not 0",
    "selu": "E[selu(h)] is not 0",
    "silu": "E[silu(h)] is not 0",
    "swish": "E[swish(h)] is not 0",
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
    kinds: dict[str, type[Activation]] = {"erf": Erf, "linear": Linear, "sin": Sin}
    if name in kinds:
        return kinds[name]()
    if name == "tanh":
        return HermiteSeries("tanh", np.tanh, _tanh1, _tanh2)
    plain = str(name).strip().lower()
    if plain in NOT_ODD:
        raise InputError(
            f"activation = {name!r} is refused: {NOT_ODD[plain]}, and Eq. (1)-(8) hold for zero-mean activations only (odd sigma), "
            f"for which one order parameter is enough; use one of {', '.join(NAMES)}"
        )
    near = difflib.get_close_matches(plain, NAMES, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise InputError(f"activation = {name!r} is unknown{hint} (known: {', '.join(NAMES)})")


def _tanh1(h: Array) -> Array:
    return 1.0 - np.tanh(h) ** 2


def _tanh2(h: Array) -> Array:
    return -2.0 * np.tanh(h) * _tanh1(h)
