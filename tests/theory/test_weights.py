"""Lambda1 and Lambda2 without Stein's lemma: the covariance over one prior unit, integrated directly over its weights."""

import numpy as np
import pytest

from data.errors import InputError
from data.problem import Dataset
from theory import Spectrum
from theory.weights import WeightTheory

T, LAMBDA0, LAMBDA1, N1, Q = 0.2, 1.3, 0.7, 6, 1.7


def dataset(P=4, N0=2, seed=0):
    rng = np.random.default_rng(seed)
    classes = np.where(np.arange(P) < P // 2, 1.0, -1.0)
    return Dataset(rng.normal(size=(P, N0)), rng.normal(size=P) + classes, classes)


def integral(data, activation, M):
    """lambda0 (Q/(2 lambda1 N1)) Cov_0(w_h w_k, s^T M s), w (2,) of one prior unit, by a product trapezoid rule.

    First order in 1/N1 of the posterior of one unit, before any lemma: the analytic integrand decays as exp(-z^2/2), so the rule
    converges geometrically.
    """
    z = np.linspace(-9, 9, 361)
    weight = np.exp(-0.5 * z * z) * (z[1] - z[0]) / np.sqrt(2 * np.pi)
    w = np.stack(np.meshgrid(z, z, indexing="ij"), -1).reshape(-1, 2) / np.sqrt(LAMBDA0)
    weight = np.multiply.outer(weight, weight).ravel()
    s = activation.sigma(w @ data.X.T / np.sqrt(data.N0))
    form = ((s @ M) * s).sum(1)
    form = form - weight @ form
    return LAMBDA0 * Q / (2 * LAMBDA1 * N1) * np.einsum("i,ih,ik->hk", weight * form, w, w)


@pytest.mark.parametrize("name", ["erf", "linear", "tanh", "sin"])
def test_both_matrices_are_covariances_over_one_prior_unit(name):
    data = dataset()
    spectrum = Spectrum.of(data, name, LAMBDA0)
    found = WeightTheory(spectrum).at(Q, N1, T, LAMBDA1)
    inverse = np.linalg.inv(T * np.eye(data.P) + Q / LAMBDA1 * spectrum.K)
    u = inverse @ data.y
    np.testing.assert_allclose(
        found.Lambda2, integral(data, spectrum.activation, np.outer(u, u)), rtol=1e-8, atol=1e-12
    )
    np.testing.assert_allclose(found.Lambda1, integral(data, spectrum.activation, -inverse), rtol=1e-8, atol=1e-12)


def test_a_linear_network_in_closed_form():
    """<w w> lambda0 - 1 = (Q/(lambda1 lambda0 N1 N0)) X^T (u u^T - K~^{-1}) X, K = X X^T/(lambda0 N0) (physics.md 5.1)."""
    data = dataset(P=7, N0=4)
    spectrum = Spectrum.of(data, "linear", LAMBDA0)
    inverse = np.linalg.inv(T * np.eye(7) + Q / LAMBDA1 * data.X @ data.X.T / (LAMBDA0 * 4))
    u = inverse @ data.y
    expected = Q / (LAMBDA1 * LAMBDA0 * N1 * 4) * data.X.T @ (np.outer(u, u) - inverse) @ data.X
    found = WeightTheory(spectrum).at(Q, N1, T, LAMBDA1)
    np.testing.assert_allclose(LAMBDA0 * found.ww - np.eye(4), expected, atol=1e-14)


def test_parts_of_the_matrix():
    """Submatrix, components, a basis, the restriction to the row space: all are parts of one matrix; P > N0 and P < N0."""
    for P, N0 in ((9, 4), (4, 9)):
        theory = WeightTheory(Spectrum.of(dataset(P, N0), "erf", LAMBDA0))
        whole = theory.at(Q, N1, T, LAMBDA1)
        part = theory.at(Q, N1, T, LAMBDA1, theory.columns(np.array([3, 1])))
        np.testing.assert_allclose(part.Lambda2, whole.Lambda2[np.ix_([3, 1], [3, 1])], atol=1e-15)
        np.testing.assert_allclose(part.ww, whole.ww[np.ix_([3, 1], [3, 1])], atol=1e-15)
        rows = np.linalg.svd(theory.spectrum.dataset.X, full_matrices=False)[2].T
        reduced = theory.at(Q, N1, T, LAMBDA1, rows)
        np.testing.assert_allclose(rows @ reduced.Lambda1 @ rows.T, whole.Lambda1, atol=1e-14)
        summary = theory.summary(Q, N1, T, LAMBDA1)
        for name, matrix in (("lambda1", whole.Lambda1), ("lambda2", whole.Lambda2)):
            assert summary[f"{name}_trace"] == pytest.approx(np.trace(matrix), rel=1e-10)
            assert summary[f"{name}_frobenius"] == pytest.approx(np.linalg.norm(matrix), rel=1e-10)


def test_bad_parts_are_refused():
    theory = WeightTheory(Spectrum.of(dataset(4, 3), "erf"))
    with pytest.raises(InputError, match="whole numbers from 0 to 2"):
        theory.components([(0, 3)], Q, N1, T)
    with pytest.raises(InputError, match=r"shape \(n, 2\)"):
        theory.components([(0, 1, 2)], Q, N1, T)
    with pytest.raises(InputError, match="orthonormal"):
        theory.at(Q, N1, T, basis=np.ones((3, 2)))
    with pytest.raises(InputError, match=r"\(3, k\)"):
        theory.at(Q, N1, T, basis=np.eye(4))
