"""saddlecheck regress: planted faults are named, nothing else is; false alarms are as rare as stated; the baseline holds by itself."""

import copy
import importlib
import json
import math
import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from scipy.stats import binom, norm, t

from compare.regress import baseline as files
from compare.regress import judge, run
from compare.regress.baseline import Measured
from compare.regress.cells import CELLS
from data.errors import InputError
from data.problem import Problem

ROOT = Path(__file__).parents[2]
CELL = "eight patterns"  # the quickest one, erf, with an exact answer


@pytest.fixture(scope="module")
def stored():
    return files.read(files.DEFAULT)


def changed(outcome):
    """{(kind, name)} of what failed."""
    return {(row.kind, row.name) for row in outcome.changed}


# ---- theory ----


def test_nothing_changed_in_the_theory(stored):
    outcome = run.regress(stored, sampling=False)
    assert changed(outcome) == set()
    assert outcome.passed
    kinds = {row.kind for row in outcome.rows}
    assert kinds == {"data", "theory", "level 4"}
    assert len(outcome.rows) > 400


def test_the_sign_of_delta1_is_found(stored, monkeypatch):
    from theory.distance import Terms

    monkeypatch.setattr(Terms, "eq3", property(lambda self: self.prior + self.delta1 + self.delta2))
    outcome = run.regress(stored, sampling=False, cells=[CELL, "clusters tanh"])
    assert changed(outcome) == {("theory", "level eq3"), ("theory", "held out eq3")}


def test_lambdas_for_one_another_in_the_theory_are_found_in_every_cell(stored, monkeypatch):
    module = importlib.import_module("theory.predict")
    genuine = module.predict_grid

    def swapped(dataset, *, lambda0, lambda1, **more):
        return genuine(dataset, lambda0=lambda1[0], lambda1=[lambda0], **more)

    monkeypatch.setattr(module, "predict_grid", swapped)
    monkeypatch.setattr("compare.regress.numbers.LEVEL4_DRAWS", 1)
    outcome = run.regress(stored, sampling=False)
    assert {row.cell for row in outcome.changed} == {one.name for one in CELLS}


@pytest.mark.parametrize("name", ["k", "kdot", "h"])
def test_a_factor_of_a_kernel_is_found(name, stored, monkeypatch):
    """A factor of 1 + 1e-7: two orders above the tolerance, far below what any picture would show."""
    from theory.activations import Erf

    genuine = getattr(Erf, name)
    monkeypatch.setattr(Erf, name, lambda *at: (1.0 + 1e-7) * genuine(*at))
    outcome = run.regress(stored, sampling=False, cells=[CELL])
    found = {row.name for row in outcome.changed}
    assert "weights lambda1_trace" in found
    assert ("level eq4" in found) == (name == "k")


def test_rounding_of_another_machine_is_no_change(stored, monkeypatch):
    """Another LAPACK: eigenvectors of other signs, matrices rounded otherwise."""
    from theory import kernels

    genuine, eigh = kernels.symmetric, np.linalg.eigh
    rng = np.random.default_rng(0)

    def shaken(*arguments):
        K = genuine(*arguments)
        noise = 4e-16 * rng.normal(size=K.shape)
        return K * (1.0 + noise + noise.T)

    def flipped(*arguments, **more):
        values, vectors = eigh(*arguments, **more)
        return values, vectors * rng.choice([-1.0, 1.0], size=vectors.shape[-1])

    monkeypatch.setattr(kernels, "symmetric", shaken)
    monkeypatch.setattr(np.linalg, "eigh", flipped)
    outcome = run.regress(stored, sampling=False, cells=["digits, N1 < P", "gaussian linear, N1 > P", "teacher"])
    assert changed(outcome) == set()
    other = [row for row in outcome.rows if row.kind == "level 4" and row.tested]
    assert other, "cells with more inputs than patterns take other draws of level 4: they are tested, not compared"


