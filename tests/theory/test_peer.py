"""deepbays, the authors' own code, at one hidden layer: the order parameter, action, predictor and average loss are ours to 1e-6."""

import numpy as np
import pytest
from tests_support import peer

import theory
from data.problem import Problem
from data.registry import load
from theory import action


@pytest.fixture(scope="module")
def digits():
    return load("digits", classes="even/odd", P=60, P_test=30)


def theirs(problem):
    try:
        model = peer.one_hidden_layer()(N1=problem.N1, T=problem.T, l0=problem.lambda0, l1=problem.lambda1)
    except peer.Missing as missing:
        pytest.skip(str(missing))
    model.preprocess(problem.dataset.X, problem.dataset.y)
    return model


@pytest.mark.parametrize("T", [1e-3, 0.1, 10.0])
@pytest.mark.parametrize(("N1", "lambda0", "lambda1"), [(30, 1.0, 1.0), (60, 1.3, 0.7), (500, 0.8, 2.0)])
def test_order_parameter_action_predictor_and_average_loss(digits, T, N1, lambda0, lambda1):
    """Their minimiser has finite differences of 1e-8, which is what its root is good to; at our root their formulas agree to rounding."""
    p = Problem(digits, N1, T, lambda0, lambda1)
    model, found = theirs(p), theory.predict(p)
    model.optimize()
    assert model.optQ == pytest.approx(found.Qbar, rel=1e-6)
    predictor = found.generalisation.predictors["saddle_point"]
    y = digits.y_test
    np.testing.assert_allclose(model.predict(digits.X_test), predictor.mean, atol=1e-6)
    loss, bias, variance = model.averageLoss(y)
    assert loss == pytest.approx(predictor.loss(y), rel=1e-6)
    assert bias == pytest.approx(np.mean((y - predictor.mean) ** 2), rel=1e-6)
    assert variance == pytest.approx(predictor.variance.mean(), rel=1e-6)
    for Q in (0.5 * found.Qbar, found.Qbar, 3.0):
        ours = float(action.action(found.spectrum, Q, N1, T, lambda1))
        assert float(model.effectiveAction(Q)) == pytest.approx(ours, rel=1e-10)
    model.setIW()
    model.predict(digits.X_test)
    assert model.averageLoss(y)[0] == pytest.approx(found.generalisation.losses["infinite_width"], rel=1e-10)


def test_the_comparison_has_power(digits):
    """A temperature off by one in 10^5, or swapped precisions, are far outside 1e-6."""
    p = Problem(digits, 60, 0.1, 1.3, 0.7)
    model = theirs(p)
    model.optimize()
    assert model.optQ != pytest.approx(theory.predict(p.replace(T=0.1 * (1 + 1e-5))).Qbar, rel=1e-6)
    assert model.optQ != pytest.approx(theory.predict(p.replace(lambda0=0.7, lambda1=1.3)).Qbar, rel=1e-2)
