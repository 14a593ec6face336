"""Reweighting between temperatures on an exactly solvable family: values, errors, overlap; against pymbar, the second implementation."""

import math
import warnings

import numpy as np
import pytest

from compare.peak import Temperature, measured_peak
from compare.reweight import reweighted, solve
from data.errors import InputError

# Prior x ~ N(0, 1) in n = 6 dimensions, log-likelihood -|x - m|^2/(2T): at T the posterior is N(m/(1+T), T/(1+T)).
# O = -|x|^2: <O> = -|m|^2/(1+T)^2 - n T/(1+T), and with |m|^2 = n its one maximum is at T = 1, between two of the ladder.
N = 6
M = np.ones(N)
PEAK = 1.0
LADDER = np.geomspace(0.05, 5, 7)
FINE = np.geomspace(0.05, 5, 13)  # the ladder and its midpoints


def bump(x):
    return -(x**2).sum(-1)


def exact(T):
    return -N / (1 + T) ** 2 - N * T / (1 + T)


def draws(rng, ladder=LADDER, at=FINE, chains=16, count=40, rho=0.5):
    """(values, loglik) of autocorrelated chains at every T of the ladder: AR(1) in x, integrated autocorrelation time 3 at rho = 0.5."""
    values, tables = [], []
    for T in ladder:
        noise = rng.normal(size=(count, chains, N))
        x = np.empty_like(noise)
        x[0] = noise[0]
        for t in range(1, count):
            x[t] = rho * x[t - 1] + math.sqrt(1 - rho**2) * noise[t]
        x = (M / (1 + T) + math.sqrt(T / (1 + T)) * x).swapaxes(0, 1)
        values.append(bump(x))
        tables.append(-((x - M) ** 2).sum(-1)[..., None] / (2 * np.asarray(at)))
    return values, tables


@pytest.fixture(scope="module")
def sets():
    """100 data sets (values, loglik)."""
    return [draws(np.random.default_rng(seed)) for seed in range(100)]


@pytest.fixture(scope="module")
def many(sets):
    """Their curves."""
    return [reweighted(LADDER, *one, at=FINE, points=61) for one in sets]


def test_the_whole_curve_is_right_and_its_errors_are_calibrated(many):
    """100 replications with autocorrelation: the variance of z is known to 14% (dof of about 50 make it 1.04)."""
    assert all(curve is not None for curve in many)
    x = many[0].x
    z = np.array([(curve.mean - exact(np.exp(x))) / curve.points()[1] for curve in many])
    assert np.abs(z.mean(0)).max() < 4.5 / math.sqrt(len(many))
    assert 0.5 < z.var(0).min() <= z.var(0).max() < 1.75
    assert many[0].interpolation < many[0].points()[1].mean()


def test_differences_and_slopes_carry_the_covariance(many):
    x = many[0].x
    here, there = 40, int(many[0].nodes[0])
    truth = exact(np.exp(x[here])) - exact(np.exp(x[there]))
    z, slope_z = [], []
    step = 1e-5
    slope = (exact(np.exp(x[here] + step)) - exact(np.exp(x[here] - step))) / (2 * step)
    for curve in many:
        (gap,), (se,), _ = curve.gaps(np.array([here]), there)
        z.append((gap - truth) / se)
        value, error, _ = curve.slope()
        slope_z.append((value[here] - slope) / error[here])
    assert 0.5 < np.var(z) < 1.7
    assert 0.5 < np.var(slope_z) < 1.7
    assert abs(np.mean(slope_z)) < 4.5 / math.sqrt(len(many))


def test_pooling_temperatures_lowers_the_error(sets, many):
    single = np.array([one.mean(1).std(ddof=1) / 4 for one in sets[0][0]])
    pooled = np.mean([curve.points()[1][curve.nodes] for curve in many], axis=0)
    assert (pooled[1:-1] < 0.9 * single[1:-1]).all()


