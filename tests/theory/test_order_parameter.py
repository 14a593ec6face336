"""p(Q|y) where other forms of it are known: T = 0, two phases, the prior, extreme widths; and its stated accuracy."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import digamma
from scipy.stats import geninvgauss

import theory
from data.problem import Dataset, Problem
from theory import Spectrum
from theory.action import action, slope, solve
from theory.order_parameter import OrderParameter


def orthogonal(lengths, y):
    """A linear network on orthogonal patterns, so that K = diag(lengths): a spectrum of one's choice, with any labels."""
    lengths = np.asarray(lengths, dtype=float)
    X = np.diag(np.sqrt(len(lengths) * lengths))
    classes = np.where(np.arange(len(lengths)) % 2, 1.0, -1.0)
    return Dataset(X, np.asarray(y, dtype=float), classes)


TWO_PHASES = orthogonal([1.0] * 30 + [1e-3], [0.0] * 30 + [0.48])


def spectrum_of(values, y):
    """A Spectrum with these eigenvalues, and labels in its eigenbasis."""
    rng, P = np.random.default_rng(0), len(values)
    classes = np.where(np.arange(P) % 2, 1.0, -1.0)
    base = Spectrum.of(Dataset(rng.normal(size=(P, 3)), classes, classes), "erf")
    return dataclasses.replace(base, values=np.sort(values), y=np.asarray(y))


