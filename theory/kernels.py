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
    if Z is X:
        return symmetric(activation, covariance(X, X, lambda0), variance(X, lambda0))
    return activation.k(variance(X, lambda0), variance(Z, lambda0), covariance(X, Z, lambda0))


def symmetric(activation: Activation, C: np.ndarray, m: np.ndarray) -> np.ndarray:
    """K (P, P) of one set of patterns from C (P, P) and its diagonal m: symmetric to the bit, its diagonal E[sigma^2] exactly."""
    K = activation.k(m, m, C)
    K = 0.5 * (K + K.T)
    K[np.diag_indices_from(K)] = activation.diagonal(m)
    return K
