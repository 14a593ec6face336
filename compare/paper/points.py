"""Measured points of the paper's figures: from a folder of `verify`, `sample`, `figures` or a campaign, or sampled anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from compare import store
from compare.measure import Measurement
from compare.verify import UNFINISHED
from data.errors import InputError
from data.labels import kind
from data.problem import Dataset, Problem

if TYPE_CHECKING:
    from sampling.run import Run


@dataclass(frozen=True, eq=False)
class Point:
    """A run with the problem that it was made for."""

    problem: Problem
    run: Run

    @cached_property
    def measured(self) -> Measurement:
        """What the run says, with errors."""
        return Measurement.of(self.run)

    @property
    def status(self) -> str:
        """ok, inconclusive, or biased (unadjusted Langevin)."""
        return "biased" if self.run.biased else self.measured.diagnosis.status


def label_kind(dataset: Dataset) -> str:
    """true, random or zero; of a data set that does not say, true where its labels are its classes."""
    told = kind(dataset)
    if told is not None:
        return told
    return "true" if np.array_equal(np.sign(dataset.y), dataset.classes) else "random"


def read(folder: Path) -> list[Point]:
    """Every run that a folder holds. Raises InputError where there is none, or one was made on other data than lie beside it."""
    if (folder / store.DATA).is_file():
        return _plain(folder)
    found = list(_campaign(folder))
    if not found:
        places = sorted(
            path.parent for pattern in ("*", "*/*", "*/*/*") for path in folder.glob(f"{pattern}/{store.DATA}")
        )
        found = [point for place in places for point in _plain(place)]
    if not found:
        raise InputError(
            f"{folder} holds no runs: give a folder that `saddlecheck verify`, `sample`, `figures --sample` or "
            f"`campaign run` wrote"
        )
    return found


def _plain(folder: Path) -> list[Point]:
    dataset = store.load_dataset(folder)
    return [Point(store.problem_of(run, dataset), run) for run in store.load_runs(folder)]


def _campaign(folder: Path) -> Iterator[Point]:
    from compare.campaign import reports

    try:
        for group in reports(folder, first_order=False):
            if group.report is not None:
                yield from (Point(cell.problem, cell.run) for cell in group.report.cells)
    except InputError as error:
        # No campaign here: the caller looks for report folders and names the mend where there are none of these either.
        if "campaign" not in str(error):
            raise


def sample(
    problems: Iterable[Problem], folder: Path, stage: Callable[..., Any] | None = None, **sampling: Any
) -> list[Point]:
    """Chains for problems on any number of data sets: one folder a data set, each resumed where an earlier call stopped.

    A finished run of the same problem is used again, so that the figures of a folder can be drawn anew at no cost.
    """
    from compare.verify import sample as job

    groups: dict[str, list[Problem]] = {}
    for problem in problems:
        groups.setdefault(problem.dataset.fingerprint, []).append(problem)
    found = []
    for listed in groups.values():
        dataset = listed[0].dataset
        place = folder / f"{label_kind(dataset)}-P{dataset.P}-{dataset.fingerprint[:8]}"
        unique = sorted({p.fingerprint: p for p in listed}.values(), key=lambda p: (p.N1, p.T))
        done = _finished(place)
        if {p.fingerprint for p in unique} <= done.keys():
            found += [done[p.fingerprint] for p in unique]
            continue
        runs = job(unique, out=place, stage=stage, **sampling)
        found += [Point(problem, run) for problem, run in zip(unique, runs, strict=True)]
    return found


def _finished(place: Path) -> dict[str, Point]:
    if not (place / store.DATA).is_file() or (place / UNFINISHED).exists():
        return {}
    return {point.problem.fingerprint: point for point in _plain(place)}


def main_group(points: Sequence[Point], kind: str) -> list[Point]:
    """The points on the data set of one kind of labels that has the most of them."""
    groups: dict[str, list[Point]] = {}
    for point in points:
        if label_kind(point.problem.dataset) == kind:
            groups.setdefault(point.problem.dataset.fingerprint, []).append(point)
    return max(groups.values(), key=len, default=[])
