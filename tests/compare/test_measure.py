"""Measurement: calibrated errors, control variates that are used only when they agree, Delta1 and Delta2 with correlations."""

import numpy as np
import pytest
from tests_support import synthetic

from compare.measure import Measurement, correction
from compare.verdict import decide, equivalence
from compare.weight_estimate import WeightEstimate
from sampling.diagnostics import Diagnosis


@pytest.fixture(scope="module")
def many():
    """150 measurements of the same truth. The variance of z is known to 12%; 1.05 is expected, for the mcse is itself estimated."""
    rng = np.random.default_rng(0)
    passed = Diagnosis("ok", (), {})  # the gate is tested elsewhere, and costs most of the time
    return [Measurement.of(synthetic.run(rng, draws=200, chains=16), passed) for _ in range(150)]


def test_errors_are_calibrated_and_control_variates_cut_them(many):
    """z of the mean has variance 1.05 within 4 standard errors of a variance from 150 runs."""
    for name, truth in (("d2", 10.0), ("Q", 1.2), ("fbar_a", 1.8)):
        z = np.array([(m.quantities[name].mean - truth) / m.quantities[name].se for m in many])
        assert 0.6 < z.var() < 1.52, name
        assert abs(z.mean()) < 0.3, name
    reductions = np.array([m.d2.reduction for m in many])
    assert np.median(reductions) == pytest.approx(1 / np.sqrt(1 - 0.9**2), rel=0.1)
    assert np.mean([m.d2.reduced for m in many]) > 0.98


def rates(many, of_margin, signs=(1, -1), inflation=1.0):
    """(agrees, differs) shares over 150 runs x 3 quantities x signs, the prediction off by `of_margin`(one run's power) margins.

    The effect is 1,000 standard errors and the margin a tenth of it, so that the rates at the margin are those of one side.
    """
    agrees, differs = [], []
    for name, truth in (("d2", 10.0), ("Q", 1.2), ("fbar_a", 1.8)):
        mean, se, dof = np.array([(q.mean, q.se, q.dof) for q in (m.quantities[name] for m in many)]).T
        usual = float(np.median(se))
        off = of_margin(equivalence(truth, usual, truth, prior=truth - 1000 * usual, dof=float(np.median(dof))))
        for sign in signs:
            found = decide(mean, se / inflation, truth + sign * off, prior=truth - 1000 * usual, dof=dof)
            agrees.append(found.agrees)
            differs.append(found.differs)
    return float(np.mean(agrees)), float(np.mean(differs))


def test_the_false_alarm_rate_and_the_power_of_verdicts_on_autocorrelated_chains(many):
    """From AR(1) chains to the verdict: over 900 outcomes a rate of 5% has a standard error of 0.73%."""

    def margin(one):
        return 100 * one.difference_se

    agrees, differs = rates(many, margin)
    assert 0.021 < agrees < 0.079
    assert differs < 0.046  # 2.5%, + 4 standard errors
    assert rates(many, lambda one: 0.0) == (1.0, 0.0), "the stated power is 1"
    # A prediction above the truth is the harder side; 450 outcomes, of which 80% has a standard error of 1.9%
    assert abs(rates(many, lambda one: one.detectable, signs=(1,))[1] - 0.8) < 0.075
    # The control: integrated autocorrelation time 1.86, forgotten, makes the normal quantile of 1.645 one of 1.2.
    assert rates(many, margin, inflation=np.sqrt(1.3 / 0.7))[0] > 0.09


def test_the_spread_of_chains_takes_over_where_autocorrelation_cannot_see():
    """Each chain sits in its own phase: within a chain nothing is seen of it."""
    rng = np.random.default_rng(5)
    stuck = synthetic.run(rng)
    stuck.series["d2"] = stuck.series["d2"] + 0.5 * rng.normal(size=16)[:, None]
    found = Measurement.of(stuck, Diagnosis("ok", (), {}))
    assert found.d2.se > 0.05
    assert found.d2.dof == 15
    assert found.d2.spread_p < 1e-3
    assert not Measurement.of(stuck).converged


def test_delta1_and_delta2_carry_the_right_errors(many):
    prior = 8.0
    truth2 = 1.8**2 / 1.2
    for found, truth in (
        ([m.delta2 for m in many], truth2),
        ([m.delta1(prior) for m in many], prior + truth2 - 10.0),
    ):
        z = np.array([(one.value - truth) / one.se for one in found])
        assert 0.6 < z.var() < 1.52


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


def test_combinations_carry_the_covariance(many):
    """Delta2_m - D^2/2 against the spread over runs; its parts are correlated through fbar_a and D^2."""
    found = [m.combination(-0.5, 1.0) for m in many]
    z = np.array([(one.value - (1.8**2 / 1.2 - 5.0)) / one.se for one in found])
    assert 0.6 < z.var() < 1.52


def test_y_zero_leaves_delta1_alone():
    """With y = 0 a.f vanishes in every draw: Delta2_m is 0 without error, and Delta1_m is prior - <D^2>."""
    run = synthetic.run(np.random.default_rng(6))
    run.series["fbar_a"] = np.zeros_like(run.series["fbar_a"])
    found = Measurement.of(run)
    assert (found.delta2.value, found.delta2.se) == (0.0, 0.0)
    assert found.delta1(12.0).value == 12.0 - found.d2.mean
    assert found.delta1(12.0).se == pytest.approx(found.d2.se)


@pytest.mark.slow
@pytest.mark.parametrize(("activation", "T", "least"), [("erf", 1.0, 3.0), ("linear", 10.0, 30.0)])
def test_control_variates_cut_the_error_of_d2_on_digits(activation, T, least):
    """P = N1 = 100: the same draws with and without them. The ratio of two errors of 16 chains x 250 draws is known to a few per
    cent, and the error between chains, which knows nothing of autocorrelation, must have shrunk as well."""
    import sampling
    from data.problem import Problem
    from data.registry import load

    problem = Problem(load("digits", classes="even/odd", P=100), 100, T, activation=activation)
    run = sampling.run(problem, chains=16, warmup=150, draws=250)
    found = Measurement.of(run)
    assert found.d2.reduced
    assert found.d2.reduction > least
    between = found.chain_means["d2"].std(ddof=1) / run.series["d2"].mean(1).std(ddof=1)
    assert 1 / between > 0.6 * least  # two spreads of 16 chains: each is known to 18%
    for name in ("Q", "fbar_a"):
        assert found.quantities[name].reduction >= 1.0
    weights = WeightEstimate.of(run)
    assert weights.reduced
    assert weights.reduction > 3.0
