"""Kernels on train and test points: C = X X^T/(lambda0 N0) and K = E[sigma sigma^T]."""

from __future__ import annotations

import numpy as np

from theory.activations import Activation


def covariance(X: np.ndarray, Z: np.ndarray, lambda0: float) -> np.ndarray:
    """C (P, P') = X Z^T/(lambda0 N0): the prior covariance of the pre-activations (physics.md section 1)."""
    return X @ Z.T / (lambda0 * X.shape[1])


def variance(X: np.ndarray, lambda0: float) -> np.ndarray:
    """Diagonal of C (P,)."""
    return np.einsum("ij,ij->i", X, X) / (lambda0 * X.shape[1])


def kernel(activation: Activation, X: np.ndarray, Z: np.ndarray, lambda0: float) -> np.ndarray:
    """K (P, P') = E[sigma(h_x) sigma(h_z)] between the rows of X and those of Z."""
    m = variance(X, lambda0)
    if Z is X:
        K = activation.k(m, m, covariance(X, X, lambda0))
        return 0.5 * (K + K.T)
    return activation.k(m, variance(Z, lambda0), covariance(X, Z, lambda0))
