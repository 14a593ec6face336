"""A campaign compared with the theory: one Report for each data set, and one table of all cells with levels, budget and verdicts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compare.verdict import MARGIN
from data.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from compare.cell import Cell
    from compare.result import Report
    from compare.verify import Stage
    from sampling.campaign.cell import Cell as Task
    from sampling.campaign.store import Record

USED = ("done", "inconclusive")
FOLDER, TABLE = "reports", "cells"


@dataclass(frozen=True, eq=False)
class Group:
    """Cells that differ in N1 and T only: one data set, subset, labels, precisions, activation, sampler and seed.

    name     a word for files;  facts  what the cells share, as the spec says it
    report   None where no cell of the group can be used
    ids      of the cells in the report, in the order of report.cells
    left_out  id -> why, of the others: missing, failed, damaged, another version, other data
    """

    name: str
    facts: dict[str, Any]
    report: Report | None
    ids: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)


def reports(
    folder: str | Path,
    *,
    margin: float = MARGIN,
    first_order: bool = True,
    seed: int = 0,
    versions: str = "this",
    stage: Stage | None = None,
) -> Iterator[Group]:
    """The groups of the campaign in a folder, one at a time, theory and verdicts computed anew from the stored runs.

    Every Run is compared with its checksum, and every data set with the one that its runs were made on; what does not match is
    left out and named, and so are results of other versions unless versions="any".
    Raises InputError where the folder holds no campaign.
    """
    from sampling.campaign.runner import records

    if versions not in ("this", "any"):
        raise InputError(f"versions = {versions!r}: this (results of the present version only) or any")
    folder = Path(folder)
    groups: dict[str, list[tuple[Task, Record]]] = {}
    for cell, record in records(folder, deep=True):
        groups.setdefault(cell.group, []).append((cell, record))
    for at, members in enumerate(groups.values(), start=1):
        yield _group(folder, members, margin, first_order, seed, versions, stage, (at, len(groups)))


def _group(
    folder: Path,
    members: list[tuple[Task, Record]],
    margin: float,
    first_order: bool,
    seed: int,
    versions: str,
    stage: Stage | None,
    place: tuple[int, int],
) -> Group:
    from compare.cell import Cell
    from compare.result import Report
    from compare.verify import checked, predicted
    from sampling.campaign.store import Store
    from sampling.run import Run

    first = members[0][0]
    facts = {key: value for key, value in first.identity.items() if key not in ("N1", "T", "reweight")}
    name, store = label(first), Store(folder)
    left_out = {cell.id: _why(record) for cell, record in members if not _used(record, versions)}
    usable = [(cell, record) for cell, record in members if cell.id not in left_out]
    if not usable:
        return Group(name, facts, None, [], left_out)
    dataset = first.dataset(folder)
    runs, problems, tasks = [], [], []
    for cell, record in usable:
        problem = cell.problem(dataset)
        try:
            assert record.body is not None
            if record.body["problem"].get("fingerprint") != problem.fingerprint:
                raise InputError(f"made on other data than {cell['data']} gives now")
            run = Run.load(store.run_path(cell.id))
            if run.manifest["problem"]["fingerprint"] != problem.fingerprint:
                raise InputError("its run was made for another problem")
        except (InputError, KeyError, TypeError) as error:
            left_out[cell.id] = str(error)
            continue
        runs.append(run)
        problems.append(problem)
        tasks.append(cell.id)
    if not runs:
        return Group(name, facts, None, [], left_out)
    told = (lambda _name, _at, _of: stage(name, *place)) if stage else (lambda _name, _at, _of: lambda event: None)
    predictions, lines = predicted(checked(problems), first_order, seed, told)
    cells = [Cell.of(prediction, run, margin) for prediction, run in zip(predictions, runs, strict=True)]
    order = sorted(range(len(cells)), key=lambda i: (cells[i].problem.N1, cells[i].problem.T))
    settings = {"margin": margin, "first_order": first_order, "seed": seed, "campaign": facts}
    report = Report([cells[i] for i in order], lines, settings)
    return Group(name, facts, report, [tasks[i] for i in order], left_out)


def _used(record: Record, versions: str) -> bool:
    return record.state in USED or (record.state == "other-version" and versions == "any")


def _why(record: Record) -> str:
    if record.state == "other-version" and record.body is not None:
        return f"made by version {record.body['version']}"
    return f"{record.state}: {record.note}" if record.note else record.state


def label(cell: Task) -> str:
    """A name for a group's files, from what a reader looks for, made unique by the group's hash."""
    one = cell.identity
    parts = [
        Path(one["data"]).stem if one["sha256"] else one["data"],
        one["classes"],
        f"P{one['P']}" if one["P"] else None,
    ]
    parts += [one["labels"], None if one["subset_seed"] is None else f"subset{one['subset_seed']}", one["sampler"]]
    text = "-".join(re.sub(r"[^A-Za-z0-9]+", "_", str(part)).strip("_") for part in parts if part is not None)
    return f"{text[:80]}-{cell.group[:6]}"


def columns(cell: Cell) -> dict[str, Any]:
    """What the theory says of one cell, flat: each level with its error, verdict and deviation; the parts of the budget."""
    found: dict[str, Any] = {
        "status": cell.status,
        "measured": cell.measurement.d2.mean,
        "measured_se": cell.measurement.d2.se,
        "Qbar": cell.prediction.Qbar,
        "prior_theory": cell.prediction.prior,
        "y_K_y_over_P": cell.prediction.y_K_y_over_P,
    }
    for name, level in cell.prediction.levels.items():
        verdict = cell.verdicts[name]
        found |= {
            f"{name}": level.value,
            f"{name}_se": level.se,
            f"{name}_outcome": verdict.outcome,
            f"{name}_z": verdict.z,
            f"{name}_relative_to_effect": verdict.relative_to_effect,
            f"{name}_relative_se": verdict.relative_se,
        }
    for name, part in (*cell.budget.parts.items(), ("total", cell.budget.total)):
        found |= {f"budget_{name}": part.value, f"budget_{name}_se": part.se}
    if cell.weights is not None:
        found |= {"weights_slope": cell.weights.fit.slope, "weights_slope_se": cell.weights.fit.slope_se}
        found["weights_outcome"] = cell.weights.outcome
    return found


def with_theory(plain: pd.DataFrame, groups: Iterable[Group]) -> pd.DataFrame:
    """The table of `sampling.campaign.runner.table` with the columns of `columns`, and why a cell has none (`left_out`)."""
    import pandas as pd

    rows: list[dict[str, Any]] = []
    for group in groups:
        if group.report is not None:
            rows += [{"id": name, **columns(cell)} for name, cell in zip(group.ids, group.report.cells, strict=True)]
        rows += [{"id": name, "left_out": why} for name, why in group.left_out.items()]
    more = pd.DataFrame(rows) if rows else pd.DataFrame({"id": pd.Series(dtype=str)})
    return plain.merge(more, on="id", how="left", validate="one_to_one")


def table(folder: str | Path, *, theory: bool = True, **options: Any) -> pd.DataFrame:
    """One row a cell of the grid: what was asked, state, measured numbers, and with `theory` levels, verdicts and budget.

    options  of `reports`: margin, first_order, seed, versions, stage. Raises InputError where the folder holds no campaign.
    """
    from sampling.campaign import runner

    plain = runner.table(folder)
    return with_theory(plain, reports(folder, **options)) if theory else plain


def write_table(frame: pd.DataFrame, path: Path) -> Path:
    """As .parquet or .csv, by the name's end, written whole or not at all. Raises InputError for another end."""
    from sampling.atomic import replacing

    if path.suffix not in (".parquet", ".csv"):
        raise InputError(f"{path.name}: a table is written as .parquet or .csv")
    with replacing(path) as temporary:
        if path.suffix == ".csv":
            frame.to_csv(temporary, index=False)
        else:
            frame.to_parquet(temporary, index=False)
    return path


