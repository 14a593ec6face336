"""The worker on real cells: interrupted, killed, failing, without room on the disk, two at once; results equal undisturbed ones."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from data.errors import InputError
from sampling.campaign import catalog, precision, runner, spec, tries, worker
from sampling.campaign.engines import Event
from sampling.campaign.prior import prior_d2
from sampling.campaign.source import parse_toml
from sampling.campaign.store import CHECKPOINT, RESULT, RUN, Store, wanted
from sampling.campaign.worker import work
from sampling.run import Run

CONTEXT = multiprocessing.get_context("fork")

PRECISE = """
[grid]
data = "digits"
P = 6
N1 = 8
T = 1.0
[sampling]
chains = 8
warmup = 30
[precision]
target = {target}
budget_seconds = 300
"""


def in_child(function: Callable[[], object]) -> int:
    """Exit status of a process of its own that calls the function; minus the signal that killed it."""
    child = CONTEXT.Process(target=function)
    child.start()
    child.join(120)
    assert child.exitcode is not None
    return child.exitcode


def numbers(folder: Path, name: str) -> dict:
    """Everything measured: the summary's numbers, and every array of the Run."""
    found = Store(folder).read(name, deep=True)
    assert found.body is not None, found.note
    run = Run.load(Store(folder).run_path(name))
    return {"numbers": found.body["numbers"]} | {key: value.tobytes() for key, value in (run.series | run.sums).items()}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory):
    """A function text -> (folder, id) of a campaign of one cell done without disturbance, once for each text."""
    made: dict[str, tuple[Path, str]] = {}

    def make(text: str) -> tuple[Path, str]:
        if text not in made:
            folder = tmp_path_factory.mktemp("undisturbed")
            (name,) = catalog.ids(catalog.write(folder, spec.validate(parse_toml(text))))
            assert work(folder, [name], threads=1).made == [name]
            made[text] = folder, name
        return made[text]

    return make


def interfere(at: int, phase: str, action: Callable[[], object]) -> Callable[[Event], None]:
    """A report that acts once, at the at-th progress event of a phase."""
    seen = 0

    def report(event: Event) -> None:
        nonlocal seen
        if event.kind == "progress" and event.data["phase"] == phase:
            seen += 1
            if seen == at:
                action()

    return report


def kill_me() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_cell_is_done_once(planned, tmp_path: Path):
    folder, (cell,) = planned()
    events: list[Event] = []
    outcome = work(folder, [cell.id], report=events.append)
    assert (outcome.made, outcome.exit_code) == ([cell.id], 0)
    assert {one.kind for one in events} >= {"started", "progress", "finished"}
    place = Store(folder).place(cell.id)
    assert sorted(os.listdir(place)) == [RESULT, RUN]
    before = (place / RESULT).stat()
    again = work(folder, [cell.id])
    assert (again.made, again.had, (place / RESULT).stat()) == ([], [cell.id], before)
    body = Store(folder).read(cell.id).body
    assert body["problem"]["dataset_fingerprint"] == cell.dataset(folder).fingerprint
    run = Run.load(place / RUN)
    assert run.manifest["seed"] == cell.chain_seed()
    assert body["numbers"]["d2_mean"] == pytest.approx(run.series["d2"].mean(), rel=1e-12)


def test_an_unknown_id_is_refused(planned):
    folder, _ = planned()
    with pytest.raises(InputError, match="stands in no catalogue"):
        work(folder, ["0" * 32])


def test_a_changed_grid_reuses_what_is_there(planned):
    folder, (cell,) = planned(T="[1.0]")
    work(folder, [cell.id])
    before = (Store(folder).place(cell.id) / RESULT).stat()
    _, cells = planned(T="[2.0, 1.0]", more="[precision]\ntarget = 0.5\n")
    assert [one.id for one in runner.missing(folder)] == [one.id for one in cells if one["T"] == 2.0]
    outcome = work(folder, [one.id for one in cells])
    assert (len(outcome.made), outcome.had) == (1, [cell.id])
    assert (Store(folder).place(cell.id) / RESULT).stat() == before
    # A grid without it again: the cell stays, and status says so.
    planned(T="[2.0]")
    assert (runner.status(folder).unwanted, runner.status(folder).cells) == (1, 1)


