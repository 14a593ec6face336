"""The battery: its statistics have the laws they claim, correct samplers pass, and every mistake is caught by it."""

import dataclasses
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import norm

from data.errors import InputError
from sampling import battery, oracle
from sampling.battery import CHECKS, Setting, Subject, identities, mutate, mutations, pairwise, worlds
from sampling.battery.calibration import rank_scores
from sampling.battery.mutations import MUTATIONS
from sampling.battery.result import CAP, autocorrelation_time, difference_z, exactly, judge, mean_z

ROOT = Path(__file__).resolve().parents[2]
QUICK = Setting(seed=0, effort=0.25, false_alarm=1e-4)
HMC = {"warmup": 100}  # enough for the pooled adaptation of 64 chains on these problems
CHANCE = [name for name in CHECKS if name != "density"]


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def examine(check, subject, setting=QUICK):
    """One check; pairwise against one partner, so that it is quick."""
    if check == "pairwise" and setting is QUICK:
        return pairwise.check(subject, setting, partners=("gibbs",))
    return CHECKS[check].check(subject, setting)


# --- the statistics --------------------------------------------------------------------------------------------------


def test_z_scores_are_standard_normal_under_the_null():
    """8000 scores each: the share beyond 3 is 0.0027 +- 0.0006, so 0.0052 is 4.3 standard errors up; heavy shifts are seen."""
    rng = np.random.default_rng(0)
    for draw in (
        lambda: mean_z(rng.normal(2, 3, 12), 2.0),
        lambda: difference_z(rng.normal(0, 1, 9), rng.normal(0, 5, 30)),
    ):
        scores = np.array([draw() for _ in range(8000)])
        assert (np.abs(scores) > 3).mean() < 0.0052
        assert abs(scores.std() - 1) < 0.04
    reference = np.array([mean_z(rng.normal(1, 1, 20), 1 + rng.normal(0, 0.5), se=0.5) for _ in range(8000)])
    assert (np.abs(reference) > 3).mean() < 0.0052
    assert mean_z(rng.normal(1, 1, 400), 0.0) > 10


def test_z_scores_know_rounding_from_a_difference():
    exact = np.full(10, 3.0) + 1e-15 * np.arange(10)
    assert abs(mean_z(exact, 3.0)) < 1e-3
    assert abs(mean_z(exact, 3.001)) > 6
    assert math.isnan(mean_z(np.array([1.0, math.nan]), 1.0))
    assert math.isnan(difference_z(np.array([1.0, math.inf]), np.array([1.0, 2.0])))


def test_a_verdict_shares_its_false_alarm_rate_and_never_passes_nan():
    result = judge("one", {f"s{k}": 0.0 for k in range(9)} | {"big": -3.9}, 1e-3, "about", 0.0)
    assert result.threshold == pytest.approx(norm.isf(0.5e-4))
    assert not result.passed
    assert result.statistic == 3.9
    assert "big -3.9" in result.detail
    assert judge("one", {"big": -3.8}, 1e-3, "", 0.0).threshold == pytest.approx(norm.isf(0.5e-3))
    assert not judge("one", {"a": 0.1, "b": math.nan}, 1e-3, "", 0.0).passed
    assert math.isnan(judge("one", {"a": 0.1, "b": math.nan}, 1e-3, "", 0.0).statistic)
    assert not exactly("one", {"a": 1e-12, "b": math.nan}, 1e-8, "", 0.0).passed
    assert exactly("one", {"a": 1e-12}, 1e-8, "", 0.0).passed
    assert mean_z(np.arange(100.0), 1e6) == -CAP


