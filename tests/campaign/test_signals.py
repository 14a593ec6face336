"""Signals of a scheduler at awkward moments: before the sampling begins, and after its last step; none is lost, none costs a result."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from sampling import guards
from sampling.campaign.engines import Event
from sampling.campaign.store import RUN, Store
from sampling.campaign.worker import TRY_AGAIN, work
from sampling.run import Run


@pytest.fixture
def heard() -> Iterator[list[int]]:
    """A handler of USR1 that notes the signal, in place during the test."""
    found: list[int] = []
    before = signal.signal(signal.SIGUSR1, lambda number, frame: found.append(number))
    yield found
    signal.signal(signal.SIGUSR1, before)


def test_a_signal_too_late_to_be_heeded_reaches_the_caller(heard: list[int]) -> None:
    with guards.signals() as asked:
        os.kill(os.getpid(), signal.SIGUSR1)
        assert asked == [signal.SIGUSR1]
        assert heard == []
    assert heard == [signal.SIGUSR1]


def test_a_late_interrupt_does_not_throw_finished_work_away() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with guards.signals() as asked:
            os.kill(os.getpid(), signal.SIGINT)
        assert asked == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("name", ["SIGUSR1", "SIGTERM"])
def test_a_signal_before_the_sampling_stops_the_worker(name: str, planned) -> None:
    """Between the claim of a cell and its first step there are seconds of imports and reading; a job warned there must not begin a cell
    of an hour."""
    folder, cells = planned("[0.5, 1.0]")
    ids = [cell.id for cell in cells]
    sent = []

    def report(event: Event) -> None:
        if event.kind == "started" and not sent:
            sent.append(event.cell)
            os.kill(os.getpid(), getattr(signal, name))

    outcome = work(folder, ids, report=report)
    assert outcome.exit_code == TRY_AGAIN
    assert not outcome.made
    assert {Store(folder).read(one).state for one in ids} == {"missing"}
    # The same again brings everything, and a stop is not a failed try.
    assert sorted(work(folder, ids).made) == sorted(ids)
    assert all(not Store(folder).read(one).tries for one in ids)
    Run.load(Store(folder).place(ids[0]) / RUN)
