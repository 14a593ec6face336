"""Random effects over data subsets, and finite-size extrapolation: stated coverage on simulations, and what must be refused."""

import numpy as np
import pytest

from compare.finite_size import extrapolate
from compare.subsets import random_effects
from data.errors import InputError

TRIALS = 600  # a coverage of 95% has a standard error of 0.9%: 91.5% is 4 of them below


@pytest.mark.parametrize("tau", [0.0, 0.3])
def test_coverage_with_ten_subsets(tau):
    rng = np.random.default_rng(0)
    hits = dict.fromkeys(("mean", "tau", "next"), 0)
    for _ in range(TRIALS):
        errors = rng.uniform(0.05, 0.3, size=10)
        theta = 1.0 + tau * rng.normal(size=11)
        found = random_effects(theta[:10] + errors * rng.normal(size=10), errors)
        hits["mean"] += found.low <= 1.0 <= found.high
        hits["tau"] += found.tau_low <= tau <= found.tau_high
        hits["next"] += found.predicted_low <= theta[10] <= found.predicted_high
    assert hits["mean"] / TRIALS > 0.915
    assert hits["tau"] / TRIALS > 0.915
    assert hits["next"] / TRIALS > 0.915


def test_heterogeneity_is_found_and_not_invented():
    rng = np.random.default_rng(1)
    errors = np.full(12, 0.1)
    alone = [random_effects(errors * rng.normal(size=12), errors).p for _ in range(TRIALS)]
    assert 0.02 < np.mean(np.array(alone) < 0.05) < 0.09
    spread = [random_effects(0.3 * rng.normal(size=12) + errors * rng.normal(size=12), errors).p for _ in range(100)]
    assert np.mean(np.array(spread) < 0.05) > 0.9


def test_extrapolation_is_calibrated_and_curvature_is_noticed():
    rng = np.random.default_rng(2)
    N1, errors = np.array([20, 40, 80, 160]), np.array([0.02, 0.02, 0.03, 0.04])
    z, p, bent = [], [], []
    for _ in range(TRIALS):
        noise = errors * rng.normal(size=4)
        found = extrapolate(N1, 2.0 + 5.0 / N1 + noise, errors)
        z.append((found.c0 - 2.0) / found.c0_se)
        p.append(found.p)
        bent.append(extrapolate(N1, 2.0 + 300.0 / N1**2 + noise, errors).p)
    assert 0.77 < np.var(z) < 1.23  # 4 standard errors of a variance from 600
    assert np.mean(np.array(p) < 0.05) < 0.09
    assert np.mean(np.array(bent) < 0.05) > 0.9
    assert np.isnan(extrapolate(N1[:2], [1.0, 2.0], errors[:2]).p)


def test_bad_input():
    with pytest.raises(InputError, match="three of them"):
        random_effects([1.0, 2.0], [0.1, 0.1])
    with pytest.raises(InputError, match="standard error > 0"):
        random_effects([1.0, 2.0, 3.0], [0.1, 0.0, 0.1])
    with pytest.raises(InputError, match="two different widths"):
        extrapolate([10, 10], [1.0, 1.0], [0.1, 0.1])
