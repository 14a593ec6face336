"""Eq. (1): the posterior feature-similarity matrix <s s^T> at the saddle point, on training, test or chosen patterns."""

from __future__ import annotations

import numpy as np

from theory import kernels
from theory.predictor import cross, dual
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
    if X is not None:
        K0 = cross(spectrum, X)
        prior = kernels.kernel(spectrum.activation, X, X, spectrum.lambda0)
    else:
        rows = np.arange(spectrum.P) if block is None else np.asarray(block)
        K0, prior = spectrum.K[rows], spectrum.K[np.ix_(rows, rows)]
    fitted = K0 @ dual(spectrum, Q, T, lambda1)
    rotated = K0 @ spectrum.vectors
    solved = (rotated / (T + Q * spectrum.values / lambda1)) @ rotated.T
    return prior + (Q / (lambda1 * N1)) * (np.outer(fitted, fitted) - solved)
