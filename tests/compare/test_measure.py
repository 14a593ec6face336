"""Measurement: calibrated errors, control variates that are used only when they agree, Delta1 and Delta2 with correlations."""

import numpy as np
import pytest
from tests_support import synthetic

from compare.measure import Measurement, correction
from sampling.diagnostics import Diagnosis


@pytest.fixture(scope="module")
def many():
    """300 measurements of the same truth. The variance of z is known to 8%; 1.05 is expected, for the mcse is itself estimated."""
    rng = np.random.default_rng(0)
    passed = Diagnosis("ok", (), {})  # the gate is tested elsewhere, and costs most of the time
    return [Measurement.of(synthetic.run(rng, draws=200, chains=16), passed) for _ in range(300)]


def test_errors_are_calibrated_and_control_variates_cut_them(many):
    """z of the mean has variance 1 within 4 standard errors of a variance from 300 runs."""
    for name, truth in (("d2", 10.0), ("Q", 1.2), ("fbar_a", 1.8)):
        z = np.array([(m.quantities[name].mean - truth) / m.quantities[name].se for m in many])
        assert 0.7 < z.var() < 1.35, name
        assert abs(z.mean()) < 0.3, name
    reductions = np.array([m.d2.reduction for m in many])
    assert np.median(reductions) == pytest.approx(1 / np.sqrt(1 - 0.9**2), rel=0.1)
    assert np.mean([m.d2.reduced for m in many]) > 0.98


def test_delta1_and_delta2_carry_the_right_errors(many):
    prior = 8.0
    truth2 = 1.8**2 / 1.2
    for found, truth in (
        ([m.delta2 for m in many], truth2),
        ([m.delta1(prior) for m in many], prior + truth2 - 10.0),
    ):
        z = np.array([(one.value - truth) / one.se for one in found])
        assert 0.7 < z.var() < 1.35


def test_a_control_variate_that_is_not_of_mean_zero_is_not_used():
    rng = np.random.default_rng(1)
    run = synthetic.run(rng)
    run.series["d2_stein"] = run.series["d2_stein"] + 0.3
    found = Measurement.of(run)
    assert not found.d2.reduced
    assert found.d2.mean == found.d2.raw_mean


def test_coefficients_come_from_other_chains():
    """Changing a chain's values does not change the coefficients that are applied to it."""
    rng = np.random.default_rng(2)
    run = synthetic.run(rng)
    controls = run.series["d2_stein"][..., None]
    before = correction(run.series["d2"], controls)
    altered = run.series["d2"].copy()
    altered[0] += 100.0 * controls[0, :, 0]
    after = correction(altered, controls)
    np.testing.assert_array_equal(before[0], after[0])
    assert not np.allclose(before[1], after[1])


def test_a_biased_sampler_is_never_reduced_and_never_converged():
    found = Measurement.of(synthetic.run(np.random.default_rng(3), biased=True))
    assert not found.d2.reduced
    assert not found.converged
    assert found.diagnosis.ok
