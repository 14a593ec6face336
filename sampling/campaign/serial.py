"""The engine `serial`: every missing cell in this process, one after the other; for small campaigns and for looking closely."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from data.errors import InputError
from sampling.campaign.engines import Event, Plan
from sampling.campaign.worker import work


def build(options: str) -> Serial:
    """`serial` takes no options. Raises InputError."""
    if options:
        raise InputError(f"engine = 'serial:{options}': serial takes no options")
    return Serial()


class Serial:
    """Cells in the plan's order; ends early where it is told to stop, or the disk takes no more."""

    detached = False

    def run(self, plan: Plan) -> Iterator[Event]:
        stop = threading.Event()
        events: list[Event] = []
        try:
            for task in plan.missing():
                outcome = work(plan.folder, [task.id], report=events.append, stop=stop)
                yield from events
                events.clear()
                if outcome.interrupted:
                    yield Event("note", text="stopped; the same command goes on from the checkpoint")
                    return
        finally:
            stop.set()