@pytest.mark.parametrize(("phase", "at"), [("sample", 3), ("warmup", 1)])
def test_a_worker_killed_in_the_middle_changes_nothing(undisturbed, tmp_path, monkeypatch, phase: str, at: int):
    """kill -9 in the middle of a cell: the next worker takes the claim over, goes on from the checkpoint, and ends with the numbers of
    an undisturbed run, to the last bit."""
    text = PRECISE.format(target=0.2).replace("warmup = 30", "warmup = 60\ndraws = 150")
    reference, name = undisturbed(text)
    catalog.write(tmp_path, spec.validate(parse_toml(text)))
    monkeypatch.setattr(precision, "CHECKPOINT_SECONDS", 0.0)
    assert in_child(lambda: work(tmp_path, [name], report=interfere(at, phase, kill_me), threads=1)) == -9
    place = Store(tmp_path).place(name)
    assert (place / CHECKPOINT).exists() == (phase == "sample")
    assert not (place / RESULT).exists()
    events: list[Event] = []
    assert work(tmp_path, [name], report=events.append, threads=1).made == [name]
    assert numbers(tmp_path, name) == numbers(reference, name)
    resumed = Run.load(place / RUN).manifest["resumed"]
    assert resumed == (phase == "sample")
    assert sorted(os.listdir(place)) == [RESULT, RUN]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_worker_told_to_stop_says_so_and_loses_nothing(undisturbed, tmp_path: Path, number: int):
    text = PRECISE.format(target=0.2).replace("warmup = 30", "warmup = 60\ndraws = 150")
    reference, name = undisturbed(text)
    catalog.write(tmp_path, spec.validate(parse_toml(text)))
    stop = interfere(2, "sample", lambda: os.kill(os.getpid(), number))

    def child() -> None:
        os._exit(work(tmp_path, [name], report=stop, threads=1).exit_code)

    assert in_child(child) == worker.TRY_AGAIN
    place = Store(tmp_path).place(name)
    assert os.listdir(place) == [CHECKPOINT]  # no claim, and the try does not count
    assert work(tmp_path, [name], threads=1).made == [name]
    assert numbers(tmp_path, name) == numbers(reference, name)


def test_rounds_reach_the_wanted_share_of_the_effect_and_survive_a_kill(undisturbed, tmp_path: Path, monkeypatch):
    """The first round's 400 effective draws do not reach 2% of the effect, later ones do; killed in the second round the cell goes on in
    it and ends with the numbers of an undisturbed one."""
    text = PRECISE.format(target=0.02).replace("T = 1.0", "T = 0.2")
    monkeypatch.setattr(precision, "CHECKPOINT_SECONDS", 0.0)
    reference, name = undisturbed(text)
    body = Store(reference).read(name).body
    told = body["numbers"]
    assert (body["outcome"], told["rounds"] >= 2) == ("done", True)
    assert 0.3 * 0.02 < told["relative_error"] <= 0.02  # not driven much further than asked for
    assert told["effect"] == pytest.approx(abs(told["d2_mean"] - told["prior"]))
    catalog.write(tmp_path, spec.validate(parse_toml(text)))
    place = Store(tmp_path).place(name)

    def in_second_round() -> None:
        if json.loads((place / precision.ROUND).read_text())["round"] == 1:
            kill_me()

    def report(event: Event) -> None:
        if (place / precision.ROUND).exists() and event.kind == "progress":
            in_second_round()

    assert in_child(lambda: work(tmp_path, [name], report=report, threads=1)) == -9
    assert work(tmp_path, [name], threads=1).made == [name]
    assert numbers(tmp_path, name) == numbers(reference, name)


