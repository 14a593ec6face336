"""Races and filesystems that work against the store: a claim taken over twice, two workers that end one cell, a folder gone read-only."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from sampling.campaign import claims, store
from sampling.campaign.small import write_once
from sampling.campaign.store import RUN, Store
from sampling.campaign.worker import NO_ROOM, work

DEAD = {"token": "dead", "pid": 1, "began": "", "machine": "elsewhere"}


def test_of_two_that_find_a_holder_dead_the_slower_takes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both see the stale claim; one takes it over before the other moves it aside. What the other moves then is a live claim."""
    path = tmp_path / claims.FILE
    write_once(path, json.dumps(DEAD))
    long_ago = time.time() - 10 * claims.EXPIRY
    os.utime(path, (long_ago, long_ago))
    look = claims.fresh
    with ExitStack() as faster:

        def look_slowly(folder: Path, now: float | None = None) -> bool:
            monkeypatch.setattr(claims, "fresh", look)
            found = look(folder, now)
            assert not found
            assert faster.enter_context(claims.claim(folder))
            return found

        monkeypatch.setattr(claims, "fresh", look_slowly)
        with claims.claim(tmp_path) as slower:
            assert not slower
        # The faster one's claim stands, and nobody else gets the cell.
        assert claims.fresh(tmp_path)
        with claims.claim(tmp_path) as third:
            assert not third
    assert os.listdir(tmp_path) == []


def test_the_summary_of_one_worker_never_stands_beside_the_run_of_another(planned, monkeypatch) -> None:
    """A worker taken for dead comes back and ends its cell while its successor does; where a budget ended them the two differ."""
    folder, (cell,) = planned()
    where = Store(folder)
    assert work(folder, [cell.id]).made == [cell.id]
    place = where.place(cell.id)
    record = where.read(cell.id)
    assert record.body is not None
    mine = {key: record.body[key] for key in record.body if key not in ("run", "format", "id", "identity", "effort")}
    whole = (place / RUN).read_bytes()
    other = bytearray(whole)
    other[-1] ^= 1
    version = store.version

    def meanwhile() -> str:
        """Between the Run and the summary of the one the other puts both of its own."""
        monkeypatch.setattr(store, "version", version)
        (place / "theirs.part").write_bytes(other)
        where.write(cell, mine, place / "theirs.part")
        return version()

    (place / "mine.part").write_bytes(whole)
    monkeypatch.setattr(store, "version", meanwhile)
    where.write(cell, mine, place / "mine.part")
    assert (place / RUN).read_bytes() == other
    found = where.read(cell.id, deep=True)
    assert found.state == "damaged"
    assert work(folder, [cell.id]).made == [cell.id]
    assert where.read(cell.id, deep=True).state == "done" or where.read(cell.id, deep=True).state == "inconclusive"


@pytest.fixture
def filesystem(tmp_path: Path) -> Iterator[Path]:
    """A small filesystem of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m,mode=0755", "saddlecheck-test", str(folder)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"no filesystem can be mounted here: {error}")
    if done.returncode:
        pytest.skip(f"no filesystem can be mounted here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_folder_gone_read_only_stops_the_worker_and_costs_nothing(planned, filesystem: Path) -> None:
    """As filesystems do after an error. Results stay readable, no cell counts a try, and afterwards the work goes on."""
    folder, cells = planned("[0.5, 1.0]", folder=filesystem / "campaign")
    ids = [cell.id for cell in cells]
    assert work(folder, ids[:1]).made == ids[:1]
    subprocess.run(["mount", "-o", "remount,ro", str(filesystem)], check=True)
    outcome = work(folder, ids)
    assert outcome.had == ids[:1]
    assert list(outcome.full) == ids[1:]
    assert "Read-only" in outcome.full[ids[1]]
    assert outcome.exit_code == NO_ROOM
    subprocess.run(["mount", "-o", "remount,rw", str(filesystem)], check=True)
    assert work(folder, ids).made == ids[1:]
    assert not Store(folder).read(ids[1]).tries