def gaussian(P=6, N0=12, seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(P) < P // 3, 1.0, -1.0)
    return Dataset(rng.normal(size=(P, N0)), y, y)


@pytest.mark.parametrize("N1", [2, 6, 40])
def test_zero_temperature_is_a_generalised_inverse_gaussian(N1):
    """p = (N1 - P)/2, a = N1, b = lambda1 y^T K^{-1} y; scipy's form has one shape sqrt(ab) and the scale sqrt(b/a)."""
    data, lambda1 = gaussian(), 0.7
    spectrum = Spectrum.of(data, "erf")
    b = lambda1 * data.y @ np.linalg.solve(spectrum.K, data.y)
    exact = geninvgauss((N1 - 6) / 2, math.sqrt(N1 * b), scale=math.sqrt(b / N1))
    found = theory.predict(Problem(data, N1, 0.0, lambda1=lambda1), spectrum=spectrum)
    assert found.q.mean == pytest.approx(exact.mean(), rel=1e-10)
    assert found.q.sd == pytest.approx(exact.std(), rel=1e-8)
    inverse = exact.expect(lambda q: 1 / q)
    aKa, a_y = data.a @ spectrum.K @ data.a, data.a @ data.y
    level3 = N1 * aKa - aKa + lambda1 * inverse * a_y**2
    assert found.levels["eq3_q_averaged"].value == pytest.approx(level3, rel=1e-7)
    assert found.q.fbar_a == pytest.approx(a_y, rel=1e-12), "T = 0 interpolates"
    cool = theory.predict(Problem(data, N1, 1e-9, lambda1=lambda1), spectrum=spectrum)
    assert cool.q.mean == pytest.approx(found.q.mean, rel=1e-6), "the limit is reached"
    assert cool.q.log_evidence == pytest.approx(found.q.log_evidence, abs=1e-5)


def test_two_phases():
    """One weak pattern with a large label against thirty strong silent ones: S has two minima, both with weight in p(Q|y)."""
    spectrum = Spectrum.of(TWO_PHASES, "linear")
    saddle = solve(spectrum, 10, 1e-3)
    assert saddle.certified
    assert saddle.status == "lowest of 3"
    assert [point.curvature > 0 for point in saddle.stationary] == [True, False, True]
    low, high = saddle.stationary[0], saddle.stationary[2]
    assert abs(5 * (low.action - high.action)) < 5, "neither phase is negligible: the case tests both"
    order = OrderParameter.of(spectrum, saddle)

    def density(x):
        return math.exp(-5 * (float(action(spectrum, math.exp(x), 10, 1e-3)) - saddle.stationary[0].action))

    ends = np.linspace(math.log(order.Q[0]), math.log(order.Q[-1]), 30)
    moments = [
        sum(
            quad(lambda x, n=n: density(x) * math.exp(n * x), a, b, epsrel=1e-12)[0]
            for a, b in itertools.pairwise(ends)
        )
        for n in (0, 1)
    ]
    assert order.Q_mean == pytest.approx(moments[1] / moments[0], rel=1e-9)
    assert order.Q_mean != pytest.approx(saddle.value, rel=0.05), "the control: one phase is not the average"


def test_a_pair_of_stationary_points_about_to_merge_is_found():
    """Just before the second phase vanishes its minimum and maximum come together: closer than the scan's step, still two."""
    data, step = TWO_PHASES, []
    low, high = 0.2, 0.48  # number of stationary points: 1 at the first label, 3 at the second

    def points(label):
        y = np.r_[np.zeros(30), label]
        return solve(Spectrum.of(data.replace(y=y), "linear"), 10, 1e-3).stationary

    assert (len(points(low)), len(points(high))) == (1, 3)
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if len(points(middle)) == 3 else (middle, high)
        if len(points(high)) == 3:
            step.append(math.log(points(high)[2].Q / points(high)[1].Q))
    assert min(step) < 0.01, "a fifth of the scan's step"


def test_hot_it_is_the_prior():
    order = OrderParameter.of(Spectrum.of(gaussian(), "erf"), solve(Spectrum.of(gaussian(), "erf"), 7, 1e12))
    assert order.Q_mean == pytest.approx(1.0, abs=1e-9)
    assert order.Q_sd == pytest.approx(math.sqrt(2 / 7), rel=1e-8)
    assert order.mean(np.log(order.Q)) == pytest.approx(digamma(3.5) - math.log(3.5), rel=1e-9)


@pytest.mark.parametrize("T", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("N1", [1, 100, 10**6])
@pytest.mark.parametrize("label", [0.0, 1.0, 1e3])
def test_extremes_reach_the_stated_accuracy(T, N1, label):
    data = gaussian(P=20, N0=8)
    spectrum = Spectrum.of(data.replace(y=label * data.y), "erf")
    saddle = solve(spectrum, N1, T)
    assert saddle.certified
    order = OrderParameter.of(spectrum, saddle)
    fine = OrderParameter.of(spectrum, saddle, points=4 * len(order.Q))
    assert order.error < max(1e-12, 1e-15 * N1 * saddle.scale)
    assert order.Q_mean == pytest.approx(fine.Q_mean, rel=1e-11)
    assert order.log_evidence == pytest.approx(fine.log_evidence, rel=1e-11, abs=1e-9)
    assert order.Q_mean == pytest.approx(saddle.value, rel=10 / math.sqrt(N1)), "mode and mean agree as N1 grows"


@pytest.mark.parametrize("seed", range(4))
def test_random_spectra_over_many_decades(seed):
    """Certified, no stationary point missed by a dense scan, and <Q> the same on four times as many nodes, 30 spectra a seed."""
    rng = np.random.default_rng(seed)
    several = 0
    for _ in range(30):
        strong, weak, N1 = int(rng.integers(2, 40)), int(rng.integers(1, 4)), int(10 ** rng.uniform(0, 2.5))
        T, lambda1 = 10 ** rng.uniform(-8, 2), 10 ** rng.uniform(-1, 1)
        values = np.r_[T * lambda1 * 10 ** rng.uniform(-4, 1, weak), 10 ** rng.uniform(0, 2, strong)]
        y = np.r_[np.sqrt(T * N1 * 10 ** rng.uniform(-1, 4, weak)), 1e-3 * rng.normal(size=strong)]
        order = np.argsort(values)
        spectrum = spectrum_of(values[order], y[order])
        saddle = solve(spectrum, N1, T, lambda1)
        assert saddle.certified
        dense = np.geomspace(*saddle.bracket, 4001)
        signs = np.sign(slope(spectrum, dense, N1, T, lambda1))
        assert (np.diff(signs) != 0).sum() <= len(saddle.stationary)
        assert saddle.stationary[0].curvature > 0
        assert saddle.stationary[-1].curvature > 0
        lowest = min(point.action for point in saddle.stationary)
        assert lowest <= action(spectrum, dense, N1, T, lambda1).min() + 1e-9 * (1 + abs(lowest))
        several += len(saddle.stationary) > 1
        found = OrderParameter.of(spectrum, saddle)
        fine = OrderParameter.of(spectrum, saddle, points=4 * len(found.Q))
        assert found.Q_mean == pytest.approx(fine.Q_mean, rel=1e-10)
        assert found.log_evidence == pytest.approx(fine.log_evidence, rel=1e-11, abs=1e-10)
    assert several >= 2, "the case of several stationary points is among them"


def test_a_density_over_many_decades_of_Q():
    """<Q> lies far out in the tail of p(log Q): an edge a little inside is wrong by 1e-9, and slow."""
    spectrum = spectrum_of(np.geomspace(1e-6, 1e4, 6), np.full(6, 1e-4))
    order = OrderParameter.of(spectrum, solve(spectrum, 1, 1e-6))
    x = np.linspace(math.log(order.Q[0]) - 20, math.log(order.Q[-1]) + 1, 200_001)
    weight = np.exp(-0.5 * (action(spectrum, np.exp(x), 1, 1e-6) - solve(spectrum, 1, 1e-6).stationary[0].action))
    assert order.Q_mean == pytest.approx(weight @ np.exp(x) / weight.sum(), rel=1e-11)
    assert len(order.Q) < 1000