def write(folder: str | Path, *, stage: Stage | None = None, **options: Any) -> tuple[list[Group], pd.DataFrame]:
    """Write `reports/NAME/` for each group and the page of all, `reports/index.html`, with cells.parquet and cells.csv beside it.

    Returns the groups, without their runs, and the table. Raises InputError where the folder holds no campaign.
    """
    import pandas as pd

    from compare.report.campaign_page import write_campaign_page
    from compare.report.collect import peak_rows
    from sampling.campaign import catalog, runner

    folder = Path(folder)
    kept: list[Group] = []
    pages: dict[str, str] = {}
    peaks: list[dict[str, Any]] = []

    def written() -> Iterator[Group]:
        for group in reports(folder, stage=stage, **options):
            if group.report is not None:
                page = group.report.write(folder / FOLDER / group.name).relative_to(folder / FOLDER).as_posix()
                pages.update(dict.fromkeys(group.ids, page))
                peaks.extend(
                    row | {key: group.facts[key] for key in ("data", "labels")}
                    for row in peak_rows(group.name, page, group.report)
                )
            kept.append(Group(group.name, group.facts, None, group.ids, group.left_out))
            yield group

    frame = with_theory(runner.table(folder), written())
    frame["page"] = frame["id"].map(pages)
    _, _, spec = catalog.current(folder)
    write_campaign_page(
        frame,
        folder / FOLDER,
        peaks=pd.DataFrame(peaks),
        title=str(spec.get("title") or "Campaign"),
        margin=float(options.get("margin", MARGIN)),
    )
    return kept, frame
