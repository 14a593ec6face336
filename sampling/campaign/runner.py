"""Running a campaign: what is missing, what it will cost, having it done by an engine, and where it stands."""

from __future__ import annotations

import heapq
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sampling.campaign import catalog, costs, engines, tries
from sampling.campaign.cell import Cell
from sampling.campaign.engines import Engine, Event, Plan, Task
from sampling.campaign.spec import Spec
from sampling.campaign.store import Record, Store, wanted

WORST = 10  # cells that a status names
RECENT = 3600.0  # seconds over which the rate of finished cells is taken
Report = Callable[[Event], None]


@dataclass
class ClassCost:
    """Cells of one class: how many, how many of them are missing, and the seconds that those will take."""

    cells: int = 0
    missing: int = 0
    seconds: float = 0.0


@dataclass
class Status:
    """Where a campaign stands.

    counts    state -> cells (sampling.campaign.store.STATES), `cells` in all
    classes   (class, sampler, data, P, N1) -> ClassCost
    seconds_left  wall time at the rate of the last hour or of the workers seen, None when nobody works;  work_left  seconds of work
    worst     of the cells that need attention: failed, damaged, inconclusive and done ones with the largest errors
    unwanted  cells in the store that the present grid does not hold;  versions, commits  what made the results, with their numbers
    """

    title: str
    cells: int
    counts: Counter[str] = field(default_factory=Counter)
    classes: dict[tuple[Any, ...], ClassCost] = field(default_factory=dict)
    work_left: float = 0.0
    seconds_left: float | None = None
    worst: list[dict[str, Any]] = field(default_factory=list)
    unwanted: int = 0
    versions: Counter[str] = field(default_factory=Counter)
    commits: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do: every cell has a result or has failed for good."""
        return not (self.counts["missing"] + self.counts["running"] + self.counts["damaged"])

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON."""
        classes = [
            dict(zip(("class", "sampler", "data", "P", "N1"), name, strict=True)) | vars(one)
            for name, one in self.classes.items()
        ]
        return vars(self) | {
            "counts": dict(self.counts),
            "classes": classes,
            "versions": dict(self.versions),
            "commits": dict(self.commits),
            "finished": self.finished,
        }


def prepare(spec: Spec, folder: str | Path) -> Path:
    """Write the catalogue of a spec into the folder, where workers and `status` find it. Raises InputError, OSError."""
    return catalog.write(Path(folder), spec)


def records(folder: Path, *, deep: bool = False, present: set[bytes] | None = None) -> Iterator[tuple[Cell, Record]]:
    """Every cell of the grid with what the store knows of it; safe while workers write. In memory only the names of folders."""
    store = Store(folder)
    path, _, _ = catalog.current(folder)
    present = _present(store) if present is None else present
    for cell in catalog.read(path):
        if bytes.fromhex(cell.id) not in present:
            yield cell, Record(cell.id, "missing")
        else:
            yield cell, wanted(store.read(cell.id, deep=deep, most=int(cell.effort["tries"])), cell)


def _present(store: Store) -> set[bytes]:
    """Ids of the cells that have a folder."""
    return {bytes.fromhex(name) for name in store.ids()}


def known_costs(folder: Path) -> costs.Costs:
    """What finished cells and the calibration in the folder tell of costs."""
    known = costs.Costs.load(folder)
    for cell, record in records(folder):
        if record.state in ("done", "inconclusive") and record.body is not None:
            known.add(cell, float(record.body["seconds"]))
    return known


def missing(folder: Path, *, deep: bool = False) -> Iterator[Task]:
    """The cells that have no result and are not given up, running ones included only where their worker is dead."""
    known = costs.Costs.load(folder)
    for cell, record in records(folder, deep=deep):
        if record.state in ("done", "inconclusive") and record.body is not None:
            known.add(cell, float(record.body["seconds"]))
        elif record.state in ("missing", "damaged"):
            yield Task(cell.id, cell.cell_class, known.seconds(cell))