def test_ranks_of_the_truth():
    """Uniform where truth and draws share a law; a shift shows in location, overconfidence in spread; ties are broken fairly."""
    rng = np.random.default_rng(1)
    n, draws = 2000, 15
    scores = [rank_scores(rng.normal(size=n), rng.normal(size=(n, draws)), rng) for _ in range(20)]
    flat = np.array([list(one.values()) for one in scores])
    assert np.abs(flat).max() < 4.2  # 60 scores: 1.6e-3
    assert abs(rank_scores(rng.normal(size=n) + 0.2, rng.normal(size=(n, draws)), rng)["location"]) > 5
    assert abs(rank_scores(rng.normal(size=n), 0.8 * rng.normal(size=(n, draws)), rng)["spread"]) > 5
    coins = rank_scores(rng.integers(0, 2, n).astype(float), rng.integers(0, 2, (n, draws)).astype(float), rng)
    assert max(map(abs, coins.values())) < 4.2
    assert math.isnan(rank_scores(np.array([math.nan]), np.zeros((1, 3)), rng)["shape"])


@pytest.mark.parametrize("rho", [0.0, 0.6, 0.9])
def test_the_autocorrelation_time_of_a_known_series(rho):
    """AR(1): (1 + rho)/(1 - rho), with chain means far apart, which must not count. A floor of 1 holds for rho = 0."""
    rng = np.random.default_rng(2)
    x = np.empty((64, 400))
    x[:, 0] = rng.normal(size=64)
    for t in range(1, 400):
        x[:, t] = rho * x[:, t - 1] + math.sqrt(1 - rho**2) * rng.normal(size=64)
    assert autocorrelation_time(x + 10 * rng.normal(size=(64, 1))) == pytest.approx((1 + rho) / (1 - rho), rel=0.12)


@pytest.mark.parametrize("name", identities.FOLLOWED)
def test_three_nodes_follow_beta_closely_enough(name):
    """The rule's own error on the linear network of that shape, where both sides are exact: below 1e-3 of the change of <D^2>,
    and of the 0.01 that 64 chains resolve of |w|^2; one node would not do."""
    p = worlds.identities().replace(activation="linear")
    low, high = identities.BETA

    def value(beta):
        return oracle.linear(p.replace(T=1 / beta))[name]

    def rule(nodes):
        x, weight = np.polynomial.legendre.leggauss(nodes)
        betas = 0.5 * (high - low) * x + 0.5 * (high + low)
        slopes = [(value(beta + 1e-4) - value(beta - 1e-4)) / 2e-4 for beta in betas]
        return 0.5 * (high - low) * float(weight @ np.array(slopes)) - (value(high) - value(low))

    scale = abs(value(high) - value(low)) if name == "d2" else 0.1
    assert abs(rule(identities.NODES)) < 1e-3 * scale
    if name == "d2":
        assert abs(rule(1)) > 1e-2 * scale


# --- the checks ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("check", CHECKS)
def test_hmc_passes_and_the_control_fails(check):
    setting = dataclasses.replace(QUICK, shared={})
    result = examine(check, Subject("hmc", HMC), QUICK)
    assert result.passed, result
    assert result.name == check
    assert result.false_alarm == (0.0 if check == "density" else QUICK.false_alarm)
    if check == "pairwise":
        spoiled = pairwise.check(mutate(Subject("hmc", HMC), pairwise.CONTROL), QUICK, partners=("gibbs",))
    else:
        spoiled = CHECKS[check].check(mutate(Subject("hmc", HMC), CHECKS[check].CONTROL), setting)
    assert not spoiled.passed, spoiled
    if check != "density":
        assert spoiled.statistic > 1.5 * spoiled.threshold, "caught with a margin, not by luck"


# A mistake, a statistical check that catches it quickly, options that leave the mistake something to spoil, and the effort: hmc with
# half of its trajectories rejected is only a little wrong when it does not count them, which more draws show (z = 6, threshold 4.5).
CAUGHT = [
    ("T halved", "teacher", {}, 0.25),
    ("lambdas swapped", "calibration", {}, 0.25),
    ("1/sqrt(N0) missing", "geweke", {}, 0.25),
    ("first-layer prior dropped", "geweke", {}, 0.25),
    ("every proposal accepted", "geweke", {"accept": 0.5}, 0.25),
    ("rejections not counted", "linear", {"accept": 0.5}, 0.6),
]


@pytest.mark.parametrize(("mistake", "check", "options", "effort"), CAUGHT)
def test_each_mistake_is_caught(mistake, check, options, effort):
    subject = Subject("hmc", HMC | options)
    setting = dataclasses.replace(QUICK, effort=effort, shared={})
    assert examine(check, subject, setting).passed
    spoiled = examine(check, mutate(subject, mistake), setting)
    assert not spoiled.passed, spoiled


