"""The engine `slurm`: plain array jobs from an editable script; `slurm` submits and returns, `slurm:wait` stays and submits again."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator

from data.errors import InputError
from sampling.campaign import slurm_queue
from sampling.campaign.engines import Event, Plan
from sampling.campaign.slurm_settings import SlurmSettings
from sampling.campaign.slurm_submit import Submission, cells_of, identity, submit_missing
from sampling.campaign.store import Store

# Between looks at the queue: soon at first, rarer later, so that a long campaign does not press the controller.
FIRST_POLL, LONGEST_POLL = 1.0, 30.0
FRUITLESS = 3  # times that every missing cell is submitted and none of them ends, after which waiting is given up


def build(options: str) -> Slurm:
    """`slurm` or `slurm:wait`. Raises InputError for other options."""
    if options not in ("", "wait"):
        raise InputError(
            f"engine = 'slurm:{options}': write slurm (submit and return) or slurm:wait (stay until it is done)"
        )
    return Slurm(wait=options == "wait")


class Slurm:
    """Submits the missing cells as array jobs. What is true is the result file of each cell, never the state of a job.

    detached  the work goes on after `run` returns; running again, from any shell, submits just what is missing
    """

    def __init__(self, wait: bool = False):
        self.detached = not wait

    def run(self, plan: Plan) -> Iterator[Event]:
        """Submit; with `wait` look at the queue until no cell is missing, and submit again what a site has cancelled.

        Ctrl-C ends the waiting and no job. Raises InputError without Slurm, for a bad script, or where Slurm refuses.
        """
        settings = resources(plan)
        fruitless, before = 0, -1
        while True:
            done = submit_missing(plan.folder, plan.missing, settings)
            yield from _told(done)
            if self.detached:
                return
            if not (done.cells or done.queued or done.later or done.held or _running(plan)):
                return
            if done.cells and not done.held:
                fruitless = fruitless + 1 if done.cells + done.later == before else 0
                before = done.cells + done.later
                if fruitless == FRUITLESS:
                    text = (
                        f"submitted {FRUITLESS + 1} times without any end: {_cells(before)}; see {plan.folder / 'logs'}"
                    )
                    yield Event("note", text=text)
                    return
            yield from _wait(plan, FIRST_POLL if done.cells else LONGEST_POLL, fill=bool(done.later))


def _wait(plan: Plan, poll: float, fill: bool) -> Iterator[Event]:
    """Wait until the queue holds no job of this campaign (or, to `fill` it again, clearly fewer); tells of what changes in it, and of
    the cells of each element that has left it."""
    prefix, store = f"sc-{identity(plan.folder)}-", Store(plan.folder)
    first: int | None = None
    told: Counter[str] = Counter()
    before: dict[tuple[str, int], tuple[str, ...]] = {}
    while True:
        time.sleep(poll)
        poll = min(LONGEST_POLL, 1.2 * poll)
        try:
            held = slurm_queue.elements(prefix)
        except slurm_queue.SlurmError as error:  # a controller that restarts is no reason to leave
            yield Event("note", text=str(error))
            continue
        states = Counter(_state(element) for element in held)
        if states != told:
            told = states
            yield Event("note", text=_queue(states), data={"queue": dict(states)})
        now = {(element.job, element.index): cells for element, cells in cells_of(plan.folder, prefix, held).items()}
        for element in before.keys() - now.keys():
            for name in before[element]:
                record = store.read(name, most=plan.spec.work.tries)
                if record.state in ("done", "inconclusive", "failed"):
                    yield Event("finished", name, record.note, {"state": record.state})
        before, first = now, len(held) if first is None else first
        if not held or (fill and len(held) <= 0.9 * first):
            return


def _running(plan: Plan) -> bool:
    """Whether somebody works on a cell, or seems to: after a machine has died its claims speak for it for a while."""
    from sampling.campaign.runner import records

    return any(record.state == "running" for _, record in records(plan.folder))


def resources(plan: Plan) -> SlurmSettings:
    """The spec's settings; threads and device of the cells ask for CPUs and a GPU where the spec does not."""
    settings = plan.spec.slurm
    change: dict[str, int] = {}
    if settings.cpus is None and plan.spec.work.threads > 1:
        change["cpus"] = plan.spec.work.threads
    if settings.gpus is None and plan.spec.work.device == "cuda":
        change["gpus"] = 1
    return settings.model_copy(update=change)


def _told(done: Submission) -> Iterator[Event]:
    if done.cells:
        text = f"{_cells(done.cells)} submitted as job{'s' * (len(done.jobs) != 1)} {', '.join(done.jobs)}"
        yield Event("submitted", text=text, data={"jobs": list(done.jobs), "cells": done.cells})
    if done.queued:
        yield Event("note", text=f"in the queue already: {_cells(done.queued)}")
    if done.later:
        yield Event(
            "note", text=f"{done.later} cells wait for room in the queue ({done.note}): run again to submit them"
        )


def _cells(count: int) -> str:
    return f"{count} cell{'s' * (count != 1)}"


def _state(element: slurm_queue.Element) -> str:
    """The state, and why a job waits: a limit, a full machine and a wrong partition read alike otherwise."""
    waits = element.state == "PENDING" and element.reason not in ("", "None")
    return element.state.lower() + (f" ({element.reason})" if waits else "")


def _queue(states: Counter[str]) -> str:
    if not states:
        return "no job of this campaign is in the queue"
    return "in the queue: " + ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
