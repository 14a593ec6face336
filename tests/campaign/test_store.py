"""The store: states, checksums, hostile files, what a changed precision asks for, claims and tries. Results are made by hand here."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from pathlib import Path

import numpy as np
import pytest

from data.errors import InputError
from sampling.campaign import claims, store, tries
from sampling.campaign.cell import Cell, canonical
from sampling.campaign.small import LARGEST, read_json, write_once
from sampling.campaign.store import RESULT, RUN, Store, parse, wanted

NUMBERS = {"d2_mean": 3.0, "d2_mcse": 0.01, "prior": 2.0, "effect": 1.0, "relative_error": 0.01}
PROBLEM = {"P": 6, "N0": 64, "N1": 8, "alpha": 0.75, "fingerprint": "f", "dataset_fingerprint": "d", "name": "digits"}


def body(outcome: str = "done", reasons: tuple[str, ...] = (), **numbers: float | None) -> dict:
    return {
        "outcome": outcome, "reasons": list(reasons), "numbers": NUMBERS | numbers, "problem": PROBLEM,
        "provenance": {"git_commit": "abc", "biased": False}, "seconds": 1.5, "finished": time.time(),
    }  # fmt: skip


def put(place: Store, cell: Cell, run: bytes = b"a run", **made) -> Path:
    """A result in the store, with any bytes for its Run."""
    folder = place.place(cell.id)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / RUN).write_bytes(run)
    place.write(cell, body(**made))
    return folder


@pytest.fixture
def one(planned):
    """(store, cell) of a campaign of one cell that wants a precision, not a number of draws."""
    folder, (cell,) = planned()
    return Store(folder), Cell(cell.identity | {"draws": None}, cell.effort | {"target": 0.05}, cell.cell_class)


def sign(told: dict) -> bytes:
    """A summary whose checksum is right, whatever it says."""
    return store.framed(canonical(told))


def test_a_result_is_read_back(one):
    place, cell = one
    assert place.read(cell.id).state == "missing"
    put(place, cell)
    found = place.read(cell.id, deep=True)
    assert (found.state, found.relative_error, found.body["identity"]) == ("done", 0.01, cell.identity)
    assert list(place.ids()) == [cell.id]


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_truncated_file_is_found(one, share: float):
    place, cell = one
    for name in (RESULT, RUN):
        folder = put(place, cell, b"x" * 1000)
        data = (folder / name).read_bytes()
        (folder / name).write_bytes(data[: int(share * len(data))])
        found = place.read(cell.id)
        assert (found.state, found.body) == ("damaged", None)
        assert wanted(found, cell).state == "damaged"


def test_every_altered_byte_is_found(one):
    """Each byte of the summary, and of the Run when its checksum is looked at; the size alone does not tell."""
    place, cell = one
    folder = put(place, cell, b"0123456789")
    data = (folder / RESULT).read_bytes()
    for at in range(len(data)):
        assert parse(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :], cell.id)[0] is None
    assert parse(data, cell.id)[0] is not None
    put(place, cell, b"0123456789")
    (folder / RUN).write_bytes(b"0123456788")
    assert place.read(cell.id).state == "done"
    assert place.read(cell.id, deep=True).state == "damaged"
    assert "checksum" in place.read(cell.id, deep=True).note


@pytest.mark.parametrize(
    ("change", "note"),
    [
        ({"id": "0" * 32}, "another cell"),
        ({"outcome": "agrees"}, "unknown"),
        ({"format": "1"}, "format"),
        ({"format": True}, "format"),
        ({"numbers": {"d2_mean": "3"}}, "not numbers"),
        ({"numbers": []}, "numbers"),
        ({"reasons": [1]}, "reasons"),
        ({"problem": {}}, "problem.P"),
        ({"effort": {"target": "x"}}, "effort"),
        ({"run": {"size": "5", "sha256": "x"}}, "run file"),
        ({"identity": {}}, "what cell"),
    ],
)
def test_a_hostile_summary_with_a_right_checksum_is_refused(one, change: dict, note: str):
    place, cell = one
    folder = put(place, cell)
    told = json.loads((folder / RESULT).read_bytes())["body"]
    assert parse(sign(told), cell.id)[0] == told
    (folder / RESULT).write_bytes(sign(told | change))
    found = place.read(cell.id)
    assert found.state == "damaged"
    assert note in found.note


def test_a_summary_of_another_cell_is_refused(one, planned, tmp_path: Path):
    place, cell = one
    data = (put(place, cell) / RESULT).read_bytes()
    other = Cell(cell.identity | {"T": 2.0}, cell.effort)
    folder = put(place, other)
    (folder / RESULT).write_bytes(data)
    assert place.read(other.id).state == "damaged"


def test_files_that_are_not_ordinary_are_refused(one, tmp_path: Path):
    place, cell = one
    folder = put(place, cell)
    good = (folder / RESULT).read_bytes()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(good)
    for make in (
        lambda path: path.symlink_to(elsewhere),
        lambda path: path.mkdir(),
        os.mkfifo,
        lambda path: path.write_bytes(good + b" " * LARGEST),
        lambda path: path.write_bytes(b"[" * 100_000),
        lambda path: path.write_bytes(good.replace(b'"seconds":1.5', b'"seconds":NaN')),
        lambda path: path.write_bytes(b"\x80\x04\x95"),
    ):
        path = folder / RESULT
        path.rmdir() if path.is_dir() else path.unlink()
        make(path)
        assert place.read(cell.id).state == "damaged"
    (folder / RESULT).unlink()
    (folder / RESULT).write_bytes(good)
    assert place.read(cell.id).state == "done"
    run = (folder / RUN).read_bytes()
    (tmp_path / "run").write_bytes(run)
    (folder / RUN).unlink()
    (folder / RUN).symlink_to(tmp_path / "run")
    assert place.read(cell.id).state == "damaged"


def test_a_run_file_that_holds_a_pickle_is_refused_and_not_executed(one, tmp_path: Path):
    from sampling.run import Run

    place, cell = one
    marker = tmp_path / "executed"

    class Evil:
        def __reduce__(self):
            return (open, (str(marker), "w"))

    path = tmp_path / "evil.npz"
    np.savez(path, series=np.array([Evil()], dtype=object))
    folder = put(place, cell, path.read_bytes())
    assert place.read(cell.id, deep=True).state == "done"  # its checksum is right
    with pytest.raises(InputError, match="not a readable run file"):
        Run.load(folder / RUN)
    assert not marker.exists()


@pytest.mark.parametrize("name", ["../../etc", "a" * 31, "A" * 32, "/" + "a" * 31, "", "a" * 32 + "\n"])
def test_a_name_that_is_no_id_reaches_no_path(tmp_path: Path, name: str):
    with pytest.raises(InputError, match="32 hexadecimal"):
        Store(tmp_path).place(name)


def test_other_things_in_the_store_are_passed_over(one):
    place, cell = one
    put(place, cell)
    for name in ("zz/" + "z" * 32, "ab/" + "c" * 32, "ab/notes", "README"):
        (place.folder / "cells" / name).mkdir(parents=True)
    assert list(place.ids()) == [cell.id]


def test_results_of_another_version_are_marked(one, monkeypatch: pytest.MonkeyPatch):
    place, cell = one
    monkeypatch.setattr(store, "version", lambda: "0.0.9")
    put(place, cell)
    assert place.read(cell.id).state == "done"
    monkeypatch.undo()
    found = wanted(place.read(cell.id), cell)
    assert (found.state, found.body["version"]) == ("other-version", "0.0.9")


@pytest.mark.parametrize(
    ("made", "effort", "state"),
    [
        ({}, {}, "done"),
        ({"relative_error": 0.05}, {}, "done"),
        # Called inconclusive for a finer target than is wanted now.
        ({"outcome": "inconclusive", "relative_error": 0.04}, {}, "done"),
        # Done, but for a coarser target than is wanted now.
        ({"relative_error": 0.04}, {"target": 0.01}, "missing"),
        ({"outcome": "inconclusive", "relative_error": 0.2}, {}, "inconclusive"),
        ({"outcome": "inconclusive", "relative_error": 0.2}, {"budget_seconds": 10_000.0}, "missing"),
        ({"outcome": "inconclusive", "relative_error": 0.2}, {"budget_seconds": 1.0}, "inconclusive"),
        ({"outcome": "inconclusive", "relative_error": None}, {}, "inconclusive"),
        ({"outcome": "inconclusive", "reasons": ("R-hat",)}, {}, "inconclusive"),
        ({"outcome": "inconclusive", "reasons": ("R-hat",)}, {"target": 0.5}, "inconclusive"),
        ({"outcome": "inconclusive", "reasons": ("R-hat",)}, {"budget_seconds": 10_000.0}, "missing"),
    ],
)
def test_a_result_is_seen_from_the_precision_that_is_wanted_now(one, made: dict, effort: dict, state: str):
    place, cell = one
    put(place, cell, **made)
    now = Cell(cell.identity, cell.effort | effort, cell.cell_class)
    assert now.id == cell.id
    assert wanted(place.read(cell.id), now).state == state


def test_a_try_that_ends_without_a_word_counts(tmp_path: Path):
    checkpoint = tmp_path / "checkpoint"
    tries.begin(tmp_path, checkpoint)
    tries.fail(tries.begin(tmp_path, checkpoint), "ValueError: x", False)
    found = tries.listed(tmp_path)
    assert [one.error for one in found] == [tries.KILLED, "ValueError: x"]
    assert tries.spent(found, 2)
    assert not tries.spent(found, 3)
    tries.forget(tmp_path)
    tries.fail(tries.begin(tmp_path, checkpoint), "InputError: x", True)
    assert tries.spent(tries.listed(tmp_path), 99)


def test_a_killed_try_that_got_further_does_not_count(tmp_path: Path):
    """A long cell on nodes that are taken away again and again must not be given up while each time brings it forward."""
    checkpoint = tmp_path / "checkpoint"
    for round in range(5):
        path = tries.begin(tmp_path, checkpoint)
        os.utime(path, (1000 + round, 1000 + round))
        checkpoint.touch()
        os.utime(checkpoint, (1000.5 + round, 1000.5 + round))
    assert len(tries.listed(tmp_path)) == 1
    path = tries.begin(tmp_path, checkpoint)
    os.utime(path, (2000, 2000))
    tries.begin(tmp_path, checkpoint)
    assert len(tries.listed(tmp_path)) == 2  # the last but one brought nothing


def test_damaged_tries_count(tmp_path: Path):
    (tmp_path / "try-001.json").write_text("{")
    (tmp_path / "try-002.json").write_text('{"error": 3, "final": "yes"}')
    (tmp_path / "try-x.json").write_text("{}")
    found = tries.listed(tmp_path)
    assert [(one.number, one.error, one.final) for one in found] == [(1, tries.KILLED, False), (2, tries.KILLED, False)]


def test_a_claim_is_for_one(tmp_path: Path):
    with claims.claim(tmp_path) as ours:
        assert ours
        assert claims.fresh(tmp_path)
        with claims.claim(tmp_path) as theirs:
            assert not theirs
        assert claims.fresh(tmp_path)
    assert not claims.fresh(tmp_path)
    assert os.listdir(tmp_path) == []


def _die_holding(folder: Path) -> None:
    with claims.claim(folder) as ours:
        assert ours
        os.kill(os.getpid(), 9)


def test_the_claim_of_a_dead_process_here_is_taken_over_at_once(tmp_path: Path):
    child = multiprocessing.get_context("fork").Process(target=_die_holding, args=(tmp_path,))
    child.start()
    child.join()
    assert child.exitcode == -9
    assert (tmp_path / claims.FILE).exists()
    assert not claims.fresh(tmp_path)
    with claims.claim(tmp_path) as ours:
        assert ours
    assert os.listdir(tmp_path) == []


def test_the_claim_of_another_machine_expires(tmp_path: Path):
    path = tmp_path / claims.FILE
    write_once(path, json.dumps({"token": "x", "pid": 1, "began": "", "machine": "elsewhere"}))
    assert claims.fresh(tmp_path)
    before = time.time() - claims.EXPIRY - 5
    os.utime(path, (before, before))
    assert not claims.fresh(tmp_path)
    with claims.claim(tmp_path) as ours:
        assert ours


def test_a_later_process_of_the_same_number_is_not_the_holder(tmp_path: Path):
    told = {"token": "x", "pid": os.getpid(), "began": "1", "machine": claims.machine()}
    write_once(tmp_path / claims.FILE, json.dumps(told))
    assert not claims.fresh(tmp_path)


def _contend(folder: Path, barrier, held) -> None:
    barrier.wait()
    with claims.claim(folder) as ours:
        if ours:
            held.put(os.getpid())
            time.sleep(0.5)


def test_of_many_that_claim_at_once_one_gets_it(tmp_path: Path):
    context = multiprocessing.get_context("fork")
    barrier, held = context.Barrier(8), context.Queue()
    workers = [context.Process(target=_contend, args=(tmp_path, barrier, held)) for _ in range(8)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
        assert one.exitcode == 0
    assert held.qsize() == 1


def test_small_json_is_strict(tmp_path: Path):
    for text in ("NaN", "[Infinity]", "{", "[" * 10**5, ""):
        (tmp_path / "a").write_text(text)
        assert read_json(tmp_path / "a") is None
    assert read_json(tmp_path / "none") is None
