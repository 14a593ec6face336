"""Chains made to fool the verdict: stuck, split, copied, drifting, with holes. The level judged is their own mean: none may agree."""

import numpy as np
import pytest
from tests_support.synthetic import run

from compare.families import discoveries, p_values
from compare.measure import Measurement
from compare.verdict import equivalence

rng = np.random.default_rng(11)


def every(change):
    def spoil(r):
        for name in r.series:
            r.series[name] = change(r.series[name])

    return spoil


def only(name, change):
    def spoil(r):
        r.series[name] = change(r.series[name].copy())
        if name == "d2":
            r.series["d2_stein"] = 0 * r.series["d2_stein"]

    return spoil


def put(value, *at):
    def change(x):
        x[at] = value
        return x

    return change


def add(amount, at):
    def change(x):
        x[at] += amount
        return x

    return change


HALF, EARLY = np.s_[:8], np.s_[:, :200]
CASES = {
    "nothing ever moves": (every(lambda x: np.full_like(x, x.mean())), {}),
    "the distance never moves": (only("d2", lambda x: np.full_like(x, 10.0)), {}),
    "every chain stuck at its own": (every(lambda x: np.repeat(x[:, :1], x.shape[1], axis=1)), {}),
    "half of the chains in another phase": (only("d2", add(3.0, HALF)), {}),
    "every second chain, by its start": (only("d2", add(3.0, np.s_[::2])), {}),
    "one chain of sixteen in another phase": (only("d2", add(3.0, np.s_[:1])), {}),
    "all chains jump together": (only("d2", add(1.0, EARLY)), {}),
    "all chains drift together": (only("d2", lambda x: x + np.linspace(0.0, 1.0, x.shape[1])), {}),
    "copies of one chain": (every(lambda x: np.repeat(x[:1], len(x), axis=0)), {}),
    "a hundred rejections at a time": (every(lambda x: np.repeat(x[:, ::100], 100, axis=1)), {"draws": 2000}),
    "one chain": (every(lambda x: x), {"chains": 1}),
    "four draws": (every(lambda x: x), {"draws": 4}),
    "a day's autocorrelation": (every(lambda x: x), {"rho": 0.999, "draws": 2000}),
    "NaN in one chain": (only("d2", put(np.nan, 3, 17)), {}),
    "infinite log-likelihood": (only("loglik", put(-np.inf, 3, 17)), {}),
    "NaN beside what is judged": (only("fbar_a", put(np.nan, 3, 17)), {}),
}


def judged(r):
    m = Measurement.of(r)
    level = float(np.nanmean(r.series["d2"]))
    return equivalence(m.d2.mean, m.d2.se, level, prior=8.0, dof=m.d2.dof, converged=m.converged).outcome


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_no_verdict_comes_from_chains_like_these(case):
    spoil, shape = CASES[case]
    r = run(rng, **shape)
    spoil(r)
    assert judged(r) == "inconclusive"


def test_the_same_chains_unspoiled_agree():
    assert judged(run(rng)) == "agrees"


def test_rounded_values_with_many_ties_still_carry_a_verdict():
    r = run(rng)
    every(lambda x: np.round(x, 1))(r)
    assert judged(r) == "agrees"


def test_a_hole_in_a_component_is_no_agreement():
    chains = rng.normal(size=(8, 3))
    chains[0, 0] = np.nan
    p = p_values(chains, np.zeros(3))
    assert np.isnan(p[0])
    assert np.isfinite(p[1:]).all()
    assert list(p_values(np.ones((4, 2)), np.array([1.0, 2.0]))) == [1.0, 0.0]
    assert not discoveries(p)[0]
