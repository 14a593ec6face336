"""Verdicts: their false-alarm rates and power are what they say, on draws of the measurement's own error."""

import math

import numpy as np
import pytest

from compare.verdict import decide, equivalence
from data.errors import InputError

TRIALS = 40_000  # a rate of 5% has a standard error of 0.11%, one of 80% of 0.2%


def rates(difference, se, *, effect=1.0, predicted_se=0.0, margin=0.1, alpha=0.05, seed=0):
    """Share of each outcome when measured = predicted + difference + noise."""
    rng = np.random.default_rng(seed)
    prior, truth = 3.0, 3.0 + effect
    measured = truth + se * rng.normal(size=TRIALS)
    predicted = truth - difference + predicted_se * rng.normal(size=TRIALS)
    found = decide(measured, se, predicted, predicted_se, prior=prior, margin=margin, alpha=alpha)
    assert not (found.agrees & found.differs).any()
    agrees, differs = float(found.agrees.mean()), float(found.differs.mean())
    return {"agrees": agrees, "differs": differs, "inconclusive": 1.0 - agrees - differs}


def test_equivalence_says_what_the_tests_decide():
    rng = np.random.default_rng(7)
    seen = set()
    for _ in range(300):
        effect, level = rng.normal() * 0.5, rng.normal() * 0.1
        se, predicted_se, dof = (
            10 ** rng.uniform(-4, -0.5),
            10 ** rng.uniform(-5, -1),
            rng.choice([5.0, 40.0, math.inf]),
        )
        told = {"prior": 3.0, "dof": dof}
        found = decide(3.0 + effect, se, 3.0 + effect - level, predicted_se, **told)
        outcome = equivalence(3.0 + effect, se, 3.0 + effect - level, predicted_se, **told).outcome
        assert outcome == ("agrees" if found.agrees else "differs" if found.differs else "inconclusive")
        seen.add(outcome)
    assert len(seen) == 3


@pytest.mark.parametrize("se", [0.01, 0.03])
@pytest.mark.parametrize("effect", [1.0, -1.0])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_a_level_that_is_off_by_the_margin_rarely_agrees(se, effect, side):
    assert rates(side * 0.1 * abs(effect), se, effect=effect)["agrees"] <= 0.0545


@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize("predicted_se", [0.0, 0.02])
def test_the_agreement_rate_at_the_margin_is_the_stated_one(side, predicted_se):
    """Not only at most alpha: at small errors it is alpha, or the test would be throwing power away."""
    found = rates(side * 0.1, 0.01, predicted_se=predicted_se)["agrees"]
    assert 0.0455 <= found <= 0.0545


@pytest.mark.parametrize("difference", [0.0, 0.05, 0.1])
def test_a_level_inside_the_margin_rarely_differs(difference):
    assert rates(difference, 0.02)["differs"] <= 0.0282  # alpha/2 = 2.5% at the margin itself, + 4 standard errors


def test_power_is_what_is_stated():
    for se in (0.02, 0.03, 0.04, 0.05):
        stated = equivalence(4.0, se, 4.0, prior=3.0).power
        seen = rates(0.0, se)["agrees"]
        assert abs(stated - seen) < 0.01, (se, stated, seen)  # 4 standard errors of the rate


def test_a_planted_deviation_is_found_with_the_stated_power():
    se = 0.02
    planted = equivalence(4.0, se, 4.0, prior=3.0).detectable
    assert abs(rates(-planted, se)["differs"] - 0.8) < 0.01  # the harder side; 4 standard errors of the rate
    assert rates(planted, se)["differs"] > 0.8


def test_an_unresolved_effect_gives_no_agreement():
    assert rates(0.0, 0.05, effect=0.0)["agrees"] <= 0.01
    found = equivalence(3.01, 0.05, 3.0, prior=3.0)
    assert found.power == 0.0
    assert found.outcome == "inconclusive"
    assert "effect" in found.reason
    assert math.isnan(found.relative_to_effect)
    # but a level that predicts a large effect where there is none differs
    assert equivalence(3.01, 0.05, 5.0, prior=3.0).outcome == "differs"


def test_an_error_from_few_degrees_of_freedom_keeps_the_level():
    """Standard errors that are themselves estimated: with 5 degrees of freedom a normal quantile would pass twice too many."""
    rng = np.random.default_rng(2)
    dof, se = 5.0, 0.01
    own = se * np.sqrt(rng.chisquare(dof, TRIALS) / dof)
    measured = 4.0 + se * rng.normal(size=TRIALS)
    for side in (0.1, -0.1):
        kept = decide(measured, own, 4.0 - side, prior=3.0, dof=dof).agrees.mean()
        assert 0.0455 <= kept <= 0.0545
        assert decide(measured, own, 4.0 - side, prior=3.0).agrees.mean() > 0.07, "the control: the normal quantile"
    planted = equivalence(4.0, 0.02, 4.0, prior=3.0, dof=dof).detectable
    own, measured = 2.0 * own, 4.0 + 2.0 * (measured - 4.0)
    seen = decide(measured, own, 4.0 + planted, prior=3.0, dof=dof).differs.mean()
    assert abs(seen - 0.8) < 0.02  # the noncentral t is approximated


def test_chains_that_did_not_converge_carry_no_verdict():
    assert equivalence(4.0, 1e-6, 4.0, prior=3.0).outcome == "agrees"
    found = equivalence(4.0, 1e-6, 4.0, prior=3.0, converged=False)
    assert (found.outcome, found.reason) == ("inconclusive", "the chains did not converge")
    for broken in ((math.nan, 0.1, 4.0), (4.0, math.nan, 4.0), (4.0, math.inf, 4.0), (4.0, 0.1, math.nan)):
        found = equivalence(*broken, prior=3.0)
        assert found.outcome == "inconclusive"
        assert "finite" in found.reason


def test_relative_difference_and_its_error():
    """relative = (M - L)/(M - prior): against the spread over simulated measurements."""
    rng = np.random.default_rng(1)
    M, L = 4.0 + 0.02 * rng.normal(size=20_000), 3.7 + 0.01 * rng.normal(size=20_000)
    spread = ((M - L) / (M - 3.0)).std()
    found = equivalence(4.0, 0.02, 3.7, 0.01, prior=3.0)
    assert found.relative_to_effect == pytest.approx(0.3)
    assert found.relative_se == pytest.approx(spread, rel=0.03)
    assert found.z == pytest.approx(0.3 / math.hypot(0.02, 0.01))


def test_bad_input():
    for changes, message in (({"margin": 1.5}, "margin"), ({"alpha": 0.6}, "alpha"), ({"dof": 0.0}, "dof")):
        with pytest.raises(InputError, match=message):
            equivalence(1.0, 0.1, 1.0, prior=0.0, **changes)
    with pytest.raises(InputError, match="standard errors"):
        equivalence(1.0, -0.1, 1.0, prior=0.0)
