"""What only trying can tell of a spec, before anything runs: each data set is read once, each sampler made once with its options."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import InputError
from sampling.campaign.cell import Cell
from sampling.campaign.source import Key, Source, read
from sampling.campaign.spec import Grid, Sampler, Spec, SpecError, cells, validate

if TYPE_CHECKING:
    from data.problem import Problem

MOST = 64  # data sets that are read; subsets by other seeds and other labels are of the same kind


def load(path: str | Path, folder: str | Path) -> Spec:
    """Read a spec and check all of it. Raises SpecError with every error by key and line."""
    path = Path(path)
    source = read(path)
    spec = validate(source, path.name)
    check(spec, Path(folder), source, path.name)
    return spec


def check(spec: Spec, folder: Path, source: Source | None = None, name: str = "spec") -> None:
    """Raises SpecError for data that cannot be had as asked for, or a sampler that does not take its options."""
    source = source or Source({}, {})
    single = isinstance(source.values.get("grid"), dict)
    errors: list[tuple[int | None, str, str]] = []

    def note(key: Key, error: Exception) -> None:
        shown = tuple(part for part in key if not (single and part == 0))
        errors.append((source.line(shown), ".".join(map(str, shown)), str(error)))

    for at, grid in enumerate(spec.grid):
        for wrong, error in _data(grid, spec, folder):
            note(("grid", at, wrong), error)
    for sampler in dict.fromkeys(one for grid in spec.grid for one in grid.sampler):
        try:
            _sampler(spec, sampler)
        except InputError as error:
            key: Key = ("sampling", "options", sampler) if sampler in spec.sampling.options else ("sampling",)
            note(key, error)
    if errors:
        raise SpecError(name, list(dict.fromkeys(errors)))


def _data(grid: Grid, spec: Spec, folder: Path) -> list[tuple[str, InputError]]:
    """Errors of the block's data sets: key, error."""
    kinds = itertools.product(grid.data, grid.classes, grid.P, grid.balanced, grid.standardise, grid.labels[:1])
    found: list[tuple[str, InputError]] = []
    for data, classes, P, balanced, standardise, labels in itertools.islice(kinds, MOST):
        one = grid.model_copy(
            update={
                "data": (data,), "classes": (classes,), "P": (P,), "balanced": (balanced,), "labels": (labels,),
                "standardise": (standardise,), "subset_seed": grid.subset_seed[:1], "T": grid.T[:1],
            }
        )  # fmt: skip
        try:
            cell = next(cells(spec.model_copy(update={"grid": (one,)}), folder))
            cell.problem(cell.dataset(folder))
        except InputError as error:
            found.append(("data", error))
    return found


def _sampler(spec: Spec, sampler: Sampler) -> None:
    """Make the sampler once, on a problem of four patterns. Raises InputError."""
    from sampling.campaign.precision import settings
    from sampling.settings import build

    problem = tiny()
    identity: dict[str, Any] = {"sampler": sampler, "options": dict(spec.sampling.options).get(sampler, {}), "seed": 0}
    identity |= spec.sampling.model_dump(exclude={"options"})
    identity |= {"starts": list(spec.sampling.starts), "reweight": list(spec.sampling.reweight)}
    one = settings(Cell(identity), "cpu")
    if sampler != "nuts":
        build(problem, one)


def tiny() -> Problem:
    """A problem of four patterns and three units."""
    import numpy as np

    from data.problem import Dataset, Problem

    X = np.random.default_rng(0).normal(size=(4, 3))
    signs = np.array([1.0, 1.0, -1.0, -1.0])
    return Problem(Dataset(X, signs, signs), N1=3, T=1.0)