def test_another_generator_is_a_test_of_level_4_and_no_change_of_data(stored, monkeypatch):
    from compare.regress import numbers

    monkeypatch.setattr(numbers, "LEVEL4_SEED", 1)
    monkeypatch.setattr(run, "_generator", lambda: [0.5])
    monkeypatch.setattr(run, "load", lambda key: stored.data[key].replace(X=stored.data[key].X + 1.0))
    outcome = run.regress(stored, sampling=False, cells=[CELL, "clusters sin"])
    assert changed(outcome) == set()
    assert sum(row.tested for row in outcome.rows) == 6
    # and with numpy's generator the same, other data are a change, in that row alone
    monkeypatch.setattr(run, "_generator", lambda: stored.made["generator"])
    outcome = run.regress(stored, sampling=False, cells=[CELL])
    assert changed(outcome) == {("data", "X")}


def test_level_4_that_is_off_is_found_by_other_draws_too(stored, monkeypatch):
    from compare.regress import numbers
    from theory.first_order import _Task

    genuine = _Task.result

    def shifted(self, batches, *rest):
        return genuine(self, 1.5 * batches, *rest)

    monkeypatch.setattr(_Task, "result", shifted)
    monkeypatch.setattr(numbers, "LEVEL4_SEED", 1)
    outcome = run.regress(stored, sampling=False, cells=["teacher", "digits, N1 < P"])
    assert {row.kind for row in outcome.changed} == {"level 4"}
    assert {row.cell for row in outcome.changed} == {"teacher", "digits, N1 < P"}


# ---- chains ----


def spoil(monkeypatch, change):
    """Every sampler samples `change(problem)` while it says that it samples the problem."""
    from sampling.model import Model

    class Spoiled:
        @staticmethod
        def of(problem, *place):
            return Model.of(change(problem), *place)

    monkeypatch.setattr("sampling.settings.Model", Spoiled)


def test_fresh_chains_of_an_unspoiled_sampler_pass(stored):
    outcome = run.regress(stored, cells=[CELL])
    assert changed(outcome) == set()
    assert {row.kind for row in outcome.rows} == {
        "data",
        "theory",
        "level 4",
        "measured",
        "exact",
        "efficiency",
        "sampler",
    }
    assert 0 < outcome.power()["d2"]["worst"] < 0.05


@pytest.mark.parametrize("fault", ["T halved", "lambdas swapped", "1/sqrt(N0) missing"])
def test_faults_of_a_sampler_are_found_and_named(fault, stored, monkeypatch):
    mutations = importlib.import_module("sampling.battery.mutations")
    maps = {
        "T halved": "half_temperature",
        "lambdas swapped": "swapped_precisions",
        "1/sqrt(N0) missing": "without_root_N0",
    }
    spoil(monkeypatch, getattr(mutations, maps[fault]))
    outcome = run.regress(stored, cells=[CELL])
    assert not outcome.passed
    assert {kind for kind, _ in changed(outcome)} <= {"measured", "exact", "efficiency"}
    found = [kind for kind, _ in changed(outcome)]
    assert found.count("measured") >= 2
    assert found.count("exact") >= 2


def test_a_sampler_whose_draws_are_worth_less_is_found():
    rng = np.random.default_rng(0)
    old = Measured.of(1.0 + rng.normal(size=64) / math.sqrt(3000), 3000)
    for factor, found in ((1.0, False), (2.0, False), (12.0, True)):
        new = Measured.of(1.0 + math.sqrt(factor) * rng.normal(size=32) / math.sqrt(400), 400)
        rows = judge.judge(judge.efficiency_rows("cell", {"d2": old}, {"d2": new}), judge.FALSE_ALARM / 200)
        assert rows[0].changed == found


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


# ---- the baseline ----


def test_the_baseline_says_where_it_comes_from_and_covers_what_it_must(stored):
    assert {"date", "seed", "sampler", "lengths", "checked", "software", "generator"} <= stored.made.keys()
    assert stored.made["checked"]["exact answers"] >= 28
    assert {one.name for one in stored.cells} == {one.name for one in CELLS}
    assert {one.problem.activation for one in stored.cells} == {"erf", "linear", "tanh", "sin"}
    assert {np.sign(one.problem.N1 - one.problem.P) for one in stored.cells} == {-1, 0, 1}
    assert all(one.problem.lambda0 != one.problem.lambda1 for one in stored.cells)
    assert files.DEFAULT.stat().st_size < 300_000


