"""The Slurm engine on stand-ins of Slurm's programs: what it asks for, waiting, submitting again, giving up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests_support.slurm import cells

from data.errors import InputError
from sampling.campaign import engines, slurm
from sampling.campaign.engines import Event, Plan, Task
from sampling.campaign.slurm_settings import SlurmSettings


def plan(folder: Path, missing: Callable[[], Iterator[Task]], **work: object) -> Plan:
    """A plan whose spec holds what the engine looks at."""
    spec = SimpleNamespace(
        slurm=SlurmSettings(cells_per_job=1),
        work=SimpleNamespace(**({"threads": 1, "device": "cpu", "tries": 2} | work)),
    )
    return Plan(folder, spec, missing)  # type: ignore[arg-type]


def test_the_cells_threads_and_device_are_asked_for(stand_in, tmp_path: Path) -> None:
    queue = stand_in()
    one = plan(tmp_path, lambda: iter(cells(1)), threads=4, device="cuda")
    events = list(engines.get("slurm").run(one))
    assert [event.kind for event in events] == ["submitted"]
    assert events[0].data == {"jobs": ["100"], "cells": 1}
    text = (queue / "100").read_text()
    assert "#SBATCH --cpus-per-task=4\n" in text
    assert "#SBATCH --gres=gpu:1\n" in text


def test_waiting_submits_again_what_was_cancelled_and_gives_up_what_never_ends(stand_in, tmp_path, monkeypatch) -> None:
    """A site that cancels every job at once: cells that get further are submitted again without end, those that do not a few times."""
    queue = stand_in()
    left = [5]

    def cancelled(seconds: float) -> None:
        for job in queue.glob("[0-9]*"):
            job.unlink()
        left[0] = max(2, left[0] - 1)

    monkeypatch.setattr(slurm, "time", SimpleNamespace(sleep=cancelled))
    monkeypatch.setattr(slurm, "_running", lambda plan: False)
    events = list(engines.get("slurm:wait").run(plan(tmp_path, lambda: iter(cells(left[0])))))
    assert counts(events) == [5, 4, 3] + [2] * (slurm.FRUITLESS + 1)
    assert "logs" in events[-1].text


def counts(events: Sequence[Event]) -> list[int]:
    return [event.data["cells"] for event in events if event.kind == "submitted"]


def test_waiting_ends_when_nothing_is_missing_and_tells_of_cells_that_ended(stand_in, tmp_path, monkeypatch) -> None:
    queue = stand_in()
    work = [Task(f"{index:032x}", "cpu", 1.0) for index in range(3)]
    looks = [0]

    def sleep(seconds: float) -> None:
        looks[0] += 1
        if looks[0] == 3:
            for job in queue.glob("[0-9]*"):
                job.unlink()

    monkeypatch.setattr(slurm, "time", SimpleNamespace(sleep=sleep))
    monkeypatch.setattr(slurm, "_running", lambda plan: False)
    monkeypatch.setattr(slurm.Store, "read", lambda self, name, **more: SimpleNamespace(state="done", note=""))
    one = plan(tmp_path, lambda: iter(work if looks[0] < 3 else []))
    events = list(engines.get("slurm:wait").run(one))
    assert counts(events) == [3]
    assert sorted(event.cell or "" for event in events if event.kind == "finished") == [task.id for task in work]
    assert [event.text for event in events if event.kind == "note"] == [
        "in the queue: 3 pending (Resources)",
        "no job of this campaign is in the queue",
    ]


def test_an_option_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="slurm:wait"):
        engines.get("slurm:now")
