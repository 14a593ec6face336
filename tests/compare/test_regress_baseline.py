"""saddlecheck regress, its file and its command: the baseline holds by itself, forgeries are refused, one is never replaced silently."""

import copy
import json
import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from tests_support.regress import spoil

from compare.regress import baseline as files
from compare.regress import judge, run
from compare.regress.cells import CELLS
from data.errors import InputError
from data.problem import Problem

ROOT = Path(__file__).parents[2]
CELL = "eight patterns"  # the quickest one, erf, with an exact answer


def changed(outcome):
    """{(kind, name)} of what failed."""
    return {(row.kind, row.name) for row in outcome.changed}


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
