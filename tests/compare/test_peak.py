"""Peak verdicts: a known maximum is found where it is, a monotone curve is not given one, noise decides nothing."""

import math

import numpy as np
import pytest

from compare.peak import Temperature, curve_peak, measured_peak, slopes
from data.errors import InputError


def curve(T, kind):
    """<O>(T) and dO/dlogT in closed form: a bump in log T at 0.1, or a monotone rise."""
    x = np.log(T / 0.1)
    if kind == "bump":
        return 10 + 2 * np.exp(-0.5 * (x / 1.5) ** 2), -2 * x / 2.25 * np.exp(-0.5 * (x / 1.5) ** 2)
    return 10 + np.tanh(x / 2), 0.5 / np.cosh(x / 2) ** 2


def points(rng, kind, noise=0.02, temperatures=(0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0), chains=16):
    found = []
    for T in temperatures:
        value, slope = curve(T, kind)
        means = value + noise * math.sqrt(chains) * rng.normal(size=chains)
        tangents = slope + 2 * noise * math.sqrt(chains) * rng.normal(size=chains)
        se = float(means.std(ddof=1)) / math.sqrt(chains)
        found.append(Temperature(T, float(means.mean()), se, means, tangents))
    return found


def test_a_known_maximum_is_found_with_a_calibrated_interval():
    inside, heights, rises = [], [], []
    for seed in range(150):
        peak = measured_peak(points(np.random.default_rng(seed), "bump"), flat=0.2)
        assert (peak.outcome, peak.witness) == ("yes", "yes")
        assert peak.method == "pointwise"
        inside.append(peak.T_low <= 0.1 <= peak.T_high)
        heights.append((peak.height - 12.0) / peak.height_se)
        rises.append((peak.rise - 12.0 + curve(0.003, "bump")[0]) / peak.rise_se)
    # 95% of 150 trials, and 4 standard errors: 0.88 and all of them
    assert 0.88 <= np.mean(inside) <= 0.999
    # the maximum of a noisy curve is biased upwards by less than its error
    assert abs(np.mean(heights)) < 0.5
    assert 0.75 < np.std(heights) < 1.35
    assert 0.75 < np.std(rises) < 1.35


def test_a_monotone_curve_gets_no_maximum():
    outcomes = [measured_peak(points(np.random.default_rng(s), "rise"), flat=0.2).outcome for s in range(100)]
    assert outcomes.count("no") > 95
    assert outcomes.count("yes") <= 5  # false-alarm rate 5% at most, far less here: the last points are nearly level


@pytest.mark.parametrize("chains", [4, 16])
def test_the_false_alarm_rate_at_a_plateau(chains):
    """Worst case of the union: an inner point equal to the higher end. The stated level is an upper bound, reached here."""
    rng = np.random.default_rng(0)
    alarms = 0
    for _ in range(400):
        found = []
        for T, truth in ((0.1, 9.0), (1.0, 10.0), (10.0, 10.0)):
            means = truth + 0.2 * rng.normal(size=chains)
            se = float(means.std(ddof=1)) / math.sqrt(chains)
            found.append(Temperature(T, float(means.mean()), se, means, np.full(chains, math.nan)))
        alarms += measured_peak(found, flat=0.5).outcome == "yes"
    assert 0.01 < alarms / 400 < 0.094  # 5% + 4 standard errors; far from 0


def test_too_little_data_is_inconclusive():
    noisy = [measured_peak(points(np.random.default_rng(s), "bump", noise=2.0), flat=0.2).outcome for s in range(50)]
    assert noisy.count("inconclusive") >= 45
    two = measured_peak(points(np.random.default_rng(0), "bump")[:2], flat=0.2)
    assert (two.outcome, two.reason) == ("inconclusive", "fewer than three temperatures")
    stuck = points(np.random.default_rng(0), "bump")
    stuck[2] = Temperature(**(vars(stuck[2]) | {"converged": False}))
    assert measured_peak(stuck, flat=0.2).outcome == "inconclusive"
    assert "T = 0.03" in measured_peak(stuck, flat=0.2).reason


def test_a_maximum_between_the_temperatures_is_not_denied():
    """Three temperatures that step over the maximum: the values alone would say no, the slopes forbid it."""
    rng = np.random.default_rng(0)
    stepped = points(rng, "bump", temperatures=(0.06, 1.0, 3.0))
    found = measured_peak(stepped, flat=0.2)
    assert (found.outcome, found.witness) == ("inconclusive", "yes")
    assert "put temperatures between" in found.reason


def test_slopes_are_those_of_an_exactly_solvable_family():
    """p ~ exp(-R/(2T) - |x|^2/2), R = |x|^2 in n dimensions: O = R has mean n T/(1+T), slope n T/(1+T)^2 in log T."""
    rng = np.random.default_rng(1)
    n, T = 5, 0.7
    x = rng.normal(size=(64, 2000, n)) * math.sqrt(T / (1 + T))
    O = (x**2).sum(-1)  # noqa: E741
    found = slopes(O, O, T)
    error = found.std(ddof=1) / math.sqrt(len(found))
    exact = n * T / (1 + T) ** 2
    assert abs(found.mean() - exact) < 4.5 * error
    assert abs(found.mean() - 2 * exact) > 4.5 * error, "the control: a factor of 2 is seen"


def test_theory_curves():
    T = np.geomspace(0.003, 3, 60)
    found = curve_peak(T, curve(T, "bump")[0], flat=0.2)
    assert found.outcome == "yes"
    assert found.T_peak == pytest.approx(0.1, rel=1e-2)
    assert found.height == pytest.approx(12.0, abs=1e-3)
    assert curve_peak(T, curve(T, "rise")[0], flat=0.2).outcome == "no"
    assert curve_peak(T, curve(T, "bump")[0], se=np.full(60, 3.0), flat=0.2).outcome == "inconclusive"


def test_bad_input():
    good = points(np.random.default_rng(0), "bump")
    with pytest.raises(InputError, match="different temperatures"):
        measured_peak([*good, good[0]], flat=0.2)
    with pytest.raises(InputError, match="flat = 0"):
        measured_peak(good, flat=0)