def test_a_budget_ends_a_cell_as_inconclusive_and_more_budget_goes_on(tmp_path: Path):
    text = PRECISE.format(target=0.0001).replace("budget_seconds = 300", "budget_seconds = 0.3")
    (cell,) = catalog.read(catalog.write(tmp_path, spec.validate(parse_toml(text))))
    assert work(tmp_path, [cell.id], threads=1).made == [cell.id]
    first = wanted(Store(tmp_path).read(cell.id), cell)
    assert first.state == "inconclusive"
    assert first.note
    assert work(tmp_path, [cell.id]).had == [cell.id]  # the same effort again would bring the same
    (richer,) = catalog.read(catalog.write(tmp_path, spec.validate(parse_toml(text.replace("0.3", "1.2")))))
    assert richer.id == cell.id
    assert [one.id for one in runner.missing(tmp_path)] == [cell.id]
    assert work(tmp_path, [cell.id], threads=1).made == [cell.id]
    second = Store(tmp_path).read(cell.id)
    assert second.body["numbers"]["draws"] > first.body["numbers"]["draws"]


def broken(monkeypatch: pytest.MonkeyPatch, which: str, error: Exception) -> list[str]:
    """Make sampling of one cell raise; returns the list of ids on which it was tried."""
    real, tried = precision.sample, []

    def sample(cell, *arguments, **named):
        tried.append(cell.id)
        if cell.id == which:
            raise error
        return real(cell, *arguments, **named)

    monkeypatch.setattr(precision, "sample", sample)
    return tried


def test_an_error_is_written_down_tried_again_and_stops_no_other(planned, monkeypatch: pytest.MonkeyPatch):
    folder, cells = planned(T="[1.0, 2.0]")
    bad, good = cells[0].id, cells[1].id
    tried = broken(monkeypatch, bad, RuntimeError("no luck"))
    outcome = work(folder, [bad, good])
    assert (outcome.made, list(outcome.failed), outcome.exit_code) == ([good], [bad], worker.SOME_FAILED)
    assert tried == [bad, good, bad]  # tries = 2, the second after the others
    found = runner.status(folder)
    assert dict(found.counts) == {"failed": 1, "inconclusive": 1}
    assert "RuntimeError: no luck" in found.worst[0]["note"]
    assert list(runner.missing(folder)) == []
    assert work(folder, [bad]).failed.keys() == {bad}
    assert len(tried) == 3
    monkeypatch.undo()
    assert runner.retry(folder) == 1
    assert work(folder, [bad]).made == [bad]
    assert tries.listed(Store(folder).place(bad)) == []


def test_bad_input_is_not_tried_again(planned, monkeypatch: pytest.MonkeyPatch):
    folder, (cell,) = planned()
    tried = broken(monkeypatch, cell.id, InputError("the data are gone"))
    assert "the data are gone" in work(folder, [cell.id]).failed[cell.id]
    assert tried == [cell.id]


def test_a_cell_that_kills_its_worker_is_given_up(planned):
    folder, (cell,) = planned()

    def child() -> None:
        work(folder, [cell.id], report=lambda event: kill_me())

    for _ in range(2):
        assert [one.id for one in runner.missing(folder)] == [cell.id]
        assert in_child(child) == -9
    found = runner.status(folder)
    assert dict(found.counts) == {"failed": 1}
    assert tries.KILLED in found.worst[0]["note"]


def test_a_full_disk_is_not_the_cells_fault(planned):
    """No file may grow beyond 16 kB: nothing half written is left, no try is counted, and with room the cell is done."""
    folder, (cell,) = planned()

    def child() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (16_000, 16_000))
        outcome = work(folder, [cell.id])
        os._exit(outcome.exit_code if list(outcome.full) == [cell.id] else 99)

    assert in_child(child) == worker.NO_ROOM
    place = Store(folder).place(cell.id)
    assert not {RESULT, RUN} & set(os.listdir(place))
    assert tries.listed(place) == []
    assert Store(folder).read(cell.id).state == "missing"
    assert work(folder, [cell.id]).made == [cell.id]


def test_a_damaged_result_is_reported_and_computed_again(planned):
    folder, (cell,) = planned()
    work(folder, [cell.id])
    reference = numbers(folder, cell.id)
    run = Store(folder).run_path(cell.id)
    data = run.read_bytes()
    half = len(data) // 2
    run.write_bytes(data[:half] + bytes([data[half] ^ 1]) + data[half + 1 :])
    assert [one.id for one in runner.missing(folder)] == []  # its size is right
    assert [one.id for one in runner.missing(folder, deep=True)] == [cell.id]
    assert dict(runner.status(folder, deep=True).counts) == {"damaged": 1}
    events: list[Event] = []
    assert work(folder, [cell.id], report=events.append).made == [cell.id]
    assert any("checksum" in one.text and one.kind == "note" for one in events)
    assert numbers(folder, cell.id) == reference


