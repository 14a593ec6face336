"""The engine `dask:ADDRESS`: portions of the missing cells as tasks of any running dask scheduler; what `local` starts by itself, too."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import InputError
from sampling.campaign.engines import Event, Plan, Task
from sampling.campaign.worker import SOME_FAILED, work

if TYPE_CHECKING:
    from distributed import Client

TOPIC = "saddlecheck-campaign"
PORTION_SECONDS, PORTION_CELLS = (
    30.0,
    50,
)  # of a task: long enough that dask's own work is small, short enough to be lost
AHEAD = 3  # tasks per worker that are handed out ahead
EVERY = 2.0  # seconds between progress events of one cell
ROUNDS = 3  # times that the store is asked what is still missing after all tasks ended
PATIENCE = 60.0  # seconds to wait for a first worker

_stop = threading.Event()


def build(options: str) -> Dask:
    """`dask:tcp://host:port`. Raises InputError without an address."""
    if not options:
        raise InputError("engine dask: give the address of a running scheduler, as in dask:tcp://127.0.0.1:8786")
    return Dask(options)


class Dask:
    """Works through a scheduler that somebody else runs. Its workers must see the campaign's folder under the same path."""

    detached = False

    def __init__(self, address: str):
        self.address = address

    def run(self, plan: Plan) -> Iterator[Event]:
        """Raises InputError where there is no scheduler at the address, or no worker within a minute."""
        from distributed import Client

        try:
            client = Client(self.address, timeout=20)
        except (OSError, ValueError, TimeoutError) as error:
            raise InputError(f"engine dask: no scheduler answers at {self.address} ({error})") from error
        with client:
            try:
                client.wait_for_workers(1, timeout=PATIENCE)
            except TimeoutError as error:
                raise InputError(f"engine dask: the scheduler at {self.address} has no worker") from error
            yield from through(client, plan)


def through(client: Client, plan: Plan, devices: list[str] | None = None) -> Iterator[Event]:
    """Work through a connected client until no cell is missing, or no round brings one further.

    devices  of the workers by number, where each is to have its own
    """
    before = None
    for _ in range(ROUNDS):
        tasks = list(plan.missing())
        if not tasks or len(tasks) == before:
            return
        before = len(tasks)
        yield Event("submitted", text=f"{len(tasks)} cells to do", data={"cells": len(tasks)})
        yield from _round(client, plan.folder, tasks, devices)


def _round(client: Client, folder: Path, tasks: list[Task], devices: list[str] | None) -> Iterator[Event]:
    from distributed import as_completed

    heard: queue.SimpleQueue[Any] = queue.SimpleQueue()
    client.subscribe_topic(TOPIC, lambda told: heard.put(told[1]))
    waiting = iter(portions(tasks))
    running = as_completed()
    held: dict[str, list[str]] = {}

    def hand_out() -> bool:
        some = next(waiting, None)
        if some is None:
            return False
        future = client.submit(_portion, str(folder.absolute()), some, devices, pure=False, retries=0)
        held[str(future.key)] = some
        running.add(future)
        return True

    try:
        workers = sum(client.nthreads().values())
        for _ in range(AHEAD * max(1, workers)):
            if not hand_out():
                break
        while held:
            ready = running.next_batch(block=False) if running.has_ready() else []
            for future in ready:
                some = held.pop(str(future.key))
                yield from _heard(heard)
                if future.status == "error":
                    # Its worker died with it too often, or could not start it: the store counts the tries of the cells.
                    yield Event("note", text=f"{len(some)} cells lost with their worker: {future.exception()}")
                else:
                    yield from _ended(future.result())
                hand_out()
            if not ready:
                yield from _heard(heard)
                time.sleep(0.05)
        yield from _heard(heard)
    finally:
        client.unsubscribe_topic(TOPIC)
        if held:  # broken off: let running cells write down that they stop
            with contextlib.suppress(Exception):
                client.cancel(list(running.futures), force=True)
                client.run(_tell_to_stop)


def portions(tasks: list[Task]) -> Iterator[list[str]]:
    """Neighbouring cells, which share their data, up to PORTION_SECONDS of expected work together."""
    some: list[str] = []
    seconds = 0.0
    for task in tasks:
        if some and (seconds + task.seconds > PORTION_SECONDS or len(some) >= PORTION_CELLS):
            yield some
            some, seconds = [], 0.0
        some.append(task.id)
        seconds += task.seconds
    if some:
        yield some


def _portion(folder: str, ids: list[str], devices: list[str] | None) -> dict[str, Any]:
    """On a worker: work on the cells, telling what happens as it happens."""
    import dask
    from distributed import get_worker

    me = get_worker()
    device = devices[int(me.name) % len(devices)] if devices and str(me.name).isdigit() else None
    last: dict[str | None, float] = {}

    def tell(event: Event) -> None:
        now = time.monotonic()
        if event.kind == "progress":
            if now - last.get(event.cell, -EVERY) < EVERY:
                return
            last[event.cell] = now
        me.log_event(TOPIC, [event.kind, event.cell, event.text, dict(event.data)])

    # xarray, finding itself on a dask worker, would lock its files through the scheduler: each cell has files of its own.
    with dask.config.set(scheduler="synchronous"):
        outcome = work(folder, ids, report=tell, stop=_stop, device=device)
    return {"full": outcome.full, "elsewhere": outcome.elsewhere, "failed": outcome.exit_code == SOME_FAILED}


def _tell_to_stop() -> None:
    _stop.set()


def _heard(events: queue.SimpleQueue[Any]) -> Iterator[Event]:
    """What workers told since."""
    while True:
        try:
            kind, cell, text, data = events.get_nowait()
        except queue.Empty:
            return
        yield Event(str(kind), cell, str(text), dict(data))


def _ended(told: dict[str, Any]) -> Iterator[Event]:
    if told["full"]:
        name, error = next(iter(told["full"].items()))
        yield Event("note", text=f"{len(told['full'])} cells could not be written, the first {name}: {error}")
    if told["elsewhere"]:
        yield Event("note", text=f"{len(told['elsewhere'])} cells are in the hands of another worker")
