"""Runner, engines and commands: planning, progress, status, one table, reports; a killed worker process; 2,000 cells with stubbed work."""

from __future__ import annotations

import json
import math
import os
import signal
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests_support.campaign import Stub
from typer.testing import CliRunner

from compare import campaign
from compare.cli import app
from data.errors import InputError
from sampling.campaign import catalog, costs, engines, runner, spec, store
from sampling.campaign.dask_engine import PORTION_CELLS, portions
from sampling.campaign.engines import Event, Plan, Task
from sampling.campaign.source import parse_toml
from sampling.campaign.store import RESULT, Store

WIDE = """
[grid]
data = "digits"
P = [20, 40]
alpha = [1, 2]
T = {{ low = 0.01, high = 10, points = 50 }}
subset_seed = {seeds}
labels = ["true", "random"]
"""


REAL = """
title = "done"
[grid]
data = "digits"
P = 6
N1 = 8
T = [0.3, 3.0]
labels = ["true", "random"]
[sampling]
chains = 4
warmup = 20
draws = 100
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign that is done for real: two temperatures, two kinds of label."""
    folder = tmp_path_factory.mktemp("done")
    runner.run(spec.validate(parse_toml(REAL)), folder, "serial")
    return folder


def test_a_run_does_what_is_missing_and_status_tells(done: Path):
    found = runner.status(done, deep=True)
    assert found.finished
    assert found.cells == 4
    assert set(found.counts) <= {"done", "inconclusive"}
    assert found.work_left == 0
    assert found.versions == {store.version(): 4}
    events: list[Event] = []
    runner.run(None, done, "serial", report=events.append)
    assert events == []


def test_the_table_holds_what_was_asked_and_measured(done: Path):
    frame = runner.table(done)
    assert len(frame) == 4
    assert list(frame["T"]) == [0.3, 3.0] * 2
    assert (frame["relative_error"] == frame["d2_mcse"] / frame["effect"]).all()
    assert set(frame["version"]) == {store.version()}
    path = campaign.write_table(frame, done / "frame.parquet")
    pd.testing.assert_frame_equal(pd.read_parquet(path), frame, check_dtype=False)


def test_reports_are_recomputed_from_the_cells(done: Path):
    """The same numbers as verify's own: levels by theory.predict, measurement by compare.measure on each stored run."""
    from compare.measure import Measurement
    from sampling.run import Run
    from theory import predict

    groups = list(campaign.reports(done, first_order=False))
    assert [len(group.ids) for group in groups] == [2, 2]
    assert {group.facts["labels"] for group in groups} == {"true", "random"}
    for group in groups:
        assert group.report is not None
        for name, cell in zip(group.ids, group.report.cells, strict=True):
            run = Run.load(Store(done).run_path(name))
            assert cell.measurement.d2.mean == Measurement.of(run).d2.mean
            assert cell.prediction.levels["eq4"].value == pytest.approx(predict(cell.problem).levels["eq4"].value)
            assert cell.prediction.prior == pytest.approx(Store(done).read(name).body["numbers"]["prior"], rel=1e-9)
    frame = campaign.with_theory(runner.table(done), groups)
    assert len(frame) == 4
    assert frame["eq4"].notna().all()
    assert set(frame["eq4_outcome"]) <= {"agrees", "differs", "inconclusive"}
    assert np.allclose(frame["budget_total"], frame["measured"] - frame["eq4"])


def copied(done: Path, folder: Path) -> Path:
    import shutil

    shutil.copytree(done, folder)
    return folder


