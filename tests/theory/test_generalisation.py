"""Predictions on test patterns: an independent average over p(Q|y), limits, and what is refused."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

import theory
from data.errors import InputError
from data.problem import Dataset, Problem
from theory.generalisation import generalisation


def problem(activation="erf", **changes):
    rng = np.random.default_rng(3)
    y = np.where(np.arange(6) < 2, 1.0, -1.0)
    held_out = {
        "X_test": rng.normal(size=(4, 5)),
        "y_test": rng.normal(size=4),
        "classes_test": np.array([1.0, 1.0, -1.0, -1.0]),
    }
    data = Dataset(rng.normal(size=(6, 5)), y, y, **held_out)
    return Problem(data, **{"N1": 4, "T": 0.3, "lambda0": 1.3, "lambda1": 0.7, "activation": activation} | changes)


@pytest.mark.parametrize("activation", ["erf", "linear"])
def test_the_loss_averaged_over_Q_by_adaptive_quadrature_of_dense_algebra(activation):
    """int p(Q|y) of E[(y - f)^2 | Q]: no eigenbasis, no trapezoid rule. Q at the saddle point alone must differ."""
    p = problem(activation)
    data, s = p.dataset, theory.Spectrum.of(p.dataset, activation, p.lambda0)
    everything = np.vstack([data.X_test, data.X])
    K = theory.Spectrum.of(
        Dataset(everything, np.ones(10), np.where(np.arange(10) < 5, 1.0, -1.0)), activation, p.lambda0
    ).K
    np.testing.assert_allclose(K[4:, 4:], s.K, rtol=1e-12)

    def at(Q):
        k = Q / p.lambda1 * K
        total = p.T * np.eye(6) + k[4:, 4:]
        mean = k[:4, 4:] @ np.linalg.solve(total, data.y)
        cov = k[:4, :4] - k[:4, 4:] @ np.linalg.solve(total, k[4:, :4])
        loss = np.mean((data.y_test - mean) ** 2 + np.diag(cov))
        log_density = 0.5 * p.N1 * (math.log(Q) - Q) - 0.5 * np.linalg.slogdet(total)[1]
        return loss, math.exp(log_density - 0.5 * data.y @ np.linalg.solve(total, data.y))

    weigh = lambda f: quad(lambda x: f(*at(math.exp(x))), -14, 3, epsabs=1e-13, epsrel=1e-11, limit=400)[0]  # noqa: E731
    found = theory.predict(p).generalisation
    exact = weigh(lambda loss, w: loss * w) / weigh(lambda loss, w: w)
    assert found.losses["q_averaged"] == pytest.approx(exact, rel=1e-8)
    assert found.losses["saddle_point"] == pytest.approx(at(theory.predict(p).Qbar)[0], rel=1e-10)
    assert found.losses["infinite_width"] == pytest.approx(at(1.0)[0], rel=1e-10)
    assert abs(found.losses["saddle_point"] / exact - 1) > 1e-3, "the control"


def test_limits_and_parts():
    p = problem()
    hot = theory.predict(p.replace(T=1e9)).generalisation
    for name in ("infinite_width", "saddle_point", "q_averaged"):
        assert hot.losses[name] == pytest.approx(hot.prior_loss, rel=1e-6)
    wide = theory.predict(p.replace(N1=10**8)).generalisation
    assert wide.losses["q_averaged"] == pytest.approx(wide.losses["infinite_width"], rel=1e-6)
    told = theory.predict(p).to_dict()["held_out"]
    assert told["P_test"] == 4
    for level in ("saddle_point", "q_averaged"):
        one = told["loss"][level]
        assert one["value"] == pytest.approx(one["bias"] + one["variance"])
    assert told["d2"]["eq3"] == theory.predict(p).held_out()["eq3"].value


def test_data_without_test_patterns_labels_or_classes():
    p = problem()
    bare = p.replace(dataset=Dataset(p.dataset.X, p.dataset.y, p.dataset.classes))
    assert theory.predict(bare).generalisation is None
    assert "held_out" not in theory.predict(bare).to_dict()
    with pytest.raises(InputError, match="no test patterns"):
        generalisation(theory.predict(bare))
    only = theory.predict(p.replace(dataset=p.dataset.replace(y_test=None, classes_test=None))).generalisation
    assert (only.losses, only.d2) == ({}, {})
    assert only.to_dict() == {"P_test": 4}