def status(folder: str | Path, *, deep: bool = False, report: Callable[[int, int], None] | None = None) -> Status:
    """Where the campaign in a folder stands, from the result files alone; `deep` reads every Run and compares its checksum.

    Raises InputError where the folder holds no campaign.
    """
    folder, began = Path(folder), time.time()
    _, total, spec = catalog.current(folder)
    found = Status(str(spec.get("title", "")), total)
    known = costs.Costs.load(folder)
    left: dict[str, tuple[Cell, int]] = {}
    recent, present, seen = _Recent(), _present(Store(folder)), 0
    worst: list[tuple[float, str, dict[str, Any]]] = []
    for at, (cell, record) in enumerate(records(folder, deep=deep, present=present)):
        found.counts[record.state] += 1
        seen += bytes.fromhex(cell.id) in present
        name = (cell.cell_class, *(cell[key] for key in ("sampler", "data", "P", "N1")))
        one = found.classes.setdefault(name, ClassCost())
        one.cells += 1
        if record.body is not None:
            if record.state in ("done", "inconclusive"):
                known.add(cell, float(record.body["seconds"]))
            if began - float(record.body["finished"]) < RECENT:
                recent.add(float(record.body["finished"]), float(record.body["seconds"]) + costs.OVERHEAD)
            found.versions[str(record.body["version"])] += 1
            found.commits[str(record.body["provenance"].get("git_commit"))] += 1
        if record.state in ("missing", "damaged", "running"):
            one.missing += 1
            kind = f"{costs.key(cell)} {name}"
            left[kind] = (cell, left.get(kind, (cell, 0))[1] + 1)
        _worst(worst, cell, record)
        if report is not None and at % 1000 == 0:
            report(at, total)
    for cell, count in left.values():
        name = (cell.cell_class, *(cell[key] for key in ("sampler", "data", "P", "N1")))
        found.classes[name].seconds += count * known.seconds(cell)
    found.work_left = sum(one.seconds for one in found.classes.values())
    found.seconds_left = _left(found, recent)
    found.worst = [row for _, _, row in sorted(worst, key=lambda one: -one[0])]
    found.unwanted = len(present) - seen
    found.seconds = time.time() - began
    return found


SEVERITY = {"failed": 1e9, "damaged": 1e8, "other-version": 1e7, "inconclusive": 1e6}


def _worst(rows: list[tuple[float, str, dict[str, Any]]], cell: Cell, record: Record) -> None:
    """Keep the WORST cells so far."""
    if record.state in ("missing", "running"):
        return
    error = record.relative_error
    rank = SEVERITY.get(record.state, 0.0) + min(error, 1e5)
    if len(rows) == WORST and (rank, record.id) <= rows[0][:2]:
        return
    shown = ("data", "labels", "P", "N1", "T", "sampler", "subset_seed")
    row = {"id": record.id, "state": record.state, **{key: cell[key] for key in shown}}
    row |= {"relative_error": error if math.isfinite(error) else None, "note": record.note}
    heapq.heappush(rows, (rank, record.id, row))
    if len(rows) > WORST:
        heapq.heappop(rows)


@dataclass
class _Recent:
    """Cells that ended lately: how many, their work in seconds, and the time from the first one's beginning to the last one's end."""

    cells: int = 0
    work: float = 0.0
    first: float = math.inf
    last: float = -math.inf

    def add(self, end: float, seconds: float) -> None:
        self.cells += 1
        self.work += seconds
        self.first, self.last = min(self.first, end - seconds), max(self.last, end)


def _left(found: Status, recent: _Recent) -> float | None:
    """Wall time left: work left over the work a second that was got through lately, or over the workers seen; else None."""
    if not found.work_left:
        return 0.0
    running = found.counts["running"]
    if running and recent.cells >= 10 and recent.last > recent.first:
        return found.work_left * (recent.last - recent.first) / recent.work
    return found.work_left / running if running else None