def test_what_cannot_be_used_is_left_out_and_named(done: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = copied(done, tmp_path / "copy")
    names = list(catalog.ids(catalog.current(folder)[0]))
    run = Store(folder).run_path(names[0])
    data = bytearray(run.read_bytes())
    data[len(data) // 2] ^= 1
    run.write_bytes(data)
    Store(folder).discard(names[1])
    (group, other) = campaign.reports(folder, first_order=False)
    assert group.ids == []
    assert group.report is None
    assert "checksum" in group.left_out[names[0]]
    assert group.left_out[names[1]] == "missing"
    assert len(other.ids) == 2
    frame = campaign.with_theory(runner.table(folder), [group, other]).set_index("id")
    assert math.isnan(frame.loc[names[0], "eq4"])
    assert "checksum" in frame.loc[names[0], "left_out"]
    # Results of another version are never mixed in unasked.
    monkeypatch.setattr(store, "version", lambda: "9.9")
    monkeypatch.setattr("sampling.campaign.store.version", lambda: "9.9")
    assert [len(one.ids) for one in campaign.reports(folder, first_order=False)] == [0, 0]
    found = runner.status(folder)
    assert found.counts["other-version"] == 3
    assert found.finished is False  # one is missing; those of the other version are not done again unasked
    assert len(list(runner.missing(folder))) == 1
    assert [len(one.ids) for one in campaign.reports(folder, first_order=False, versions="any")] == [0, 2]
    assert runner.retry(folder, ["other-version"]) == 3
    assert len(list(runner.missing(folder))) == 4


def test_a_run_on_other_data_is_left_out(done: Path, tmp_path: Path):
    """The registry's data changed under a stored campaign: the fingerprint of what the run was made on tells."""
    folder = copied(done, tmp_path / "copy")
    name = next(catalog.ids(catalog.current(folder)[0]))
    path = Store(folder).place(name) / RESULT
    body = json.loads(path.read_bytes())["body"]
    body["problem"]["fingerprint"] = "0" * 64
    path.write_bytes(store.framed(store.canonical(body)))
    group = next(iter(campaign.reports(folder, first_order=False)))
    assert "other data" in group.left_out[name]


def invoke(*words: str | Path, status: int = 0):
    result = CliRunner().invoke(app, ["campaign", *map(str, words)])
    assert result.exit_code == status, result.output
    return result


def test_the_commands(done: Path, tmp_path: Path):
    folder = copied(done, tmp_path / "copy")
    told = json.loads(invoke("status", folder, "--json").output)
    assert told["cells"] == sum(told["counts"].values()) == 4
    assert told["finished"] is True
    assert "of 4 cells done" in invoke("status", folder).output
    assert invoke("status", folder, "--quiet").output.count("\n") == 1
    out = tmp_path / "cells.csv"
    invoke("export", folder, out, "--quiet")
    assert len(pd.read_csv(out)) == 4
    assert invoke("export", folder, tmp_path / "cells.xls", status=2).output.startswith("error: cells.xls")
    runner.prepare(spec.validate(parse_toml(REAL.replace('["true", "random"]', '"true"'))), folder)
    told = json.loads(invoke("report", folder, "--no-first-order", "--json").output)
    assert [len(group["cells"]) for group in told["groups"]] == [2]
    for group in told["groups"]:
        assert (folder / "reports" / group["name"] / "report.html").is_file()
    assert len(pd.read_parquet(told["table"])) == 2
    status = 0 if runner.status(folder).counts["inconclusive"] == 0 else 3
    invoke("run", "--out", folder, "--engine", "serial", "--quiet", status=status)
    for words in (
        ("run", "--out", tmp_path / "none"),
        ("status", tmp_path),
        ("report", tmp_path),
        ("run", "--engine", "slrum"),
    ):
        assert invoke(*words, status=2).output.startswith("error: ")


def test_the_dry_run_counts_and_estimates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(costs, "PATIENCE", 0.1)
    path, out = tmp_path / "spec.toml", tmp_path / "out"
    path.write_text('[grid]\ndata = "digits"\nP = 6\nN1 = [8, 16]\nT = [0.1, 1.0]\n[sampling]\nwarmup = 20\n')
    told = json.loads(invoke("plan", path, "--out", out, "--json", "--quiet").output)
    assert (told["cells"], told["counts"]) == (4, {"missing": 4})
    assert [(one["N1"], one["cells"], one["missing"]) for one in told["classes"]] == [(8, 2, 2), (16, 2, 2)]
    assert told["work_left"] == pytest.approx(sum(one["seconds"] for one in told["classes"]))
    assert 0 < told["work_left"] < 4 * 1000
    assert not (out / "cells").exists()
    path.write_text('[grid]\ndata = "digits"\nP = 6\nN1 = 0\nT = -1\n')
    output = invoke("plan", path, "--out", out, status=2).output
    assert "line 4, grid.N1:" in output
    assert "line 5, grid.T:" in output


def test_costs_come_from_finished_cells_then_calibration_then_scaling(tmp_path: Path):
    cells = list(spec.cells(spec.validate(parse_toml('[grid]\ndata="digits"\nP=[50,100]\nN1=50\nT=[1,2]\n'))))
    small, large = cells[0], cells[-1]
    known = costs.Costs()
    assert known.seconds(small) == pytest.approx(0.1 * 600, rel=0.05)
    known = costs.Costs(calibrated={costs.key(small): 10.0})
    assert known.seconds(small) == 10.0
    assert known.seconds(large) == pytest.approx(10 * (100 * 50 * 150) / (50 * 50 * 100))
    known.add(large, 7.0)
    known.add(large, 9.0)
    assert known.seconds(large) == pytest.approx(8.0 + costs.OVERHEAD)
    known.save(tmp_path)
    assert costs.Costs.load(tmp_path).calibrated == known.calibrated
    (tmp_path / costs.FILE).write_text('{"a": "x"}')
    assert costs.Costs.load(tmp_path).calibrated == {}


def test_a_calibration_run_predicts_the_cost_of_a_cell(done: Path):
    """With draws prescribed a trial's estimate is within a factor of 4 of what the cell took: enough for a plan."""
    cell = next(catalog.read(catalog.current(done)[0]))
    took = Store(done).read(cell.id).body["seconds"]
    found = costs.trial(cell, done)
    assert took / 4 < found < 4 * took + 2


def test_portions_keep_order_and_bounds():
    tasks = [Task(f"{at:032x}", "default", 7.0) for at in range(10)] + [Task("f" * 32, "default", 1000.0)]
    found = list(portions(tasks))
    assert [name for some in found for name in some] == [task.id for task in tasks]
    assert [len(some) for some in found] == [4, 4, 2, 1]
    assert max(map(len, portions([Task(f"{at:032x}", "d", 0.0) for at in range(200)]))) == PORTION_CELLS


@pytest.mark.parametrize("name", ["slrum", "", "serial:2", "local:0", "local:many", "dask", "dask:"])
def test_an_unknown_engine_or_option_is_refused(name: str):
    with pytest.raises(InputError, match="engine"):
        engines.get(name)


def test_engines_are_found_by_name():
    assert engines.get("local:3").count(None) == 3  # type: ignore[attr-defined,arg-type]
    assert not engines.get("serial").detached


class Lossy:
    """An engine that loses every second cell, once."""

    detached = False

    def __init__(self) -> None:
        self.calls = 0

    def run(self, plan: Plan) -> Iterator[Event]:
        self.calls += 1
        for at, task in enumerate(plan.missing()):
            if self.calls > 1 or at % 2:
                yield from Stub().one(plan.folder, task.id)


def test_what_an_engine_loses_is_missing_still(small, tmp_path: Path):
    engine, campaign_ = Lossy(), small(T="[1.0, 2.0, 3.0, 4.0]")
    assert runner.run(campaign_, tmp_path, engine).counts == {"missing": 2, "done": 2}
    assert runner.run(None, tmp_path, engine).counts == {"done": 4}


def test_eight_hundred_cells_through_the_engine_interface(tmp_path: Path):
    """Planning, a stubbed run, status and table. The large version, with its times, is tests/benchmarks/bench_campaign.py."""
    campaign_ = spec.validate(parse_toml(WIDE.format(seeds="[0, 1]")))
    assert campaign_.size == 800
    found = runner.run(campaign_, tmp_path, Stub(failing=50, coarse=20))
    assert found.cells == 800
    # Every 50th fails, every 20th that does not is coarse.
    failed = 800 // 50
    coarse = sum(at % 20 == 0 and at % 50 != 0 for at in range(1, 801))
    assert dict(found.counts) == {"failed": failed, "inconclusive": coarse, "done": 800 - failed - coarse}
    assert len(found.worst) == runner.WORST
    assert all(one["state"] == "failed" for one in found.worst)
    assert runner.table(tmp_path)["state"].value_counts().to_dict() == dict(found.counts)


def test_the_grid_is_gone_through_in_bounded_memory(tmp_path: Path):
    """Per cell only the id is remembered: 8,000 cells take less than 150 bytes each more than 800."""

    def peak(seeds: int) -> int:
        campaign_ = spec.validate(parse_toml(WIDE.format(seeds=list(range(seeds)))))
        tracemalloc.start()
        assert sum(1 for _ in spec.cells(campaign_)) == 400 * seeds
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert peak(20) - peak(2) < 150 * 7200


def test_status_is_right_while_cells_are_written(small, tmp_path: Path):
    """A reader that looks all the time sees whole results only, and never fewer than before."""
    import threading

    campaign_ = spec.validate(parse_toml(WIDE.format(seeds="[0]")))
    runner.prepare(campaign_, tmp_path)
    thread = threading.Thread(target=lambda: runner.run(None, tmp_path, Stub()))
    thread.start()
    seen = [0]
    while thread.is_alive():
        counts = runner.status(tmp_path).counts
        assert set(counts) <= {"done", "missing", "running"}
        seen.append(counts["done"])
    thread.join()
    assert seen == sorted(seen)
    assert len(set(seen)) > 2
    assert runner.status(tmp_path).counts == {"done": 400}


@pytest.mark.slow
def test_a_killed_worker_process_is_replaced_and_the_cells_are_done(tmp_path: Path):
    """The local engine with two processes; one is killed with -9 while it samples: its cell goes on elsewhere, all are done once."""
    text = """
[grid]
data = "digits"
P = 6
N1 = 8
T = [1.0, 2.0, 3.0, 4.0]
[sampling]
chains = 4
warmup = 10
draws = 300
"""
    killed: list[int] = []
    folder = tmp_path
    finished: list[str | None] = []

    def report(event: Event) -> None:
        if event.kind == "progress" and not killed:
            claim = Store(folder).place(str(event.cell)) / "claim"
            killed.append(json.loads(claim.read_text())["pid"])
            os.kill(killed[0], signal.SIGKILL)
        if event.kind == "finished":
            finished.append(event.cell)

    found = runner.run(spec.validate(parse_toml(text)), folder, "local:2", report=report)
    assert killed
    assert found.finished
    assert found.counts["done"] + found.counts["inconclusive"] == 4
    assert sorted(map(str, finished)) == sorted(catalog.ids(catalog.current(folder)[0]))
