"""saddlecheck regress, its statistics: false alarms as rare as stated, its stated power, what is confirmed, what never passes."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm, t

from compare.regress import judge
from compare.regress.baseline import Measured

CELL = "eight patterns"  # the quickest one, erf, with an exact answer


def changed(outcome):
    """{(kind, name)} of what failed."""
    return {(row.kind, row.name) for row in outcome.changed}


# ---- the tests' own laws ----


def test_false_alarms_are_rarer_than_1_in_1000_runs():
    """60,000 simulated runs of 200 tests against a baseline of 64 long chains: the rate is below 1e-3, with confidence 0.999.

    Chain means are normal, so mean and error have their exact laws.
    """
    rng = np.random.default_rng(1)
    tests, repeats, alarms = 200, 60_000, 0
    limit = t.isf(judge.FALSE_ALARM / tests / 2, 31)
    for _ in range(repeats // 1000):
        size = (1000, tests)
        fresh, base = 1 / math.sqrt(32), 1 / math.sqrt(64 * 7.5)
        gap = math.hypot(fresh, base) * rng.normal(size=size)
        se = np.hypot(
            fresh * np.sqrt(rng.chisquare(31, size=size) / 31), base * np.sqrt(rng.chisquare(63, size=size) / 63)
        )
        alarms += int((np.abs(gap) > limit * se).any(1).sum())
    assert binom.cdf(alarms, repeats, 1e-3) < 1e-3, alarms
    assert alarms > 0, "a test that never fires has no power either"


def test_skewed_chain_means_keep_the_level():
    """Means of some hundred draws of a scalar as skewed as D^2: single tests at 1e-3, two-sided, fire no more than 1.2 times that."""
    rng = np.random.default_rng(5)
    fired, n = 0, 0
    for _ in range(20):
        means = rng.gamma(40.0, size=(20_000, 32)) - 40.0
        fired += int((np.abs(means.mean(1)) / (means.std(1, ddof=1) / math.sqrt(32)) > t.isf(5e-4, 31)).sum())
        n += len(means)
    assert fired / n < 1.2e-3 + 3 * math.sqrt(1e-3 / n)


def test_the_simulated_decision_is_that_of_the_judge():
    rng = np.random.default_rng(2)
    for shift in (0.0, 0.8, 1.0, 1.2):
        old = {str(i): Measured.of(rng.normal(size=64) / math.sqrt(7.5), 3000) for i in range(200)}
        new = {str(i): Measured.of(rng.normal(size=32) + shift, 400) for i in range(200)}
        rows = judge.judge(judge.measured_rows("cell", old, new))
        limit = t.isf(judge.FALSE_ALARM / 200 / 2, 31)
        assert [row.changed for row in rows] == [abs(row.z) > limit for row in rows]


def test_the_stated_power_is_the_power():
    rng = np.random.default_rng(3)
    level, n = judge.FALSE_ALARM / 200, 4000
    for dof in (31.0, math.inf):
        reach = judge.detectable(level, dof)
        noise = rng.normal(size=n) + reach
        spread = np.sqrt(rng.chisquare(dof, size=n) / dof) if math.isfinite(dof) else 1.0
        limit = t.isf(level / 2, dof) if math.isfinite(dof) else norm.isf(level / 2)
        found = int((noise / spread > limit).sum())
        assert 1e-4 < binom.cdf(found, n, judge.POWER) < 1 - 1e-4


def test_what_other_chains_do_not_confirm_is_no_change_and_says_so():
    old, far = {"d2": Measured(1.0, 0.01, 64, 3000), "Q": Measured(1.0, 0.01, 64, 3000)}, Measured(2.0, 0.01, 32, 400)
    near = Measured(1.0, 0.01, 32, 400)
    first = judge.judge(judge.measured_rows("cell", old, {"d2": far, "Q": far}))
    again = judge.judge(judge.measured_rows("cell", old, {"d2": far, "Q": near}))
    assert [row.changed for row in first] == [True, True]
    rows = judge.confirmed(first, again)
    assert [row.changed for row in rows] == [True, False]
    assert "not confirmed" in rows[1].note
    # other cells, and kinds that chains do not make, are left as they are
    theory = judge.theory_rows("cell", {"d2": 1.0}, {"d2": 2.0})
    assert judge.confirmed(theory, again)[0].changed
    assert judge.confirmed(judge.judge(judge.measured_rows("other", old, {"Q": far, "d2": far})), again)[1].changed


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_not_finite_is_a_change(value):
    old = Measured(1.0, 0.1, 64, 3000)
    for new in (Measured(value, 0.1, 32, 400), Measured(1.0, value, 32, 400)):
        (row,) = judge.judge(judge.measured_rows("cell", {"d2": old}, {"d2": new}))
        assert row.changed
    (row,) = judge.theory_rows("cell", {"Qbar": 1.0}, {"Qbar": value})
    assert row.changed


def test_constants_are_compared_by_arithmetic():
    for old, new, expected in (
        (0.0, 0.0, False),
        (0.0, 1e-30, True),
        (2.0, 2.0 * (1 + 1e-12), False),
        (2.0, 2.001, True),
    ):
        (row,) = judge.measured_rows(
            "cell", {"fbar_a": Measured(old, 0.0, 64, 9)}, {"fbar_a": Measured(new, 0.0, 32, 9)}
        )
        assert row.changed == expected
        assert not row.tested


def test_numbers_of_one_side_only_are_changes():
    rows = judge.theory_rows("cell", {"gone": 1.0, "both": 1.0}, {"both": 1.0, "come": 2.0})
    assert {(row.name, row.changed) for row in rows} == {("gone", True), ("both", False), ("come", True)}
