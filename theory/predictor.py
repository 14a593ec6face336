"""The Gaussian-process predictor at the saddle point: mean and variance on train and on test points."""

from __future__ import annotations

import numpy as np

from theory import kernels
from theory.spectrum import Spectrum


def dual(spectrum: Spectrum, Q: float, T: float, lambda1: float = 1.0) -> np.ndarray:
    """u = K~^{-1} y (P,), K~ = T + (Q/lambda1) K (physics.md section 2)."""
    return spectrum.vectors @ (spectrum.y / (T + Q * spectrum.values / lambda1))


def mean(spectrum: Spectrum, Q: float, T: float, lambda1: float = 1.0, X: np.ndarray | None = None) -> np.ndarray:
    """fbar = (Q/lambda1) K u, on the training points (P,) or at the rows of X (P',)."""
    u = dual(spectrum, Q, T, lambda1)
    K = spectrum.K if X is None else cross(spectrum, X)
    return (Q / lambda1) * (K @ u)


def variance(spectrum: Spectrum, Q: float, T: float, lambda1: float = 1.0, X: np.ndarray | None = None) -> np.ndarray:
    """Var f = (Q/lambda1)(K00 - (Q/lambda1) K0 K~^{-1} K0^T), diagonal, on train (P,) or at the rows of X (P',); never negative."""
    q = Q / lambda1
    k = T + q * spectrum.values
    if X is None:
        return (spectrum.vectors**2) @ (q * spectrum.values * T / k)
    K0 = cross(spectrum, X) @ spectrum.vectors
    own = spectrum.activation.diagonal(kernels.variance(X, spectrum.lambda0))
    return np.maximum(q * (own - q * (K0**2 / k).sum(1)), 0.0)


def cross(spectrum: Spectrum, X: np.ndarray) -> np.ndarray:
    """K(X, train) (P', P)."""
    return kernels.kernel(spectrum.activation, X, spectrum.dataset.X, spectrum.lambda0)