def test_the_baseline_agrees_with_exact_answers(stored):
    """Measured by long chains, theory by its own quadrature: against sampling.oracle, which shares no code with either."""
    from compare.regress.numbers import exact_numbers

    rows = []
    for cell in stored.cells:
        if cell.problem.activation == "linear":
            exact = exact_numbers(cell.problem)
            rows += judge.exact_rows(cell.name, exact, cell.measured) + run.linear_rows(cell.name, cell.theory, exact)
    assert sum(row.tested for row in rows) == 21
    judged = judge.judge(rows)
    assert not [row for row in judged if row.changed]
    # as a control, the same with measurements shifted by what the test says it finds
    off = [row.found for row in judged if row.name == "d2" and row.tested]
    assert max(off) < 0.05


def test_reading_back_gives_the_same_baseline(stored, tmp_path):
    again = files.read(stored.write(tmp_path / "b.json"))
    assert json.dumps(again.to_dict(), default=np.ndarray.tolist) == json.dumps(
        stored.to_dict(), default=np.ndarray.tolist
    )
    assert [one.problem.fingerprint for one in again.cells] == [one.problem.fingerprint for one in stored.cells]


def broken(change):
    def edit(told):
        change(told)
        return told

    return edit


FORGED = {
    "another format": lambda d: d.update(format=0),
    "no cells": lambda d: d.update(cells=[]),
    "cells that are no list": lambda d: d.update(cells={}),
    "unknown data": lambda d: d["cells"][0].update(data="../../etc/passwd"),
    "text for a number": lambda d: d["cells"][0].update(T="1; rm"),
    "a truth value for a width": lambda d: d["cells"][0].update(N1=True),
    "a null in the theory": lambda d: d["cells"][0]["theory"].update(Qbar=None),
    "a negative error": lambda d: d["cells"][0]["measured"]["d2"].update(se=-1.0),
    "one chain": lambda d: d["cells"][0]["measured"]["d2"].update(chains=1),
    "ragged data": lambda d: d["data"]["gaussian"].update(X=[[1.0], [1.0, 2.0]]),
    "no labels": lambda d: d["data"]["gaussian"].pop("y"),
    "two cells of one name": lambda d: d["cells"].append(d["cells"][0]),
    "a name that is markup": lambda d: d["cells"][0].update(name="[link=x]\x1b[2J"),
    "an unknown activation": lambda d: d["cells"][0].update(activation=["erf"]),
}


@pytest.mark.parametrize("forgery", FORGED)
def test_a_file_that_is_no_baseline_is_refused_in_one_line(forgery, tmp_path):
    told = json.loads(files.DEFAULT.read_text(encoding="utf-8"))
    FORGED[forgery](told)
    path = tmp_path / "b.json"
    path.write_text(json.dumps(told))
    with pytest.raises(InputError) as refused:
        files.read(path)
    assert "\n" not in str(refused.value)


def test_files_that_are_no_json_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "b.json"
    for text in ("", "{", "[]", "[" * 100_000, "1" * 5000):
        path.write_text(text)
        with pytest.raises(InputError):
            files.read(path)
    monkeypatch.setattr(files, "LARGEST", 10)
    path.write_text(" " * 11)
    with pytest.raises(InputError, match="bytes"):
        files.read(path)


# ---- making one ----


@pytest.fixture
def quick(monkeypatch):
    """Baselines of one linear cell by short runs."""
    cell = next(one for one in CELLS if one.name == "gaussian linear, N1 < P")
    monkeypatch.setattr(run, "CELLS", (cell,))
    monkeypatch.setattr(run, "LONG", {"chains": 16, "warmup": 100, "draws": 150})
    monkeypatch.setattr(run, "CHECK", {"sampler": "gibbs", "chains": 8, "warmup": 30, "draws": 60})
    return cell


