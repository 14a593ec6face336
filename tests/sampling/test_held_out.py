"""Observables of test patterns: algebra against plain numpy, the wider reduction, both forms, and nothing changed without them."""

import math

import numpy as np
import pytest
import torch

import sampling
from data.errors import InputError
from data.problem import Dataset, Problem, contrast
from sampling import activations, oracle
from sampling.held_out import digest
from sampling.posterior import Collapsed, Joint
from sampling.reduction import reduce


def problem(P=6, N0=9, N1=4, T=0.4, activation="erf", tests=5):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(P) < 2, 1.0, -1.0)
    classes = np.where(np.arange(tests) < 2, 1.0, -1.0)
    data = Dataset(
        rng.normal(size=(P, N0)),
        y,
        y,
        X_test=rng.normal(size=(tests, N0)),
        y_test=rng.normal(size=tests),
        classes_test=classes,
    )
    return Problem(data, N1, T, 1.3, 0.7, activation)


def without(p):
    return p.replace(dataset=p.dataset.replace(X_test=None, y_test=None, classes_test=None))


def test_the_reduction_spans_test_patterns_and_leaves_the_training_ones_alone():
    p = problem()
    wide, plain = reduce(p), reduce(without(p))
    assert (plain.r, wide.r, wide.seen, plain.R_test) == (6, 9, 6, None)
    scale = math.sqrt(p.N0 * p.lambda0)
    np.testing.assert_allclose(wide.V.T @ wide.V, np.eye(9), atol=1e-13)
    np.testing.assert_array_equal(wide.R[:, :6], plain.R)
    np.testing.assert_array_equal(wide.R[:, 6:], 0.0)
    np.testing.assert_allclose(wide.R_test @ wide.V.T, p.dataset.X_test / scale, atol=1e-13)
    inside = p.dataset.replace(X_test=p.dataset.X[:5] * 0.5)
    assert reduce(p.replace(dataset=inside)).r == 6, "test patterns in the span of the training ones add nothing"


@pytest.mark.parametrize("N1", [4, 11])
def test_scalars_and_sums_are_the_gaussian_averages_over_the_readout(N1):
    """Posterior of v from its precision matrix in numpy, against Cholesky factors of A or M here (N1 < P and N1 > P)."""
    p = problem(N1=N1)
    data = p.dataset
    w = oracle.prior(p, 3, np.random.default_rng(1)).w
    target = Collapsed.of(p)
    g = torch.tensor(math.sqrt(p.lambda0) * w @ target.model.reduction.V)
    _, grad = target.value_and_grad(g)
    seen, sums = target.observe(g), {}
    target.accumulate(g, grad, sums)
    at_test = p.replace(dataset=Dataset(data.X_test, data.y_test, data.classes_test))
    for n in range(3):
        phi, test = (oracle.features(one, w[n : n + 1])[0] / math.sqrt(N1) for one in (p, at_test))
        cov = np.linalg.inv(p.lambda1 * np.eye(N1) + phi.T @ phi / p.T)
        mean, variance = test @ cov @ phi.T @ data.y / p.T, np.einsum("mi,ij,mj->m", test, cov, test)
        assert seen["loss_test"][n] == pytest.approx(np.mean((data.y_test - mean) ** 2 + variance), rel=1e-10)
        assert seen["d2_test"][n] == pytest.approx(N1 * ((contrast(data.classes_test) @ test) ** 2).sum(), rel=1e-10)
        np.testing.assert_allclose(sums["predictor"][n], mean, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(sums["predictor_sq"][n], mean**2 + variance, rtol=1e-9)


def test_joint_draws_average_to_the_collapsed_scalars():
    """40,000 exact readouts at one first layer: 4.5 standard errors; the collapsed loss of T/4 is far outside."""
    p, n = problem(), 40_000
    rng = np.random.default_rng(2)
    w = oracle.prior(p, 1, rng).w
    v = oracle.readout(p, np.repeat(w, n, axis=0), p.dataset.y, rng)
    target = Joint.of(p)
    g = torch.tensor(math.sqrt(p.lambda0) * w @ target.model.reduction.V)
    position = torch.cat([g.expand(n, -1, -1), torch.tensor(math.sqrt(p.lambda1) * v).unsqueeze(-1)], -1)
    loss = target.observe(position)["loss_test"]
    error = float(loss.std()) / math.sqrt(n)
    closed, wrong = (float(Collapsed.of(one).observe(g)["loss_test"]) for one in (p, p.replace(T=p.T / 4)))
    assert abs(float(loss.mean()) - closed) < 4.5 * error
    assert abs(float(loss.mean()) - wrong) > 20 * error


QUICK = {"chains": 4, "warmup": 20, "draws": 20, "seed": 3, "threads": 1}


def test_without_test_patterns_nothing_is_added_and_with_them_the_run_says_so():
    p = problem()
    plain, full = sampling.run(without(p), **QUICK), sampling.run(p, **QUICK)
    assert set(full.series) - set(plain.series) == {"d2_test", "loss_test"}
    assert set(full.sums) - set(plain.sums) == {"predictor", "predictor_sq"}
    assert full.sums["predictor"].shape == (4, 5)
    assert full.basis.shape == plain.basis.shape == (9, 6), "the basis is that of the training patterns"
    np.testing.assert_allclose(full.basis, plain.basis, atol=1e-12)
    assert plain.manifest["held_out"] is None
    assert full.manifest["held_out"] == digest(p.dataset) != digest(problem(tests=4).dataset)


def test_the_other_samplers_measure_them_and_lanes_change_nothing(tmp_path):
    p = problem()
    for sampler in ("gibbs", "tempering", "mala"):
        run = sampling.run(p, sampler, **QUICK | {"warmup": 5, "draws": 4})
        assert {"d2_test", "loss_test"} <= set(run.series)
        assert np.isfinite(run.sums["predictor_sq"]).all()
    one, two = (sampling.run(p, **QUICK | {"threads": threads}) for threads in (1, 2))
    np.testing.assert_allclose(one.series["loss_test"], two.series["loss_test"], rtol=1e-9)
    np.testing.assert_allclose(one.sums["predictor"], two.sums["predictor"], rtol=1e-9)
    run.save(tmp_path / "run.nc")
    np.testing.assert_array_equal(type(run).load(tmp_path / "run.nc").sums["predictor"], run.sums["predictor"])


@pytest.mark.parametrize("name", ["relu", "ReLU", "gelu", "sigmoid"])
def test_sampling_refuses_what_the_theory_refuses_with_the_reason(name):
    with pytest.raises(InputError, match="not odd"):
        activations.get(name)
    with pytest.raises(InputError, match="not odd"):
        sampling.run(problem(activation=name), **QUICK)
    with pytest.raises(InputError, match="exact answers are for erf"):
        oracle.importance(problem(activation=name))
