"""The job over data subsets and controls: files, numbers against the subsets' own reports, resumption, recomputation, bad input."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest

import compare
from compare import store
from compare.store import STUDY
from compare.subsets import across, random_effects
from compare.verify_subsets import UNFINISHED, plan
from data.errors import InputError
from data.problem import Problem
from data.subsets import subsets
from sampling import Interrupted, run
from theory import predict

T = (0.3, 1.0, 3.0)
SMALL = {"chains": 8, "draws": 200, "first_order": False, "seed": 5}


def problems(count=3, temperatures=T, P=12):
    datasets, how = subsets("digits", count, P=P)
    return [[Problem(one, 6, t) for t in temperatures] for one in datasets], how


def chains(problem, seed, template, draws):
    """A stored run of independent draws about the theory's Eq. (3), 10% short of its effect; a.f between the labels is 1.5 sqrt(Q)."""
    rng = np.random.default_rng(seed)
    level = predict(problem)
    P, N1, shape = problem.P, problem.N1, (8, draws)
    effect = 0.9 * (level.levels["eq3"].value - level.prior)
    Q = 1.1 + 0.05 * rng.normal(size=shape)
    between = 1.2 + 0.02 * rng.normal(size=shape)
    series = {
        "d2": level.prior + effect + 0.1 * rng.normal(size=shape),
        "Q": Q,
        "fbar_a": level.fbar_a + 0.02 * rng.normal(size=shape),
        "residual": P - between * P / 2 + problem.T * N1 * (1 - Q),
        "loglik": rng.normal(size=shape),
    }
    if (problem.dataset.y != problem.dataset.classes).any():
        series["d2_labels"] = 3.0 + 0.1 * rng.normal(size=shape)
    manifest = {**template.manifest, "problem": problem.describe(), "draws": draws, "seed": seed}
    return dataclasses.replace(template, series=series, sums={}, manifest=manifest)


@pytest.fixture(scope="module", autouse=True)
def quick():
    """Runs with known truth in place of chains, which are tested elsewhere; and no figures in the reports of the subsets."""
    template = run(problems()[0][0][0], chains=8, draws=8, warmup=8, seed=1)

    def sample(listed, *, seed, out=None, stage=None, draws=None, **rest):
        found = [chains(p, seed + i, template, draws) for i, p in enumerate(listed)]
        store.save_dataset(listed[0].dataset, out)
        for i, (problem, one) in enumerate(zip(listed, found, strict=True)):
            stage(f"N1 = {problem.N1}, T = {problem.T:g}", i + 1, len(listed))
            one.save(store.run_path(out, problem))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("compare.report.figures.figures", lambda report: [])
        patch.setitem(compare.verify_subsets.__globals__, "sample", sample)
        yield


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """(folder, study, names of the stages): three subsets, with the control on random labels."""
    folder = tmp_path_factory.mktemp("study") / "out"
    listed, how = problems()
    seen = []

    def stage(name, at, of):
        seen.append((name, at, of))
        return lambda event: None

    study = compare.verify_subsets(listed, controls=["random-labels"], out=folder, how=how, stage=stage, **SMALL)
    return folder, study, seen


def test_each_subset_has_a_report_of_its_own_and_the_summary_stands_at_the_top(job):
    folder, study, seen = job
    for place in ("subset-1", "subset-3", "random-labels/subset-2"):
        assert {"report.html", "report.json", "runs", "data.npz", "tables"} <= {
            p.name for p in (folder / place).iterdir()
        }
        assert len(list((folder / place / "runs").glob("*.nc"))) == 3
    assert {"report.html", "report.json", "tables", "figures", STUDY} <= {p.name for p in folder.iterdir()}
    assert not (folder / UNFINISHED).exists()
    assert [one.name for one in study.series] == ["data", "random-labels", "random-labels-between"]
    page = (folder / "report.html").read_text()
    assert 'href="subset-1/report.html"' in page
    assert "no pattern stands in two subsets" in page
    assert "The answer per data set" in page
    sampled = [(at, of) for name, at, of in seen if "N1 =" in name]
    assert sampled == [(k, 18) for k in range(1, 19)]


