"""Diagnosis of a run: false-alarm rates on autocorrelated chains of known law, and what must be caught."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from sampling.agreement import spread_p, starts_p, within
from sampling.diagnostics import GATES, assess, estimate


def ar1(rng, chains, draws, rho):
    """Stationary AR(1) of unit variance: integrated autocorrelation time (1 + rho)/(1 - rho)."""
    x = np.empty((chains, draws))
    x[:, 0] = rng.normal(size=chains)
    noise = math.sqrt(1 - rho**2) * rng.normal(size=(chains, draws))
    for t in range(1, draws):
        x[:, t] = rho * x[:, t - 1] + noise[:, t]
    return x


def a_run(series, starts):
    chains = len(starts)
    return SimpleNamespace(series=dict.fromkeys(GATES, series), chains=chains, starts=starts, manifest={})


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8])
def test_p_values_of_agreement_are_uniform_where_chains_agree(rho):
    """1500 runs of 16 chains: the share of p < 0.02 is 0.02 +- 0.0036, so 0.036 is 4.4 standard errors up. At 0.001: 0.001 +- 0.0008."""
    rng = np.random.default_rng(1)
    kinds = ["prior", "aligned"] * 8
    wide, narrow, starts = [], [], []
    for _ in range(1500):
        one = within(ar1(rng, 16, 300, rho))
        for found, p in zip((wide, narrow), spread_p(one), strict=True):
            found.append(p)
        starts.append(starts_p(one, kinds, "aligned", "prior")[1])
    for p in map(np.array, (wide, narrow, starts)):
        assert (p < 0.02).mean() < 0.036
        assert (p < 0.001).mean() < 0.0045
        assert abs(np.median(p) - 0.5) < 0.08


def test_within_error_is_that_of_the_law():
    """The variance of a chain's mean is tau/n: 200 estimates agree with it to a few per cent, and its dof says their scatter."""
    rng, rho, n = np.random.default_rng(2), 0.7, 400
    found = [within(ar1(rng, 12, n, rho)) for _ in range(200)]
    tau = (1 + rho) / (1 - rho)
    variances = np.array([one.variance for one in found])
    assert variances.mean() == pytest.approx(tau / n, rel=0.05)
    said = np.mean([2 / one.dof for one in found])
    assert 0.4 < (variances.std() / variances.mean()) ** 2 / said < 2.5


def test_chains_in_two_phases_are_caught():
    """Half of the chains sit 0.3 sd away: R-hat alone (1.01 to 1.02) is near its limit; spread and starts say it clearly."""
    rng = np.random.default_rng(3)
    series = ar1(rng, 16, 1500, 0.3)
    kinds = ["prior", "aligned"] * 8
    assert assess(a_run(series, kinds)).ok
    series[1::2] += 0.3
    diagnosis = assess(a_run(series, kinds))
    text = " ".join(diagnosis.reasons)
    assert not diagnosis.ok
    assert "spread" in text
    assert "starts disagree" in text


def test_copied_chains_are_caught():
    """Chains that share their noise agree too well."""
    rng = np.random.default_rng(4)
    series = np.repeat(ar1(rng, 1, 1500, 0.5), 16, axis=0) + 1e-6 * rng.normal(size=(16, 1500))
    assert any("closer than independent" in reason for reason in assess(a_run(series, ["prior"] * 16)).reasons)


def test_nan_and_single_chains_are_never_accepted():
    rng = np.random.default_rng(5)
    good = ar1(rng, 4, 2000, 0.0)
    assert not assess(a_run(good[:1], ["prior"])).ok
    spoiled = good.copy()
    spoiled[2, 7] = math.nan
    diagnosis = assess(a_run(spoiled, ["prior"] * 4))
    assert not diagnosis.ok
    assert any("not finite" in reason for reason in diagnosis.reasons)
    assert math.isnan(estimate(spoiled).mcse)