def test_a_checkpoint_that_cannot_be_used_is_started_over(planned):
    folder, (cell,) = planned()
    place = Store(folder).place(cell.id)
    place.mkdir(parents=True)
    for content in (b"junk", b""):
        (place / CHECKPOINT).write_bytes(content)
    (place / precision.ROUND).write_text('{"round": 3, "target": 1e-9}')
    assert work(folder, [cell.id]).made == [cell.id]
    assert sorted(os.listdir(place)) == [RESULT, RUN]


def _at_once(folder: Path, ids: list[str], barrier, told) -> None:
    barrier.wait()
    outcome = work(folder, ids)
    told.put((outcome.made, outcome.had, outcome.elsewhere))


def test_two_workers_at_once_do_the_work_once(planned):
    folder, cells = planned(T="[1.0, 2.0, 3.0, 4.0]")
    ids = [one.id for one in cells]
    barrier, told = CONTEXT.Barrier(2), CONTEXT.Queue()
    pair = [CONTEXT.Process(target=_at_once, args=(folder, ids, barrier, told)) for _ in range(2)]
    for one in pair:
        one.start()
    outcomes = [told.get(timeout=120) for _ in pair]
    for one in pair:
        one.join()
        assert one.exitcode == 0
    made = [name for outcome in outcomes for name in outcome[0]]
    assert sorted(made) == sorted(ids)
    assert {"inconclusive"} == set(runner.status(folder).counts)


def test_another_thread_can_stop_the_work(planned):
    folder, cells = planned(T="[1.0, 2.0]")
    stop, found = threading.Event(), []

    def report(event: Event) -> None:
        if event.kind == "progress" and event.data["phase"] == "sample":
            stop.set()

    thread = threading.Thread(
        target=lambda: found.append(work(folder, [one.id for one in cells], report=report, stop=stop))
    )
    thread.start()
    thread.join(60)
    assert (found[0].made, found[0].interrupted, found[0].exit_code) == ([], True, worker.TRY_AGAIN)
    assert dict(runner.status(folder).counts) == {"missing": 2}


def test_the_module_is_a_command(planned, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    folder, cells = planned(T="[1.0, 2.0]")
    listed = tmp_path / "cells"
    listed.write_text("".join(f"{one.id}\n" for one in cells))
    assert worker.main([str(folder), "--list", str(listed), "--chunk", "1"]) == 0
    assert dict(runner.status(folder).counts) == {"missing": 1, "inconclusive": 1}
    assert cells[1].id in capsys.readouterr().out
    assert worker.main([str(folder), "--cells", cells[0].id]) == 0
    assert runner.status(folder).finished
    assert worker.main([str(folder), "--list", str(listed), "--chunk", "2"]) == 2
    assert worker.main([str(folder), "--cells", "../x"]) == 2


@pytest.mark.parametrize("activation", ["erf", "linear", "sin", "tanh"])
def test_the_prior_is_that_of_independent_draws(activation: str):
    """Against draws of whole first layers by the oracle, written apart: |difference| < 4.5 standard errors, a false alarm in 10^5; a
    tenth of the unit's variance more is seen."""
    from data.registry import load
    from sampling import oracle

    problem_of = spec_problem(load("digits", P=8), activation)
    problem = problem_of(1.0)
    w = oracle.prior(problem, 4000, np.random.default_rng(3)).w
    d2 = oracle.scalars(problem, w)["d2"]
    value, se = prior_d2(problem)
    error = np.hypot(d2.std(ddof=1) / np.sqrt(len(d2)), se)
    assert abs(d2.mean() - value) < 4.5 * error
    assert abs(d2.mean() - prior_d2(problem_of(1.5))[0]) > 4.5 * error


def spec_problem(dataset, activation: str):
    from data.problem import Problem

    return lambda lambda0: Problem(dataset, N1=20, T=1.0, lambda0=lambda0, activation=activation)
