"""Families: unbiased slope with errors in both variables, calibrated jackknife, Hotelling and Benjamini-Hochberg rates."""

import numpy as np
import pytest
from scipy.stats import kstest

from compare import families
from data.errors import InputError


def test_york_recovers_the_slope_where_least_squares_is_attenuated():
    rng = np.random.default_rng(0)
    true = np.linspace(-1, 1, 300)
    slopes, plain = [], []
    for _ in range(200):
        x, y = true + 0.3 * rng.normal(size=300), 2.0 * true + 0.5 + 0.2 * rng.normal(size=300)
        slopes.append(families.york(x, y, 0.3, 0.2)[0])
        plain.append(np.polyfit(x, y, 1)[0])
    error = np.std(slopes) / np.sqrt(200)
    assert abs(np.mean(slopes) - 2.0) < 4 * error
    assert np.mean(plain) < 1.7, "the control: least squares alone is attenuated"


def test_slope_errors_are_calibrated_with_correlated_components():
    rng = np.random.default_rng(1)
    predicted = rng.normal(size=20)
    mix = rng.normal(size=(20, 20)) / 4
    z = []
    for _ in range(300):
        chains = 1.05 * predicted + rng.normal(size=(16, 20)) @ mix
        found = families.fit(chains, predicted)
        z.append((found.slope - 1.05) / found.slope_se)
    assert 0.75 < np.var(z) < 1.45  # Student's t of 15 dof has variance 1.15; 300 trials: 4 standard errors


def test_hotelling_p_values_are_uniform_and_a_shift_is_found():
    rng = np.random.default_rng(2)
    mix = rng.normal(size=(5, 5))
    p = [families.hotelling(rng.normal(size=(12, 5)) @ mix, np.zeros(5)).p for _ in range(400)]
    assert kstest(p, "uniform").pvalue > 1e-3
    shifted = [families.hotelling(rng.normal(size=(12, 5)) @ mix + 3.0 * mix[0], np.zeros(5)).p for _ in range(50)]
    assert np.mean(np.array(shifted) < 0.05) > 0.9
    with pytest.raises(InputError, match="5 components need more than 5 chains"):
        families.hotelling(np.zeros((5, 5)), np.zeros(5))


def test_false_discoveries_are_controlled():
    rng = np.random.default_rng(3)
    shares, found = [], []
    for _ in range(200):
        truth = np.zeros(100)
        truth[:10] = 1.2
        chains = truth + rng.normal(size=(16, 100))
        hits = families.discoveries(families.p_values(chains, np.zeros(100)), 0.1)
        shares.append(hits[10:].sum() / max(hits.sum(), 1))
        found.append(hits[:10].mean())
    assert np.mean(shares) < 0.1 + 4 * np.std(shares) / np.sqrt(200)
    assert np.mean(found) > 0.7


def test_bad_input():
    with pytest.raises(InputError, match="three components"):
        families.york([1.0, 2.0], [1.0, 2.0], 0, 1)
    with pytest.raises(InputError, match="at least 3"):
        families.fit(np.zeros((2, 4)), np.arange(4.0))


def test_errors_of_the_predictions_enter_the_error_of_the_slope():
    """Level 4's block of Eq. (1) is itself Monte Carlo: without its part the error of the slope is half of what it should be."""
    rng = np.random.default_rng(4)
    true = np.linspace(-1, 1, 30)
    z, bare = [], []
    for _ in range(100):
        predicted = true + 0.1 * rng.normal(size=30)
        chains = true + 0.2 * rng.normal(size=(16, 30))
        found = families.fit(chains, predicted, 0.1)
        z.append((found.slope - 1.0) / found.slope_se)
        bare.append((families.fit(chains, predicted).slope - 1.0) / families.fit(chains, predicted).slope_se)
    assert 0.5 < np.var(z) < 1.7  # 100 trials: 4 standard errors
    assert np.var(bare) > 2.5, "the control"


def test_constant_components_have_no_joint_test():
    chains = np.random.default_rng(5).normal(size=(12, 3))
    chains[:, 2] = chains[:, 0] + chains[:, 1]
    with pytest.raises(InputError, match="do not vary independently"):
        families.hotelling(chains, np.zeros(3))
