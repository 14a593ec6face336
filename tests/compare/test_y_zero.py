"""The y = 0 run isolates Delta1: prior - <D^2> is Delta1 alone, exactly that of level 3 for a linear network."""

import numpy as np
import pytest

import compare
from compare.budget import finite_width_shift
from data.problem import Dataset, Problem
from sampling import oracle

CHAINS = {"chains": 96, "draws": 40, "warmup": 40, "threads": 1, "first_order": False}


def problem(activation, **changes):
    rng = np.random.default_rng(0)
    classes = np.where(np.arange(8) < 3, 1.0, -1.0)
    X = rng.normal(size=(8, 4)) + 0.5 * classes[:, None]
    return Problem(
        Dataset(X, np.zeros(8), classes),
        **{"N1": 3, "T": 0.1, "lambda0": 1.3, "lambda1": 0.7, "activation": activation} | changes,
    )


def measured(p):
    cell = compare.verify(p, **CHAINS).cells[0]
    return cell, cell.measurement.delta1(cell.prediction.prior)


def test_a_linear_network_has_the_delta1_of_level_3():
    """4.5 standard errors; Delta1 at the saddle point, and that of doubled T, are outside. Delta2 and its shift are 0 exactly."""
    p = problem("linear")
    cell, delta1 = measured(p)
    exact = cell.prediction.q.delta1
    assert exact == pytest.approx(cell.prediction.prior - oracle.linear(p)["d2"], rel=1e-8)
    assert abs(delta1.value - exact) < 4.5 * delta1.se
    assert abs(delta1.value - cell.prediction.delta1) > 4.5 * delta1.se
    colder = oracle.linear(p.replace(T=0.2))
    assert abs(delta1.value - (cell.prediction.prior - colder["d2"])) > 4.5 * delta1.se
    assert (cell.measurement.delta2.value, cell.prediction.delta2, cell.prediction.q.delta2) == (0.0, 0.0, 0.0)
    assert finite_width_shift(cell.prediction) == 0.0
    table = cell_table = compare.Report([cell]).decomposition.set_index("quantity")
    assert table.loc["delta1", "q_averaged"] == exact
    assert cell_table.loc["delta2", "measured"] == 0.0


def test_an_erf_network_has_the_delta1_of_importance_sampling():
    p = problem("erf")
    cell, delta1 = measured(p)
    exact = oracle.importance(p, draws=1 << 16)
    joint = np.hypot(delta1.se, exact.se["d2"])
    assert abs(delta1.value - (cell.prediction.prior - exact["d2"])) < 4.5 * joint
    assert abs(delta1.value) > 4.5 * joint, "the effect is resolved"


def test_the_shift_of_delta1_and_delta2_at_finite_width_is_reported_and_right():
    """With labels: <Delta2>_m of exact linear averages is <Delta2>_Q + shift, and so is Delta1; the shift is in the JSON."""
    p = problem("linear")
    p = p.replace(dataset=p.dataset.replace(y=p.dataset.classes))
    exact = oracle.linear(p)
    cell = compare.verify(p, **CHAINS | {"draws": 8, "warmup": 5}).cells[0]
    q, shift = cell.prediction.q, finite_width_shift(cell.prediction)
    delta2 = p.lambda1 * exact["fbar_a"] ** 2 / exact["Q"]
    assert delta2 == pytest.approx(q.delta2 + shift, rel=1e-8)
    assert cell.prediction.prior + delta2 - exact["d2"] == pytest.approx(q.delta1 + shift, rel=1e-7)
    assert abs(shift) > 1e-3 * q.delta2
    assert cell.to_dict()["budget"]["finite_width_shift"] == shift
