"""Eq. (1): the posterior feature-similarity matrix <s s^T>, on training, test or chosen patterns."""

from __future__ import annotations

import numpy as np

from theory import kernels
from theory.order_parameter import OrderParameter
from theory.predictor import cross
from theory.spectrum import Spectrum


def similarity(
    spectrum: Spectrum,
    Q: float,
    N1: int,
    T: float,
    lambda1: float = 1.0,
    *,
    block: np.ndarray | None = None,
    X: np.ndarray | None = None,
) -> np.ndarray:
    """<s s^T> = K + (Q/(lambda1 N1)) K (u u^T - K~^{-1}) K, the mean over units (Eq. (1); physics.md section 3).

    On all training patterns (P, P), on those with indices `block` (m, m), or at the rows of X (P', P').
    """
    return _similarity(spectrum, np.array([Q]), np.ones(1), N1, T, lambda1, block, X)


def averaged(
    spectrum: Spectrum,
    order: OrderParameter,
    N1: int,
    T: float,
    lambda1: float = 1.0,
    *,
    block: np.ndarray | None = None,
    X: np.ndarray | None = None,
) -> np.ndarray:
    """Eq. (1) with its second term averaged over p(Q|y): exact for linear sigma at every N1, P, T, on test patterns too."""
    return _similarity(spectrum, order.Q, order.weights, N1, T, lambda1, block, X)


def _similarity(
    spectrum: Spectrum,
    Q: np.ndarray,
    weights: np.ndarray,
    N1: int,
    T: float,
    lambda1: float,
    block: np.ndarray | None,
    X: np.ndarray | None,
) -> np.ndarray:
    if X is not None:
        rotated = cross(spectrum, X) @ spectrum.vectors
        prior = kernels.kernel(spectrum.activation, X, X, spectrum.lambda0)
    else:
        rows = np.arange(spectrum.P) if block is None else np.asarray(block)
        rotated, prior = spectrum.K[rows] @ spectrum.vectors, spectrum.K[np.ix_(rows, rows)]
    q = Q[:, None] / lambda1
    k = T + q * spectrum.values
    fitted = (np.sqrt(weights[:, None] * q) * spectrum.y / k) @ rotated.T  # (n, m)
    solved = (rotated * (weights @ (q / k))) @ rotated.T
    return prior + (fitted.T @ fitted - solved) / N1
