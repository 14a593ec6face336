"""Averages over p(Q|y), exact for a linear network: predictor, Eq. (1) and held-out <D^2> against importance sampling."""

import numpy as np
import pytest
from scipy.special import erf

import theory
from data.errors import InputError
from data.problem import Dataset, Problem
from theory import predictor, similarity

SIGMA = 4.5  # two-sided false alarm 7e-6 a comparison


def problem(activation="linear"):
    rng = np.random.default_rng(2)
    classes = np.array([1.0, -1.0, -1.0, -1.0])
    data = Dataset(rng.normal(size=(4, 3)), 1.5 * classes, classes, X_test=rng.normal(size=(3, 3)))
    data = data.replace(classes_test=np.array([1.0, 1.0, -1.0]), y_test=np.array([1.0, 1.0, -1.0]))
    return Problem(data, 3, 0.3, 1.3, 0.7, activation)


def sample(p, draws=300_000, seed=0):
    """Self-normalised importance sampling of the first layer from the prior, the readout integrated out exactly.

    Returns name -> (mean, standard error), each an array: f and Var f on train and test patterns, <s s^T> over both, and the
    square loss on the test patterns.
    """
    rng = np.random.default_rng(seed)
    data, columns = p.dataset, []
    X = np.r_[data.X, data.X_test]
    for _ in range(15):
        w = rng.normal(size=(draws // 15, p.N1, p.N0)) / np.sqrt(p.lambda0)
        s = w @ X.T / np.sqrt(p.N0)
        s = erf(s) if p.activation == "erf" else s
        G = np.einsum("dim,din->dmn", s, s) / (p.lambda1 * p.N1)
        A, K0 = G[:, :4, :4] + p.T * np.eye(4), G[:, :, :4]
        solved = np.linalg.solve(A, np.broadcast_to(data.y[:, None], (len(A), 4, 1)))[..., 0]
        log_weight = -0.5 * np.linalg.slogdet(A)[1] - 0.5 * solved @ data.y
        f = np.einsum("dmn,dn->dm", K0, solved)
        spread = np.einsum("dmm->dm", G) - np.einsum("dmn,dnm->dm", K0, np.linalg.solve(A, np.swapaxes(K0, 1, 2)))
        loss = ((f[:, 4:] - data.y_test) ** 2 + spread[:, 4:]).mean(1)
        a = np.where(data.classes_test > 0, 1 / 2, -1.0)
        distance = ((s[..., 4:] @ a) ** 2).sum(1)
        columns.append((log_weight, f, spread + f * f, p.lambda1 * G, loss, distance))
    log_weight, *values = (np.concatenate(column) for column in zip(*columns, strict=True))
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    found = {}
    for name, v in zip(("f", "f2", "ss", "loss", "d2_test"), values, strict=True):
        mean = np.tensordot(weight, v, 1)
        found[name] = mean, np.sqrt(np.tensordot(weight**2, (v - mean) ** 2, 1))
    return found


def agree(value, sampled):
    mean, se = sampled
    return bool((np.abs(value - mean) < SIGMA * se).all())


def test_linear_networks_are_averaged_exactly():
    p = problem()
    found, exact = theory.predict(p), sample(p)
    X, order, s = p.dataset.X_test, found.order, found.spectrum
    both = np.r_[p.dataset.X, X]
    train, test = predictor.averaged(s, order, p.T, p.lambda1), predictor.averaged(s, order, p.T, p.lambda1, X)
    means = np.r_[train.mean, test.mean]
    assert agree(means, exact["f"])
    assert agree(np.r_[train.variance, test.variance] + means**2, exact["f2"])
    assert agree(test.loss(p.dataset.y_test), exact["loss"])
    assert agree(similarity.averaged(s, order, p.N1, p.T, p.lambda1, X=both), exact["ss"])
    assert agree(found.held_out()["eq3_q_averaged"].value, exact["d2_test"])
    # The controls: at Qbar, without the average, every one of them is off.
    at_saddle = np.r_[predictor.mean(s, found.Qbar, p.T, p.lambda1), predictor.mean(s, found.Qbar, p.T, p.lambda1, X)]
    assert not agree(at_saddle, exact["f"])
    assert not agree(similarity.similarity(s, found.Qbar, p.N1, p.T, p.lambda1, X=both), exact["ss"])
    assert not agree(found.held_out()["eq3"].value, exact["d2_test"])


def test_erf_networks_are_not():
    """The closure is an approximation for a nonlinear sigma at N1 = 3: the same test must say so."""
    p = problem("erf")
    found, exact = theory.predict(p), sample(p)
    assert not agree(found.held_out()["eq3_q_averaged"].value, exact["d2_test"])
    both = np.r_[p.dataset.X, p.dataset.X_test]
    assert not agree(similarity.averaged(found.spectrum, found.order, 3, p.T, p.lambda1, X=both), exact["ss"])


@pytest.mark.parametrize("activation", ["erf", "tanh"])
def test_averages_over_a_point_are_the_formulas_at_that_point(activation):
    """With p(Q|y) put on Qbar, averages are the saddle-point formulas; N1 -> infinity: Gaussian-process regression, <s s^T> = K."""
    p = problem(activation)
    found = theory.predict(p)
    s, Q, X = found.spectrum, found.Qbar, p.dataset.X_test
    point = theory.OrderParameter(np.array([Q]), np.ones(1), 0.0, 0.0)
    for where in (None, X):
        one = predictor.averaged(s, point, p.T, p.lambda1, where)
        np.testing.assert_allclose(one.mean, predictor.mean(s, Q, p.T, p.lambda1, where), rtol=1e-12)
        np.testing.assert_allclose(one.variance, predictor.variance(s, Q, p.T, p.lambda1, where), rtol=1e-10)
    np.testing.assert_allclose(
        similarity.averaged(s, point, 3, p.T, p.lambda1, X=X),
        similarity.similarity(s, Q, 3, p.T, p.lambda1, X=X),
        rtol=1e-12,
    )
    wide = theory.predict(p.replace(N1=10**8))
    process = predictor.averaged(s, wide.order, p.T, p.lambda1, X)
    np.testing.assert_allclose(process.mean, predictor.mean(s, 1.0, p.T, p.lambda1, X), rtol=1e-6)
    np.testing.assert_allclose(process.variance, predictor.variance(s, 1.0, p.T, p.lambda1, X), rtol=1e-6)
    np.testing.assert_allclose(similarity.averaged(s, wide.order, 10**8, p.T, p.lambda1), s.K, rtol=1e-6)
    assert wide.weight_correlations(averaged=True) == pytest.approx(np.eye(3) / 1.3, abs=1e-6)


def test_held_out_levels():
    """Held-out manifolds at the training patterns are the training manifolds, at every level; bad classes are refused."""
    p = problem("erf")
    found = theory.predict(p)
    same = found.held_out(p.dataset.X.copy(), p.dataset.classes)
    for name, level in found.levels.items():
        assert same[name].value == pytest.approx(level.value, rel=1e-10), name
    with pytest.raises(InputError, match="both classes"):
        found.held_out(p.dataset.X_test, np.ones(3))
    with pytest.raises(InputError, match="needs `classes`"):
        found.held_out(p.dataset.X_test)
    with pytest.raises(InputError, match=r"shape \(P', 3\)"):
        found.held_out(np.ones((2, 5)), np.array([1.0, -1.0]))
    with pytest.raises(InputError, match="no test patterns"):
        theory.predict(p.replace(dataset=Dataset(p.dataset.X, p.dataset.y, p.dataset.classes))).held_out()
