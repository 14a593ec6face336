"""What every activation offers: sigma with two derivatives, and its Gaussian expectations K, Kdot, H."""

from __future__ import annotations

import numpy as np

Array = np.ndarray


class Activation:
    """An odd sigma, and its expectations over h ~ N(0, C) for patterns with variances m (P,), n (P',), covariances c (P, P').

    sigma, sigma1, sigma2   the function and its two derivatives, by element
    k         K_mn    = E[sigma(h_m) sigma(h_n)]
    kdot      Kdot_mn = E[sigma'(h_m) sigma'(h_n)]
    h         H_mn    = E[sigma''(h_m) sigma(h_n)]        (physics.md sections 1 and 4)
    diagonal  E[sigma(h)^2] at variance m
    error     bound on |K_mn - exact| / sqrt(K_mm K_nn), and the same for Kdot and H with E[sigma'^2], E[sigma''^2]; 0 for a
              closed form (rounding apart)
    """

    name: str
    error: float = 0.0

    def sigma(self, h: Array) -> Array:
        raise TypeError("an Activation is used through one of its kinds: see theory.activations.get")

    def sigma1(self, h: Array) -> Array:
        raise TypeError("an Activation is used through one of its kinds: see theory.activations.get")

    def sigma2(self, h: Array) -> Array:
        raise TypeError("an Activation is used through one of its kinds: see theory.activations.get")

    def k(self, m: Array, n: Array, c: Array) -> Array:
        raise TypeError("an Activation is used through one of its kinds: see theory.activations.get")

    def kdot(self, m: Array, n: Array, c: Array) -> Array:
        raise TypeError("an Activation is used through one of its kinds: see theory.activations.get")

    def h(self, m: Array, n: Array, c: Array) -> Array:
        raise TypeError("an Activation is used through one of its kinds: see theory.activations.get")

    def diagonal(self, m: Array) -> Array:
        raise TypeError("an Activation is used through one of its kinds: see theory.activations.get")