def test_the_numbers_are_random_effects_of_the_subsets_own_reports(job):
    folder, study, _ = job
    own = [json.loads((folder / f"subset-{k}" / "report.json").read_text())["cells"] for k in (1, 2, 3)]
    for i, t in enumerate(T):
        cells = [one[i] for one in own]
        assert all(cell["T"] == t for cell in cells)
        m, s = np.array([[cell["measured"]["d2"]["mean"], cell["measured"]["d2"]["mcse"]] for cell in cells]).T
        predicted = np.array([cell["levels"]["eq4"] for cell in cells])
        prior = np.array([cell["prior"] for cell in cells])
        row = study.levels.query(f"series == 'data' and level == 'eq4' and T == {t}").iloc[0]
        expected = across(m, s, predicted, prior=prior)
        assert row["difference"] == pytest.approx(expected.difference.mean)
        assert row["outcome"] == expected.outcome
        assert row["predicted_low"] == pytest.approx(expected.difference.predicted_low)
        total = study.budget.query(f"series == 'data' and part == 'total' and T == {t}").iloc[0]
        assert total["value"] == pytest.approx(random_effects(m - predicted, s).mean)
        dropped = study.budget.query(f"series == 'data' and part == 'delta1_dropped' and T == {t}").iloc[0]
        delta1 = np.array([cell["delta1"] for cell in cells])
        assert dropped["value"] == pytest.approx(-delta1.mean())
        assert dropped["se"] == pytest.approx(delta1.std(ddof=1) / np.sqrt(3))
    assert (study.cells["status"] == "ok").all()
    cold = study.levels.query("series == 'data' and level == 'infinite_width' and T == 0.3")
    assert list(cold["outcome"]) == ["differs"], "it is off by the whole effect"
    assert study.converged == bool((study.cells["status"] == "ok").all())


def test_a_subset_without_a_usable_run_leaves_no_verdict_over_subsets(job):
    from compare.study_frames import levels

    _, study, _ = job
    for key, group in study.cells[study.cells["series"] == "data"].groupby("T"):
        rows = study.levels.query(f"series == 'data' and T == {key}")
        assert (rows["converged"] == (group["status"] == "ok").sum()).all()
    one = study.series[0]
    cell = next(c for c in one.reports[1].cells if c.problem.T == 3.0)
    good = cell.measurement.diagnosis
    object.__setattr__(cell.measurement, "diagnosis", type(good)("inconclusive", ("made so",), good.table))
    try:
        rows = [row for row in levels([one], 0.1) if row["T"] == 3.0]
    finally:
        object.__setattr__(cell.measurement, "diagnosis", good)
    assert {row["outcome"] for row in rows} == {"inconclusive"}
    assert all("of 3 subsets" in row["reason"] for row in rows)


def test_every_series_has_its_answer_and_the_labels_are_seen_in_the_same_chains(job):
    _, study, _ = job
    assert list(study.answers["series"]) == ["data", "random-labels", "random-labels-between"]
    assert (study.answers["T_min"] == 0.3).all()
    assert (study.answers["T_max"] == 3.0).all()
    labels = study.cells[study.cells["series"] == "random-labels-between"]
    assert (labels["measured"] - 3.0).abs().max() < 5 * 0.1 / np.sqrt(1600), (
        "the distance between the labels, not the classes"
    )
    budget = study.series[2].reports[0].cells[0].measurement
    assert budget.fbar_a.mean == pytest.approx(1.2, abs=0.01)
    assert len(study.peaks) == 9


def test_chains_of_different_subsets_and_controls_do_not_share_seeds():
    parts = plan(problems()[0], ["random-labels", "gaussian"], 5)
    assert len({part.seed for part in parts}) == len(parts) == 9
    assert [p.seed for p in parts[:3]] == [p.seed for p in plan(problems(4)[0], [], 5)[:3]], (
        "more subsets leave the first as they are"
    )
    labels = [part.problems[0].dataset.y for part in parts if part.series == "random-labels"]
    assert (labels[0] != labels[1]).any()


def test_recomputing_the_folder_gives_the_same_numbers_and_writes_the_reports_again(job):
    folder, study, _ = job
    page = folder / "subset-2" / "report.html"
    page.unlink()
    again = compare.reread_subsets(folder)
    for name in ("answers", "levels", "budget", "weights", "cells", "peaks"):
        pd.testing.assert_frame_equal(getattr(again, name), getattr(study, name))
    assert page.exists()
    assert again.to_dict()["series"] == study.to_dict()["series"]


