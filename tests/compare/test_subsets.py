"""Random effects over data subsets, and finite-size extrapolation: stated coverage on simulations, and what must be refused."""

import numpy as np
import pytest

from compare.finite_size import extrapolate, survival
from compare.subsets import across, random_effects
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


def population(rng, relative, *, tau=0.02, se=0.02, n=10):
    """n subsets: effects 1 +- 0.2 over priors that differ, the level off by relative +- tau of its own effect, chains' errors se."""
    effect = 1.0 + 0.2 * rng.normal(size=n)
    prior = 3.0 + rng.normal(size=n)
    measured = prior + effect + se * rng.normal(size=n)
    predicted = prior + effect * (1.0 - relative - tau * rng.normal(size=n))
    return measured, np.full(n, se), predicted, 0.0, prior


def shares(relative, trials=250, **options):
    rng = np.random.default_rng(3)
    found = []
    for _ in range(trials):
        *columns, prior = population(rng, relative, **options)
        found.append(across(*columns, prior=prior).outcome)
    return {name: found.count(name) / trials for name in ("agrees", "differs", "inconclusive")}


def test_the_verdict_over_subsets_is_calibrated():
    """250 populations: a rate of 5% has a standard error of 1.4%, one of 2.5% of 1%."""
    for side in (1, -1):
        at_margin = shares(side * 0.1)
        assert 0.004 < at_margin["agrees"] < 0.106
        assert at_margin["differs"] < 0.065
    assert shares(0.0, trials=60)["agrees"] > 0.95
    assert shares(0.2, trials=60)["differs"] > 0.95
    assert shares(0.05, trials=60, tau=0.3)["inconclusive"] > 0.8


def test_relative_differences_and_unresolved_effects():
    rng = np.random.default_rng(4)
    *columns, prior = population(rng, 0.05)
    found = across(*columns, prior=prior)
    assert found.relative.low < 0.05 < found.relative.high
    assert found.difference.n == 10
    none = across(*columns, prior=columns[0] + 0.02 * rng.normal(size=10))
    assert none.outcome == "inconclusive"
    assert none.relative is None
    assert "not resolved" in none.reason


def test_what_survives_at_infinite_width():
    N1, errors = np.array([20, 40, 80, 160]), np.array([0.01, 0.01, 0.015, 0.02])
    rng = np.random.default_rng(5)

    def outcomes(c0, c2=0.0):
        return [
            survival(extrapolate(N1, c0 + 2.0 / N1 + c2 / N1**2 + errors * rng.normal(size=4), errors)).outcome
            for _ in range(TRIALS)
        ]

    # The fit is refused in 5% of cases, independently of c0; 600 trials: 5% +- 3.6%, 2.5% +- 2.6% at 4 standard errors
    assert 0.015 < outcomes(0.1).count("vanishes") / TRIALS < 0.086
    assert outcomes(-0.1).count("survives") / TRIALS < 0.051
    assert outcomes(0.0).count("vanishes") / TRIALS > 0.9
    assert outcomes(0.2).count("survives") / TRIALS > 0.9
    assert outcomes(0.0, c2=400.0).count("inconclusive") / TRIALS > 0.95, "higher orders are noticed"
    wide = survival(extrapolate(N1, 0.1 + 0.0 / N1, 50 * errors))
    assert (wide.outcome, wide.reason) == ("inconclusive", "the error at infinite width is too large to tell")


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
    with pytest.raises(InputError, match="margin = 0"):
        survival(extrapolate([10, 20], [1.0, 1.0], [0.1, 0.1]), margin=0)
    with pytest.raises(InputError, match="margin = 2"):
        across([1.0] * 3, [0.1] * 3, [1.0] * 3, prior=[0.0] * 3, margin=2)
