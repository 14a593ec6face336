"""p(Q|y) where other forms of it are known: T = 0, two phases, the prior, extreme widths; and its stated accuracy."""

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
from theory.action import action, solve
from theory.order_parameter import OrderParameter


def orthogonal(lengths, y):
    """A linear network on orthogonal patterns, so that K = diag(lengths): a spectrum of one's choice, with any labels."""
    lengths = np.asarray(lengths, dtype=float)
    X = np.diag(np.sqrt(len(lengths) * lengths))
    classes = np.where(np.arange(len(lengths)) % 2, 1.0, -1.0)
    return Dataset(X, np.asarray(y, dtype=float), classes)


TWO_PHASES = orthogonal([1.0] * 30 + [1e-3], [0.0] * 30 + [0.48])


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