def test_a_baseline_is_never_replaced_silently_and_keeps_the_reason(quick, tmp_path, invoke):
    path = tmp_path / "b.json"
    assert invoke("regress", "--baseline", path, "--update", "why", "--quiet").exit_code == 2
    assert invoke("regress", "--baseline", path, "--make-baseline", "--quiet").exit_code == 0
    first = path.read_bytes()
    refused = invoke("regress", "--baseline", path, "--make-baseline", "--quiet")
    assert (refused.exit_code, path.read_bytes()) == (2, first)
    assert "--update REASON" in refused.stderr
    assert invoke("regress", "--baseline", path, "--update", " ", "--quiet").exit_code == 2
    done = invoke("regress", "--baseline", path, "--update", "other chains", "--seed", 1, "--quiet", "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["changed"] == []
    again = files.read(path)
    assert again.history[0]["reason"] == "other chains"
    assert again.history[0]["replaced"]["seed"] == 0
    assert again.made["seed"] == 1


def test_numbers_that_fail_their_checks_make_no_baseline(quick, monkeypatch):
    from sampling.battery.mutations import half_temperature

    spoil(monkeypatch, half_temperature)
    with pytest.raises(InputError, match="do not pass their own checks"):
        run.make_baseline()


# ---- the command ----


def test_the_command_fails_names_and_shows_what_changed(stored, tmp_path, invoke):
    told = copy.deepcopy(json.loads(files.DEFAULT.read_text(encoding="utf-8")))
    cell = next(one for one in told["cells"] if one["name"] == CELL)
    cell["theory"]["level eq3"] *= 1.0 + 1e-6
    cell["measured"]["d2"]["mean"] *= 1.1
    path = tmp_path / "b.json"
    path.write_text(json.dumps(told))
    result = invoke("regress", "--baseline", path, "--cells", CELL)
    assert result.exit_code == 1
    assert re.search(r"level eq3 .*theory", result.stdout)
    assert re.search(r"d2 .*measured.*standard errors", result.stdout)
    assert "2 of" in result.stdout
    assert "Found with probability 0.9" in result.stdout
    assert CELL in result.stderr  # progress
    result = invoke("regress", "--baseline", path, "--cells", CELL, "--json", "--quiet")
    printed = json.loads(result.stdout)
    assert (result.exit_code, result.stderr, printed["passed"]) == (1, "", False)
    assert {row["name"] for row in printed["changed"]} == {"level eq3", "d2"}


@pytest.mark.parametrize(
    "arguments",
    [["--cells", "no such"], ["--cells", ";"], ["--baseline", "nowhere.json"], ["--seed", "-1"], ["--make-baseline", "--cells", CELL],
     ["--make-baseline", "--update", "why"], ["--sampler", "none", "--cells", CELL], ["--make-baseline"]],
)  # fmt: skip
def test_bad_input_of_the_command(arguments, invoke):
    result = invoke("regress", "--quiet", *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1


def test_the_lines_for_ci_services_are_what_the_command_takes(invoke):
    text = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", text, flags=re.DOTALL)]
    github, gitlab = blocks
    steps = [step["run"] for step in github["jobs"]["regress"]["steps"] if "run" in step]
    assert steps == gitlab["regress"]["script"]
    assert re.search(r"^torch==", (ROOT / "constraints.txt").read_text(encoding="utf-8"), flags=re.MULTILINE)
    command = steps[-1].split()
    assert command[0] == "saddlecheck"
    result = invoke(*command[1:], "--no-sampling")
    assert result.exit_code == 0
    assert result.stdout.startswith("regress: nothing changed")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_whole_command_passes(seed, stored):
    outcome = run.regress(stored, seed=seed)
    assert changed(outcome) == set()


@pytest.mark.slow
def test_p_values_of_real_chains_are_uniform(stored):
    from scipy.stats import kstest

    p = [
        row.p
        for seed in range(3, 6)
        for row in run.regress(stored, seed=seed).rows
        if row.kind == "measured" and row.tested
    ]
    assert kstest(p, "uniform").pvalue > 1e-3


def test_another_sampler_is_held_to_the_same_baseline(stored):
    assert changed(run.regress(stored, sampler="gibbs", cells=[CELL])) == set()


def test_the_arrays_of_the_baseline_are_those_of_the_problem(stored):
    one = stored.cells[0]
    assert isinstance(one.problem, Problem)
    assert one.problem.dataset is stored.data[one.data]
