"""The exact answers against each other, against theory's exact level, and against the samplers' own algebra."""

import math

import numpy as np
import pytest
import torch

from data.errors import InputError
from data.problem import Dataset, Problem
from sampling import oracle
from sampling.posterior import Collapsed
from theory.predict import predict


def problem(P=6, N0=3, N1=4, T=0.5, activation="linear", seed=0):
    rng = np.random.default_rng(seed)
    classes = np.where(np.arange(P) < P // 3, 1.0, -1.0)
    return Problem(Dataset(rng.normal(size=(P, N0)), classes, classes), N1, T, 1.3, 0.7, activation)


def farthest(left, right):
    """Largest |difference| in standard errors of `left`, over all scalars and the components of <w w>."""
    scalars = [(left[name] - right[name]) / left.se[name] for name in oracle.SCALARS]
    upper = np.triu_indices(len(left.ww))
    return float(np.abs([*scalars, *((left.ww - right.ww) / left.ww_se)[upper]]).max())


@pytest.fixture(scope="module")
def sampled():
    return oracle.importance(problem(), draws=1 << 17)


def test_importance_sampling_meets_the_exact_linear_posterior(sampled):
    """11 statistics in all, t on 31 replicates: 4.6 standard errors have a false-alarm rate of 11 x 7e-5. T/2 and swapped
    precisions must fail."""
    assert sampled.ess > 50_000
    assert farthest(sampled, oracle.linear(problem())) < 4.6
    assert farthest(sampled, oracle.linear(problem(T=0.25))) > 50
    swapped = problem().replace(lambda0=0.7, lambda1=1.3)
    assert farthest(sampled, oracle.linear(swapped)) > 50


def test_importance_sampling_reaches_a_few_parts_in_ten_thousand(sampled):
    assert sampled.se["d2"] / sampled["d2"] < 1e-3
    assert sampled.se["Q"] / sampled["Q"] < 2e-4
    other = oracle.importance(problem(), draws=1 << 17, seed=1)
    for name in oracle.SCALARS:
        assert abs(sampled[name] - other[name]) < 4.6 * math.hypot(sampled.se[name], other.se[name]), name


@pytest.mark.parametrize("shape", [(6, 3, 4), (9, 14, 5), (5, 5, 1), (20, 6, 40)])
@pytest.mark.parametrize("T", [1e-3, 0.3, 30.0])
def test_the_quadrature_is_theorys_exact_level(shape, T):
    """Two derivations, two codes: units turned along v here, level 3 there."""
    p = problem(*shape, T=T)
    ours, theirs = oracle.linear(p), predict(p).q
    assert ours["d2"] == pytest.approx(theirs.level3, rel=1e-8)
    assert ours["Q"] == pytest.approx(theirs.mean, rel=1e-8)
    assert ours["fbar_a"] == pytest.approx(theirs.fbar_a, rel=1e-8)


def test_the_prior_comes_back_at_high_temperature():
    p = problem(T=1e9)
    exact = oracle.linear(p)
    C = p.dataset.X @ p.dataset.X.T / (p.lambda0 * p.N0)
    assert exact["d2"] == pytest.approx(p.N1 * p.a @ C @ p.a, rel=1e-6)
    assert exact["Q"] == pytest.approx(1.0, rel=1e-6)
    np.testing.assert_allclose(exact.ww, np.eye(3) / p.lambda0, atol=1e-6)


@pytest.mark.parametrize("activation", ["erf", "linear", "tanh", "sin"])
@pytest.mark.parametrize("shape", [(6, 3, 4), (4, 7, 9)])
def test_scalars_are_those_of_the_samplers(activation, shape):
    """Eigenvalues of the features here, a Cholesky factor there; also with labels of its own for each draw."""
    p = problem(*shape, activation=activation)
    rng = np.random.default_rng(3)
    w = oracle.prior(p, 5, rng).w
    target = Collapsed.of(p)
    g = torch.tensor(math.sqrt(p.lambda0) * w @ target.model.reduction.V)
    seen = target.observe(g)
    for name, value in oracle.scalars(p, w).items():
        np.testing.assert_allclose(value, seen[name], rtol=1e-10, err_msg=name)
    y = rng.normal(size=(5, p.P))
    mixed = oracle.scalars(p, w, y)
    for k in range(5):
        alone = oracle.scalars(p.replace(dataset=p.dataset.replace(y=y[k])), w[k : k + 1])
        for name, value in alone.items():
            np.testing.assert_allclose(mixed[name][k], value[0], rtol=1e-12)


def test_readout_draws_are_those_of_the_conditional():
    """Averages of 40,000 exact draws at one first layer against the closed averages: 4.5 standard errors; a wrong T is seen."""
    p, n = problem(activation="erf"), 40_000
    rng = np.random.default_rng(4)
    w = np.repeat(oracle.prior(p, 1, rng).w, n, axis=0)
    y = p.dataset.y
    own = oracle.own_scalars(p, oracle.Weights(w, oracle.readout(p, w, y, rng)), y)
    closed, wrong = oracle.scalars(p, w[:1]), oracle.scalars(p.replace(T=p.T / 2), w[:1])
    apart = []
    for name in ("Q", "fbar_a", "residual"):
        se = own[name].std() / math.sqrt(n)
        assert abs(own[name].mean() - closed[name][0]) < 4.5 * se, name
        apart.append(abs(own[name].mean() - wrong[name][0]) / se)
    assert max(apart) > 20


def test_labels_have_the_covariance_of_the_model():
    """y | w over the readout's prior is N(0, A(w)): chi^2 of 40,000 draws in A's own metric."""
    p, n = problem(activation="erf"), 40_000
    rng = np.random.default_rng(5)
    one, many = oracle.prior(p, 1, rng), oracle.prior(p, n, rng)
    w = np.repeat(one.w, n, axis=0)
    y = oracle.labels(p, oracle.Weights(w, many.v), rng)
    phi = oracle.features(p, one.w)[0]
    A = p.T * np.eye(p.P) + phi @ phi.T / (p.lambda1 * p.N1)
    square = np.einsum("nm,nm->n", y, np.linalg.solve(A, y.T).T)
    assert abs(square.mean() - p.P) < 4.5 * math.sqrt(2 * p.P / n)
    assert abs(square.var() - 2 * p.P) < 4.5 * math.sqrt((8 * p.P**2 + 48 * p.P) / n)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: oracle.linear(problem(activation="erf")), "linear networks only"),
        (lambda: oracle.importance(problem(P=9)), "P = 9"),
        (lambda: oracle.importance(problem(T=0.01, activation="erf"), draws=1 << 13), "raise T or draws"),
        (lambda: oracle.importance(problem(P=3, T=0.0)), "T = 0"),
    ],
)
def test_what_cannot_be_answered_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