def test_every_mistake_is_in_the_table_above():
    assert {mistake for mistake, *_ in CAUGHT} == set(MUTATIONS)


def test_unadjusted_langevin_fails():
    result = examine("linear", Subject("langevin", {"warmup": 500}))
    assert not result.passed, result


def test_run_reports_each_item_and_its_control():
    events = []
    results = battery.run("gibbs", checks=["density", "linear"], effort=0.1, controls=True, progress=events.append)
    assert [one.name for one in results] == ["density", "density control", "linear", "linear control"]
    assert all(one.passed for one in results), results
    assert results[2].false_alarm == battery.FALSE_ALARM
    assert "must fail" in results[3].detail
    assert [(event["phase"], event["done"]) for event in events] == [("density", 0), ("linear", 1), ("", 2)]
    assert all(one.seconds >= 0 for one in results)


def test_the_false_alarm_rate_is_of_the_whole_battery():
    one = battery.run("hmc", checks=["linear", "density"], effort=0.02, warmup=10)
    two = battery.run("hmc", checks=["linear", "density", "geweke"], effort=0.02, warmup=10)
    assert one[0].false_alarm == battery.FALSE_ALARM
    assert two[0].false_alarm == two[2].false_alarm == battery.FALSE_ALARM / 2
    assert two[0].threshold > one[0].threshold


def test_what_has_no_meaning_for_a_sampler_is_said():
    assert list(battery.skipped("tempering")) == ["geweke"]
    assert battery.skipped("hmc") == {}
    assert [one.name for one in battery.run("tempering", checks=["geweke", "density"])] == ["density"]
    assert "first-layer prior dropped" not in mutations("gibbs")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: battery.run("hcm"), "sampler = 'hcm'"),
        (lambda: battery.run("hmc", checks=["gewek"]), "did you mean 'geweke'"),
        (lambda: battery.run("hmc", effort=0), "effort = 0"),
        (lambda: battery.run("hmc", false_alarm=1.0), "false_alarm = 1.0"),
        (lambda: mutate(Subject("gibbs"), "every proposal accepted"), "gibbs can have"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_the_battery_needs_no_jax_for_torch_samplers():
    code = "import sys; import sampling.battery; assert not {'jax', 'arviz', 'numpyro'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


# --- the whole of it, outside `make test` ----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hmc", "gibbs", "mala", "underdamped", "tempering", "nuts"])
def test_every_exact_sampler_passes_everything(name):
    results = battery.run(name)
    assert all(one.passed for one in results), [one for one in results if not one.passed]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hmc", "gibbs", "mala", "underdamped", "tempering"])
def test_every_mistake_in_every_sampler_is_caught(name):
    setting = Setting(seed=1, effort=1.0, false_alarm=battery.FALSE_ALARM / len(CHANCE))
    missed = []
    for mistake in mutations(name):
        spoiled = mutate(Subject(name), mistake)
        if all(CHECKS[check].check(spoiled, setting).passed for check in ("linear", "importance", "teacher")):
            missed.append(mistake)
    assert not missed


@pytest.mark.slow
@pytest.mark.parametrize("check", ["linear", "geweke", "calibration", "teacher"])
def test_scores_of_a_correct_sampler_have_the_stated_law(check, monkeypatch):
    """40 seeds: the share of |z| > 3 among all scores is 0.0027; correlated scores may triple its spread."""
    module, seen = CHECKS[check], []
    original = module.judge
    monkeypatch.setattr(
        module, "judge", lambda name, scores, *rest: seen.extend(scores.values()) or original(name, scores, *rest)
    )
    for seed in range(40):
        module.check(Subject("hmc"), Setting(seed=100 + seed, effort=0.3))
    scores = np.array(seen)
    assert (np.abs(scores) > 3).mean() < 0.0027 + 4 * 3 * math.sqrt(0.0027 / len(scores))
    assert np.abs(scores).max() < norm.isf(0.5e-3 / len(scores))