def test_an_interrupted_study_takes_up_the_subsets_that_are_done(job, tmp_path, monkeypatch):
    _, whole, _ = job
    listed, how = problems()
    out = tmp_path / "out"
    real, calls = compare.verify_subsets.__globals__["sample"], []

    def once(problems, **options):
        if len(calls) == 1:
            raise Interrupted("stopped here")
        calls.append(problems[0].dataset.fingerprint)
        return real(problems, **options)

    monkeypatch.setitem(compare.verify_subsets.__globals__, "sample", once)
    with pytest.raises(Interrupted):
        compare.verify_subsets(listed, out=out, how=how, **SMALL)
    assert json.loads((out / UNFINISHED).read_text())["done"] == ["subset-1"]
    assert not (out / STUDY).exists()
    sampled = []
    monkeypatch.setitem(
        compare.verify_subsets.__globals__, "sample", lambda p, **o: (sampled.append(o["out"].name), real(p, **o))[1]
    )
    study = compare.verify_subsets(listed, out=out, how=how, **SMALL)
    assert sampled == ["subset-2", "subset-3"]
    same = whole.levels[whole.levels["series"] == "data"].reset_index(drop=True)
    pd.testing.assert_frame_equal(study.levels, same)
    other = {**SMALL, "seed": 6}
    sampled.clear()
    (out / UNFINISHED).write_text(json.dumps({"request": {"seed": 5}, "done": ["subset-1"]}))
    monkeypatch.setitem(
        compare.verify_subsets.__globals__, "sample", lambda p, **o: (_ for _ in ()).throw(Interrupted(o["out"].name))
    )
    with pytest.raises(Interrupted, match="subset-1"):
        compare.verify_subsets(listed, out=out, how=how, **other)


def test_the_command_line_prints_one_object_and_exits_3_where_a_run_did_not_converge(invoke, tmp_path):
    flags = ["--P", 8, "--N1", 4, "--T", 1, "--chains", 4, "--draws", 20, "--warmup", 20, "--no-first-order", "--quiet"]
    result = invoke("verify", *flags, "--subsets", 3, "--out", tmp_path / "out", "--json")
    assert result.exit_code == 3, result.output
    printed = json.loads(result.stdout)
    assert printed["status"] == "inconclusive"
    assert printed["subsets"]["count"] == 3
    assert printed["subsets"]["how"] == "disjoint"
    assert {row["outcome"] for row in printed["levels"]} == {"inconclusive"}
    again = invoke("report", tmp_path / "out")
    assert again.exit_code == 3, again.output
    assert "Report:" in again.stdout


@pytest.mark.parametrize(
    "about",
    [
        "[]",
        "{}",
        '{"how": "", "settings": {"margin": 0.1}, "series": [["data", "x", ["../elsewhere"]]]}',
        '{"how": "", "settings": {"margin": 0.1}, "series": [["data", "x", ["/etc/subset-1"]]]}',
        '{"how": "", "settings": {"margin": 7}, "series": [["data", "x", ["subset-1"]]]}',
        '{"how": "", "settings": {"margin": 0.1}, "series": [["gaussian", "x", ["subset-1"]]]}',
        '{"how": "", "settings": {"margin": 0.1}, "series": [["data", "x", ["subset-1"]]]}',
    ],
)
def test_a_folder_that_names_other_places_or_none_is_refused(about, tmp_path, invoke):
    (tmp_path / STUDY).write_text(about)
    result = invoke("report", tmp_path)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("error: ")


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--subsets", 2], "three or more"),
        (["--subsets", 0], "three or more"),
        (["--subsets", 3, "--controls", "shuffled"], "no control"),
        (["--subsets", 3, "--T", "10..1"], "LOW < HIGH"),
        (["--subsets", 3, "--P", 7], "odd"),
        (["--subsets", 3, "--labels", "random", "--controls", "all"], "leave it out"),
    ],
)
def test_bad_flags_exit_2_with_one_line(flags, told, invoke, tmp_path):
    result = invoke("verify", "--quiet", "--out", tmp_path / "out", *flags)
    assert result.exit_code == 2, result.output
    assert told in result.stderr


def test_bad_problems_are_refused():
    listed, _ = problems()
    with pytest.raises(InputError, match="same patterns"):
        compare.verify_subsets([listed[0], listed[1], listed[0]])
    with pytest.raises(InputError, match="every subset must have"):
        compare.verify_subsets([listed[0], listed[1], listed[2][:2]])
    with pytest.raises(InputError, match="three or more"):
        compare.verify_subsets(listed[:2])
    with pytest.raises(InputError, match="no control"):
        compare.verify_subsets(listed, controls=["shuffled"])