def retry(folder: Path, states: Iterable[str] = ("failed",)) -> int:
    """Have cells of these states done again: failed ones by forgetting their tries, others by removing their result. Returns how many.

    `other-version` and `inconclusive` are taken too: a result of another version is never replaced unasked.
    """
    asked, count, store = set(states), 0, Store(folder)
    for cell, record in records(folder):
        if record.state in asked & {"failed", "other-version", "inconclusive"}:
            if record.state != "failed":
                store.discard(cell.id)
            tries.forget(store.place(cell.id))
            count += 1
    return count


def run(
    spec: Spec | None,
    folder: str | Path,
    engine: str | Engine = "local",
    *,
    report: Report | None = None,
    again: Iterable[str] = (),
    deep: bool = True,
) -> Status:
    """Have the missing cells of a campaign done, and return where it stands then.

    spec    None goes on with the campaign that is in the folder
    engine  a name (sampling.campaign.engines.get) or an Engine
    report  called with every event of the engine, and with notes
    again   states whose cells are done again: failed, inconclusive, other-version
    deep    first compare the checksum of every Run there is; a damaged one is reported and computed again

    Calling it twice at once, from two shells, is safe: cells are claimed, and what is true is the result file.
    Raises InputError for a bad spec, folder or engine; OSError where the folder cannot be written.
    """
    folder, tell = Path(folder), report or (lambda event: None)
    worker = engines.get(engine) if isinstance(engine, str) else engine
    if spec is not None:
        prepare(spec, folder)
    else:
        spec = catalog.spec_of(folder)
    states = set(again)
    if states:
        tell(Event("note", text=f"{retry(folder, states)} cells are done again ({', '.join(sorted(states))})"))
    first = True

    def tasks() -> Iterator[Task]:
        nonlocal first
        # Checksums of all Runs are compared once; later looks see truncation only.
        now, first = deep and first, False
        yield from missing(folder, deep=now)

    for event in worker.run(Plan(folder, spec, tasks)):
        tell(event)
    return status(folder)


def table(folder: str | Path, *, deep: bool = False) -> Any:
    """All cells of the grid as one pandas table, one row a cell in the spec's order: state, what was asked, numbers, who made them.

    Nothing is mixed silently: `state` says which results are of another version, `version` and `git_commit` of which.
    """
    import pandas as pd

    rows = [_row(cell, record) for cell, record in records(Path(folder), deep=deep)]
    return pd.DataFrame(rows)


def _row(cell: Cell, record: Record) -> dict[str, Any]:
    identity = cell.identity | {
        "options": ", ".join(f"{key}={value}" for key, value in sorted(cell["options"].items())),
        "starts": ", ".join(cell["starts"]),
        "reweight": ", ".join(f"{T:g}" for T in cell["reweight"]),
    }
    identity.pop("sha256")
    P = cell["P"]
    row: dict[str, Any] = {
        "id": cell.id,
        "group": cell.group,
        "class": cell.cell_class,
        "state": record.state,
        "note": record.note,
    }
    row |= identity | {"alpha": None if P is None else P / cell["N1"], "target": cell.effort["target"]}
    row["tries"] = len(record.tries)
    if record.body is not None:
        body = record.body
        row |= {key: value for key, value in body["numbers"].items() if key not in row}
        row |= {"P": body["problem"]["P"], "N0": body["problem"]["N0"], "alpha": body["problem"]["alpha"]}
        row |= {"biased": body["provenance"].get("biased"), "seconds": body["seconds"], "finished": body["finished"]}
        row |= {"version": body["version"], "git_commit": body["provenance"].get("git_commit")}
        row |= {
            "device": body["provenance"].get("device"),
            "dataset_fingerprint": body["problem"]["dataset_fingerprint"],
        }
    return row
