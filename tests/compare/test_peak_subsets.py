"""The peak over data subsets: stated rates on simulated populations of curves, place against Eq. (4), origin, and what is undecided."""

import math

import numpy as np
import pytest

from compare.peak_answer import Origin, PeakAnswer
from compare.peak_subsets import peak_across
from data.errors import InputError

T = [0.01, 0.1, 1.0, 10.0]
TRIALS = 200  # a rate of 5% has a standard error of 1.5%; 9.7% is three of them above


SHIFTS = np.exp(
    0.35 * np.array([-1.5, -0.9, -0.4, -0.1, 0.1, 0.4, 0.9, 1.5])
)  # as errors of a factor 2 (95%) would have it


def one(vote="yes", T_peak=0.1, T_eq4=0.12, share=0.9, width=1.3):
    """A subset's own answer; T_eq4 NaN where Eq. (4) has no maximum."""
    made = Origin("yes", T_peak, (share, 0.02), (share, 0.03)) if vote == "yes" else None
    place = (T_peak, T_peak / width, T_peak * width) if vote == "yes" else (math.nan,) * 3
    return PeakAnswer(100, vote, "", "yes", T[0], T[-1], *place, T_eq4, "agrees", made, "")


def population(rng, curve, *, n=8, tau=0.2, se=0.1):
    """(d2, se, effect) of n subsets: a level of its own each, the curve with spread tau at each T, and chains' errors se."""
    level = 20.0 + 3.0 * rng.normal(size=(n, 1))
    effect = np.asarray(curve) + tau * rng.normal(size=(n, len(curve))) + se * rng.normal(size=(n, len(curve)))
    return level + effect, np.full((n, len(curve)), se), effect


def outcomes(curve, trials=TRIALS, **options):
    rng = np.random.default_rng(5)
    found = [
        peak_across(T, *population(rng, curve, **options), [one()] * options.get("n", 8)).outcome for _ in range(trials)
    ]
    return {word: found.count(word) / trials for word in ("yes", "no", "inconclusive")}


def test_a_maximum_is_found_and_none_is_invented():
    assert outcomes([3.0, 4.0, 2.0, 0.5], trials=50)["yes"] > 0.95
    # The worst case of no maximum: an inner temperature equal to the higher end, far above the other
    assert outcomes([4.0, 4.0, 2.0, 0.5])["yes"] < 0.097
    monotone = outcomes([4.0, 2.5, 1.0, 0.5], trials=50)
    assert monotone["yes"] == 0
    assert monotone["no"] > 0.9


def test_a_bump_that_counts_is_not_called_none():
    """At a bump of exactly FLAT times the largest effect "no" has at most its level of 5%."""
    bump = outcomes([3.6363636, 4.0, 0.5, 0.4], se=0.02, tau=0.05)
    assert bump["no"] < 0.097
    assert outcomes([3.0, 4.0, 2.0, 0.5], n=3, tau=2.0, trials=50)["inconclusive"] > 0.8, "too little to tell"


def test_subsets_with_levels_of_their_own_are_paired():
    """The levels of the subsets spread by 3, thirty times the errors: only paired differences show the maximum."""
    rng = np.random.default_rng(2)
    d2, se, effect = population(rng, [3.0, 4.0, 2.0, 0.5], tau=0.1)
    found = peak_across(T, d2, se, effect, [one()] * 8)
    assert (found.outcome, found.T_best) == ("yes", 0.1)
    assert found.rise.mean == pytest.approx(1.0, abs=4 * found.rise.se)
    assert found.fall.mean == pytest.approx(3.5, abs=4 * found.fall.se)
    assert found.rise.se < 0.15


def test_a_run_that_did_not_converge_leaves_it_undecided():
    d2, se, effect = population(np.random.default_rng(3), [3.0, 4.0, 2.0, 0.5])
    converged = np.ones((8, 4), dtype=bool)
    converged[2, 0] = False
    found = peak_across(T, d2, se, effect, [one()] * 8, converged=converged)
    assert found.outcome == "inconclusive"
    assert "1 of 8 subsets" in found.reason


@pytest.mark.parametrize(
    ("curve", "answers", "place"),
    [
        ([3, 4, 2, 0.5], [one(T_eq4=0.12)] * 8, "agrees"),
        ([3, 4, 2, 0.5], [one(T_eq4=0.5)] * 8, "differs"),
        ([3, 4, 2, 0.5], [one(T_peak=0.1 * shift, T_eq4=0.2, width=2.0) for shift in SHIFTS], "inconclusive"),
        ([3, 4, 2, 0.5], [one(T_eq4=math.nan)] * 8, "differs"),
        ([3, 4, 2, 0.5], [one()] * 5 + [one(T_eq4=math.nan)] * 3, "inconclusive"),
        ([4, 2.5, 1, 0.5], [one("no", T_eq4=math.nan)] * 8, "agrees"),
        ([4, 2.5, 1, 0.5], [one("no")] * 8, "differs"),
    ],
)
def test_the_place_against_eq4(curve, answers, place):
    d2, se, effect = population(np.random.default_rng(4), curve, tau=0.05, se=0.02)
    found = peak_across(T, d2, se, effect, answers)
    assert found.place == place
    assert "maximum" in found.sentence


def test_the_place_is_averaged_over_subsets_in_log_T():
    where = [0.08, 0.1, 0.125, 0.1, 0.09, 0.11, 0.1, 0.1]
    d2, se, effect = population(np.random.default_rng(4), [3, 4, 2, 0.5], tau=0.05, se=0.02)
    found = peak_across(T, d2, se, effect, [one(T_peak=at, width=1.02) for at in where])
    assert found.T_peak == pytest.approx(np.exp(np.log(where).mean()), rel=0.01)
    assert found.T_low < found.T_peak < found.T_high
    assert 1.05 < found.factor < 1.25


@pytest.mark.parametrize(("share", "told"), [(0.9, "yes"), (0.2, "no"), (0.5, "inconclusive")])
def test_the_origin_over_subsets(share, told):
    d2, se, effect = population(np.random.default_rng(4), [3, 4, 2, 0.5], tau=0.05, se=0.02)
    shares = share + 0.03 * np.log(SHIFTS) / 0.35
    assert peak_across(T, d2, se, effect, [one(share=each) for each in shares]).delta2 == told


def test_what_is_refused():
    d2, se, effect = population(np.random.default_rng(4), [3, 4, 2, 0.5], n=2)
    with pytest.raises(InputError, match="three"):
        peak_across(T, d2, se, effect, [one()] * 2)
    with pytest.raises(InputError, match="same subsets"):
        peak_across(T[:3], *population(np.random.default_rng(4), [3, 4, 2, 0.5]), [one()] * 8)
