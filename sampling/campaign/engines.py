"""What an engine is: takes the plan of a campaign, has its missing cells worked on somewhere, and tells what happens. By name."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from data.errors import InputError

if TYPE_CHECKING:
    from sampling.campaign.spec import Spec

# name -> module with `build(options) -> Engine`, imported when it is asked for
ENGINES = {
    "local": "sampling.campaign.local",
    "serial": "sampling.campaign.serial",
    "dask": "sampling.campaign.dask_engine",
    "slurm": "sampling.campaign.slurm",
}


class Task(NamedTuple):
    """One missing cell: its id, the class of cell that says which resources it gets, and its expected seconds."""

    id: str
    cell_class: str
    seconds: float


class Event(NamedTuple):
    """What happened. kind: "submitted", "started", "progress" (data as the events of sampling.run), "finished" (data["state"] is done,
    inconclusive, failed or interrupted), "note" (a sentence for the user, no cell), "batch" (one of several events)."""

    kind: str
    cell: str | None = None
    text: str = ""
    data: dict[str, Any] = {}  # noqa: RUF012  # never changed


@dataclass(frozen=True)
class Plan:
    """What an engine is given. `missing()` reads the store anew and yields the cells that have no result: call it as often as needed.

    folder    the campaign's folder: store, catalogues of cells, logs
    spec      the spec as validated: tries, threads, device, slurm settings
    tasks     the function behind `missing`
    """

    folder: Path
    spec: Spec
    tasks: Callable[[], Iterator[Task]] = field(repr=False)

    def missing(self) -> Iterator[Task]:
        return self.tasks()


class Engine(Protocol):
    """Runs a plan. The events tell of progress only: what is true is the result file of each cell, which the runner reads itself.

    An engine whose work goes on after it returns (a batch queue) sets `detached`. Whatever it starts calls
    `sampling.campaign.worker.work(folder, ids)`, which is idempotent: a cell may be handed out twice.
    """

    detached: bool

    def run(self, plan: Plan) -> Iterator[Event]: ...


def get(name: str) -> Engine:
    """The engine called `name`, options after a colon: "local", "local:4", "dask:tcp://10.0.0.1:8786", "slurm".

    Raises InputError for an unknown name or options that the engine does not take.
    """
    base, _, options = name.partition(":")
    if base not in ENGINES:
        near = difflib.get_close_matches(base, ENGINES, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InputError(f"engine = {name!r} is unknown ({', '.join(ENGINES)}){hint}")
    return importlib.import_module(ENGINES[base]).build(options)
