"""The budget adds up, its covariance is right, and each part is what it says for a real prediction."""

import math

import numpy as np
import pytest
from tests_support import synthetic

import sampling
import theory
from compare.budget import PARTS, error_budget
from compare.measure import Measurement
from data.problem import Dataset, Problem
from theory.first_order import Settings


@pytest.fixture(scope="module")
def prediction():
    rng = np.random.default_rng(0)
    y = np.where(np.arange(20) < 8, 1.0, -1.0)
    X = rng.normal(size=(20, 10)) + 0.3 * y[:, None]
    return theory.predict(Problem(Dataset(X, y, y), N1=10, T=0.1), first_order=Settings(samples=20_000))


def test_parts_add_up_to_measured_minus_eq4(prediction):
    measurement = Measurement.of(synthetic.run(np.random.default_rng(1), d2=prediction.levels["eq4"].value + 0.3))
    found = error_budget(prediction, measurement)
    levels = prediction.levels
    assert sum(part.value for part in found.parts.values()) == pytest.approx(found.total.value, abs=1e-12)
    assert found.total.value == pytest.approx(measurement.d2.mean - levels["eq4"].value)
    assert found.parts["delta1_dropped"].value == pytest.approx(levels["eq3"].value - levels["eq4"].value)
    assert found.parts["gaussian_closure"].value == pytest.approx(levels["first_order"].value - levels["eq3"].value)
    assert found.parts["q_fluctuations"].value == pytest.approx(levels["eq3_q_averaged"].value - levels["eq3"].value)
    assert found.covariance.sum() == pytest.approx(measurement.d2.se**2), (
        "the total carries the measurement's error alone"
    )
    assert list(found.parts) == list(PARTS)


def test_share_errors_against_simulation(prediction):
    measurement = Measurement.of(synthetic.run(np.random.default_rng(2), d2=prediction.prior + 2.0, sd=3.0))
    found = error_budget(prediction, measurement)
    rng = np.random.default_rng(3)
    noise_m = measurement.d2.se * rng.normal(size=100_000)
    noise_4 = found.parts["gaussian_closure"].se * rng.normal(size=100_000)
    effect = found.effect.value + noise_m
    shifts = {"delta1_dropped": 0 * noise_m, "gaussian_closure": noise_4, "remainder": noise_m - noise_4}
    for name, shift in shifts.items():
        spread = ((found.parts[name].value + shift) / effect).std()
        assert found.share(name)[1] == pytest.approx(spread, rel=0.05), name
    assert found.share("total")[0] == pytest.approx(found.total.value / found.effect.value)


def test_without_level_4_the_closure_is_not_invented():
    y = np.array([1.0, 1.0, -1.0, -1.0])
    prediction = theory.predict(Problem(Dataset(np.random.default_rng(0).normal(size=(4, 3)), y, y), N1=5, T=0.5))
    found = error_budget(prediction, Measurement.of(synthetic.run(np.random.default_rng(4))))
    assert math.isnan(found.parts["gaussian_closure"].value)
    known = [part.value for name, part in found.parts.items() if name != "gaussian_closure"]
    assert sum(known) == pytest.approx(found.total.value)


def test_a_missing_level_leaves_its_part_to_the_remainder(prediction):
    class Bare:
        """The prediction without the average over p(Q|y)."""

        levels = {name: level for name, level in prediction.levels.items() if name != "eq3_q_averaged"}  # noqa: RUF012
        prior, delta1, q, problem = prediction.prior, prediction.delta1, prediction.q, prediction.problem

    measurement = Measurement.of(synthetic.run(np.random.default_rng(5)))
    whole, bare = error_budget(prediction, measurement), error_budget(Bare, measurement)
    assert math.isnan(bare.parts["q_fluctuations"].value)
    moved = whole.parts["q_fluctuations"].value + whole.parts["remainder"].value
    assert bare.parts["remainder"].value == pytest.approx(moved)


def test_the_shift_of_the_measured_decomposition_at_small_width():
    """Linear sigma, N1 = 3: <Q>, <a.f> and <D^2> averaged over p(Q|y) are exact, so Delta_m = <Delta>_Q + shift, and the chains must
    say so; the shift is a third of Delta2 here, 50 standard errors."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(6) < 3, 1.0, -1.0)
    X = rng.normal(size=(6, 4)) + 0.5 * y[:, None]
    problem = Problem(Dataset(X, y, y), N1=3, T=0.3, activation="linear")
    prediction = theory.predict(problem)
    measurement = Measurement.of(sampling.run(problem, chains=16, draws=400, warmup=200, seed=1))
    shift = error_budget(prediction, measurement).shift
    for measured, averaged in (
        (measurement.delta2, prediction.q.delta2),
        (measurement.delta1(prediction.prior), prediction.q.delta1),
    ):
        assert abs(measured.value - averaged - shift) < 4 * measured.se
        assert abs(shift) > 20 * measured.se, "the control: without the shift it would be seen"
