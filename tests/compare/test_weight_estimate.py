"""<w w> by control variates: unbiased, calibrated and sharper where the variate has mean 0; not used where it has not."""

from types import SimpleNamespace

import numpy as np
import pytest

from compare.weight_estimate import FOLDS, WeightEstimate, combine

K = 6
TRUTH = np.eye(K) + 0.2 * np.ones((K, K))


def a_run(rng, chains=16, shift=0.0, biased=False):
    """ww = truth + prior noise p + n, ww_stein = truth + gradient noise: component (h, k) of ww_stein is quiet for small h + k only."""

    def symmetric(scale):
        noise = scale * rng.normal(size=(chains, K, K))
        return np.triu(noise) + np.triu(noise, 1).swapaxes(1, 2)

    h, k = np.indices((K, K))
    loud = np.where(h + k < K, 0.01, 0.3)
    ww, stein = TRUTH + symmetric(0.1), TRUTH + symmetric(loud) + shift
    return SimpleNamespace(sums={"ww": ww, "ww_stein": stein}, biased=biased, chains=chains)


def test_the_combination_is_unbiased_calibrated_and_sharper_than_either():
    """400 runs: z over the chains' own spread has variance 15/13 = 1.15 (Student), known to 7%, and mean 0 to 0.05.

    The best combination of errors a and b has a b/sqrt(a^2 + b^2), here 0.00995 and 0.095; fitting on 12 chains adds 4%, and the
    spread over 400 runs is known to 3.5%.
    """
    rng = np.random.default_rng(0)
    found = [WeightEstimate.of(a_run(rng)) for _ in range(400)]
    assert np.mean([one.reduced for one in found]) > 0.98
    for h, k, best in ((0, 1, 0.01 / np.hypot(0.1, 0.01)), (5, 5, 0.3 / np.hypot(0.1, 0.3))):
        means = np.array([one.chains[:, h, k].mean() for one in found])
        se = np.array([one.chains[:, h, k].std(ddof=1) / 4 for one in found])
        z = (means - TRUTH[h, k]) / se
        assert abs(z.mean()) < 4 * 0.054
        assert 0.8 < z.var() < 1.6
        ratio = means.std() * 4 / 0.1  # against the plain average's error
        assert ratio < 1.2 * best
    assert np.median([one.reduction for one in found]) > 2.0


def test_a_variate_that_has_not_mean_zero_is_not_used():
    rng = np.random.default_rng(1)
    used = [WeightEstimate.of(a_run(rng, shift=0.2)).reduced for _ in range(20)]
    assert not any(used)
    one = WeightEstimate.of(a_run(rng, shift=0.2))
    assert (one.estimator, one.reduction) == ("ww", 1.0)
    assert one.clash > 6


def test_the_agreement_test_has_its_false_alarm_rate():
    """CLASH = 1e-3 over all components: at most 2 of 300 correct runs lose their control variate (P = 3.6e-3)."""
    rng = np.random.default_rng(2)
    assert sum(not WeightEstimate.of(a_run(rng)).reduced for _ in range(300)) <= 2


def test_coefficients_come_from_other_chains():
    rng = np.random.default_rng(3)
    run = a_run(rng)
    plain, zero = run.sums["ww"], run.sums["ww"] - run.sums["ww_stein"]
    before, _ = combine(plain, zero)
    altered = plain.copy()
    altered[0] += 50.0 * zero[0]
    after, _ = combine(altered, zero)
    np.testing.assert_array_equal(before[0], after[0])
    np.testing.assert_array_equal(before[FOLDS], after[FOLDS])
    assert not np.allclose(before[1], after[1])


@pytest.mark.parametrize("changes", [{"biased": True}, {"chains": 3}])
def test_no_stein_identity_or_too_few_chains_leave_the_plain_average(changes):
    run = a_run(np.random.default_rng(4), **changes)
    one = WeightEstimate.of(run)
    assert one.estimator == "ww"
    assert one.chains is run.sums["ww"]


def test_a_run_without_both_is_taken_as_it_is():
    run = a_run(np.random.default_rng(5))
    only = SimpleNamespace(sums={"ww_stein": run.sums["ww_stein"]}, biased=False, chains=16)
    assert WeightEstimate.of(only).estimator == "ww_stein"
    assert WeightEstimate.of(SimpleNamespace(sums={}, biased=False, chains=16)) is None