def test_against_pymbar():
    """Means to rounding; errors of independent draws within the accuracy of both (16 chains a temperature: about 10%)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pymbar = pytest.importorskip("pymbar", reason="pymbar is not installed")
    values, tables = draws(np.random.default_rng(1), at=LADDER, rho=0.0)
    found = reweighted(LADDER, values, tables)
    energies = -np.concatenate([table.reshape(-1, len(LADDER)) for table in tables]).T
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = pymbar.MBAR(energies, np.array([value.size for value in values]))
        expected = other.compute_expectations(np.concatenate([value.ravel() for value in values]))
        overlap = other.compute_overlap()["matrix"]
    np.testing.assert_allclose(found.mean[found.nodes], expected["mu"], rtol=1e-9)
    assert np.all(np.abs(np.log(found.points()[1][found.nodes] / expected["sigma"])) < 0.35)
    sizes = np.array([value.size for value in values])
    table = np.concatenate([table.reshape(-1, len(LADDER)) for table in tables])
    np.testing.assert_allclose(solve(table, sizes, sizes.astype(float)).overlap, overlap, atol=1e-8)


def test_free_energies_of_the_solvable_family():
    """Z_T = integral of prior times exp(-|x - m|^2/(2T)) = (T/(1+T))^{n/2} exp(-|m|^2/(2(1+T)))."""
    values, tables = draws(np.random.default_rng(2), at=LADDER, count=400, rho=0.0)
    table = np.concatenate([one.reshape(-1, len(LADDER)) for one in tables])
    sizes = np.array([value.size for value in values])
    f = solve(table, sizes, sizes.astype(float)).f
    truth = -(N / 2 * np.log(LADDER / (1 + LADDER)) - M @ M / (2 * (1 + LADDER)))
    assert np.abs(f - (truth - truth[0])).max() < 0.1


def test_anchors_lower_the_error_and_keep_it_calibrated():
    """Means at the sampled T with a fifth of the error, as control variates give them."""
    z, shrink = [], []
    for seed in range(80):
        rng = np.random.default_rng(1000 + seed)
        values, tables = draws(rng, count=20, rho=0.0)
        plain = reweighted(LADDER, values, tables, at=FINE, points=21)
        chains = [exact(T) + 0.2 * (value.mean(1) - exact(T)) for T, value in zip(LADDER, values, strict=True)]
        anchors = (np.array([one.mean() for one in chains]), chains)
        found = reweighted(LADDER, values, tables, at=FINE, anchors=anchors, points=21)
        se = found.points()[1]
        z.append((found.mean - exact(np.exp(found.x))) / se)
        shrink.append(se / plain.points()[1])
    z = np.array(z)
    assert 0.5 < z.var(0).min() <= z.var(0).max() < 1.9
    assert np.abs(z.mean(0)).max() < 4.5 / math.sqrt(80)
    assert np.mean(shrink, axis=0)[found.nodes].max() < 0.6


def test_the_peak_of_a_reweighted_curve(sets, many):
    """The maximum lies between two sampled temperatures; the interval holds it and the method is named."""
    inside = []
    for (values, _), curve in zip(sets, many, strict=True):
        points = []
        for T, value in zip(LADDER, values, strict=True):
            means = value.mean(1)
            se = float(means.std(ddof=1) / math.sqrt(len(means)))
            points.append(Temperature(float(T), float(means.mean()), se, means, np.full(16, math.nan)))
        peak = measured_peak(points, flat=0.05, curve=curve)
        assert (peak.outcome, peak.method) == ("yes", "mbar")
        assert "overlap" in peak.note
        inside.append(peak.T_low <= PEAK <= peak.T_high)
    assert 0.86 <= np.mean(inside) < 1  # 95% of 100, 4 standard errors below


def test_too_little_overlap_is_refused():
    sparse = np.geomspace(1e-4, 1e2, 4)
    assert reweighted(sparse, *draws(np.random.default_rng(3), ladder=sparse, at=sparse)) is None


def test_bad_input():
    values, tables = draws(np.random.default_rng(4), at=LADDER, count=8)
    with pytest.raises(InputError, match="at least 4 temperatures"):
        reweighted(LADDER[:3], values[:3], [one[..., :3] for one in tables[:3]])
    with pytest.raises(InputError, match="must go with values"):
        reweighted(LADDER, values, [one[..., :5] for one in tables])
    with pytest.raises(InputError, match="known at every sampled temperature"):
        reweighted(LADDER, values, tables, at=LADDER * 1.1)
    tables[2][0, 0, 0] = math.nan
    assert reweighted(LADDER, values, tables) is None
