"""Cell: one posterior and how it is sampled, named by a hash of exactly that, so that another grid finds it again."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from data.errors import InputError
from data.local import file_sha256

if TYPE_CHECKING:
    from data.problem import Dataset, Problem

ID = re.compile(r"[0-9a-f]{32}")
DATA = ("data", "sha256", "classes", "P", "subset_seed", "balanced", "standardise", "labels", "label_seed")
NETWORK = ("N1", "T", "lambda0", "lambda1", "activation")
SAMPLING = (
    "sampler",
    "options",
    "chains",
    "warmup",
    "draws",
    "thin",
    "starts",
    "dtype",
    "reweight",
    "max_kept",
    "seed",
)
IDENTITY = (*DATA, *NETWORK, *SAMPLING)


@dataclass(frozen=True, eq=False)
class Cell:
    """What decides the numbers (`identity`), and beside it what decides how long is spent on them (`effort`).

    identity  data set as it is asked for (a file by its sha256), network, sampler with its settings and seed
    effort    target, finest, budget_seconds, tries, device, threads: a result made with another effort is still a result
    cell_class  name of the class of cell, which an engine maps to resources
    """

    identity: dict[str, Any]
    effort: dict[str, Any] = field(default_factory=dict)
    cell_class: str = "default"

    @cached_property
    def id(self) -> str:
        """32 hexadecimal digits: sha256 of the identity as canonical JSON."""
        return identify(self.identity)

    def __getitem__(self, name: str) -> Any:
        return self.identity[name]

    @property
    def group(self) -> str:
        """Name of the group (data set, subset, labels, precisions, activation, sampler, seed) whose cells differ in N1 and T."""
        kept = {key: value for key, value in self.identity.items() if key not in ("N1", "T", "reweight")}
        return hashlib.sha256(canonical(kept).encode()).hexdigest()[:16]

    @property
    def kind(self) -> tuple[Any, ...]:
        """What the cost of a draw depends on: class, data set, sampler, P, N1, activation."""
        names = ("data", "sampler", "P", "N1", "activation", "dtype", "chains")
        return (self.cell_class, *(self.identity[name] for name in names))

    @cached_property
    def kind_text(self) -> str:
        """The kind as JSON."""
        return canonical(list(self.kind))

    def chain_seed(self) -> int:
        """A seed of the cell's own, so that chains at two temperatures do not share their noise; the grid's order does not enter."""
        entropy = [int(self.identity["seed"]), *(int(self.id[at : at + 8], 16) for at in range(0, 32, 8))]
        return int(np.random.SeedSequence(entropy).generate_state(1, np.uint32)[0])

    def dataset(self, folder: Path) -> Dataset:
        """The data set, read from the registry or from the file in the campaign's folder, whose checksum is checked."""
        from data.registry import load

        one = self.identity
        name: str | Path = one["data"]
        if one["sha256"] is not None:
            name = inside(folder, one["data"])
            if checksum(name) != one["sha256"]:
                raise InputError(f"{one['data']} has changed since the cell was planned: run the campaign again")
        elif "/" in one["data"] or one["data"].endswith(".npz"):
            raise InputError(f"{one['data']!r}: a cell names a file only together with its checksum")
        return load(
            name if isinstance(name, str) else str(name),
            classes=one["classes"],
            P=one["P"],
            seed=one["subset_seed"],
            balanced=one["balanced"],
            labels=one["labels"],
            label_seed=one["label_seed"],
            standardise=one["standardise"],
        )

    def problem(self, dataset: Dataset) -> Problem:
        """The posterior on this data set."""
        from data.problem import Problem

        return Problem(dataset, **{name: self.identity[name] for name in NETWORK})

    def line(self) -> str:
        """One line of a catalogue: id, then the cell as JSON."""
        return f"{self.id} {canonical([self.cell_class, self.identity, self.effort])}\n"

    @classmethod
    def of_line(cls, line: str) -> Cell:
        """The inverse of `line`. Raises InputError for anything else, and for an id that is not that of the identity."""
        name, _, text = line.partition(" ")
        try:
            cell_class, identity, effort = json.loads(text)
            cell = cls(identity=dict(identity), effort=dict(effort), cell_class=str(cell_class))
            good = set(identity) == set(IDENTITY) and cell.id == name
        except (ValueError, TypeError, AttributeError) as error:
            raise InputError(f"a line of the catalogue is not a cell ({error}): run the campaign again") from error
        if not good:
            raise InputError(f"cell {name[:40]!r} of the catalogue is not what its name says: run the campaign again")
        return cell


def canonical(value: Any) -> str:
    """JSON with sorted keys and no blanks; refuses NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)


def identify(identity: dict[str, Any]) -> str:
    """The id of what decides the numbers: the first 32 hexadecimal digits of its sha256."""
    return hashlib.sha256(canonical(identity).encode()).hexdigest()[:32]


def inside(folder: Path, name: str) -> Path:
    """`name` in `folder`, links followed. Raises InputError where it leaves the folder: by `..`, an absolute path, or a link."""
    top = folder.resolve()
    found = (top / name).resolve()
    if Path(name).is_absolute() or not found.is_relative_to(top) or found == top:
        raise InputError(f"{name!r} leaves the output directory: put the file into it and name it from there")
    return found


def checksum(path: Path) -> str:
    """sha256 of a file's bytes. Raises InputError where it cannot be read."""
    try:
        return file_sha256(path)
    except OSError as error:
        raise InputError(f"{path.name}: cannot be read ({error.strerror or error})") from error
