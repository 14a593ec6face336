"""The spec of a campaign: a grid, how each cell is sampled, to which precision, with what effort; checked as a whole, errors by line."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from data.errors import InputError
from data.problem import ACTIVATIONS
from sampling.campaign.cell import Cell, checksum, inside
from sampling.campaign.slurm_settings import Name, SlurmSettings
from sampling.campaign.source import Key, Source, read

LARGEST = 1_000_000  # cells of one campaign
LONGEST = 10_000  # values of one key
SAMPLERS = ("hmc", "tempering", "gibbs", "underdamped", "mala", "langevin", "nuts")


def _listed(value: Any) -> Any:
    """A single value as a list of one; a list as a tuple without repeats."""
    if isinstance(value, list | tuple):
        if not value:
            raise ValueError("the list is empty: give at least one value")
        if len(value) > LONGEST:
            raise ValueError(f"{len(value)} values; at most {LONGEST}")
        kept: list[Any] = []
        for one in value:
            if not any(one == other and type(one) is type(other) for other in kept):
                kept.append(one)
        return tuple(kept)
    return (value,)


def _ladder(value: Any) -> Any:
    """Temperatures: a value, a list, or {low, high, points}, even in log T and rounded to 3 figures or more, the ends exact."""
    if not isinstance(value, dict):
        return _listed(value)
    if set(value) != {"low", "high", "points"}:
        raise ValueError("a range is { low = ..., high = ..., points = ... }")
    low, high, points = value["low"], value["high"], value["points"]
    if any(isinstance(one, bool) or not isinstance(one, int | float) for one in (low, high)) or not 0 < low < high:
        raise ValueError("a range needs 0 < low < high")
    if not math.isfinite(high) or isinstance(points, bool) or not isinstance(points, int):
        raise ValueError("a range needs finite ends and a whole number of points")
    if not 2 <= points <= LONGEST:
        raise ValueError(f"points = {points}: between 2 and {LONGEST}")
    step = math.log(high / low) / (points - 1)
    figures = max(3, 2 + math.ceil(-math.log10(step)))  # neighbours stay apart
    inner = [float(f"{low * math.exp(step * at):.{figures}g}") for at in range(1, points - 1)]
    return _listed([float(low), *inner, float(high)])


Count = Annotated[int, Field(strict=True, ge=1, le=10**7)]
Seed = Annotated[int, Field(strict=True, ge=0, le=2**32 - 1)]
Positive = Annotated[float, Field(strict=True, gt=0, allow_inf_nan=False)]
Word = Annotated[str, Field(strict=True, min_length=1, max_length=200)]
Flag = Annotated[bool, Field(strict=True)]
Activation = Literal["erf", "linear", "tanh", "sin"]
Sampler = Literal["hmc", "tempering", "gibbs", "underdamped", "mala", "langevin", "nuts"]
assert set(Activation.__args__) == set(ACTIVATIONS)  # type: ignore[attr-defined]
Some = BeforeValidator(_listed)
Option = Annotated[bool, Field(strict=True)] | Annotated[int, Field(strict=True)] | Positive | Word


class Model(BaseModel):
    """Unknown keys are errors, and nothing changes once it is read."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Grid(Model):
    """One block of the campaign: every key is a value or a list of values, and the block is the product of them all."""

    data: Annotated[tuple[Word, ...], Some]
    classes: Annotated[tuple[Word | None, ...], Some] = (None,)
    P: Annotated[tuple[Count | None, ...], Some] = (None,)
    subset_seed: Annotated[tuple[Seed | None, ...], Some] = (None,)
    balanced: Annotated[tuple[Flag | None, ...], Some] = (None,)
    standardise: Annotated[tuple[Literal["global", "feature", "none"] | None, ...], Some] = (None,)
    labels: Annotated[tuple[Literal["true", "random", "zero"], ...], Some] = ("true",)
    label_seed: Annotated[tuple[Seed, ...], Some] = (0,)
    N1: Annotated[tuple[Count, ...] | None, BeforeValidator(lambda v: None if v is None else _listed(v))] = None
    alpha: Annotated[tuple[Positive, ...] | None, BeforeValidator(lambda v: None if v is None else _listed(v))] = None
    T: Annotated[tuple[Positive, ...], BeforeValidator(_ladder)]
    lambda0: Annotated[tuple[Positive, ...], Some] = (1.0,)
    lambda1: Annotated[tuple[Positive, ...], Some] = (1.0,)
    activation: Annotated[tuple[Activation, ...], Some] = ("erf",)
    sampler: Annotated[tuple[Sampler, ...], Some] = ("hmc",)
    seed: Annotated[tuple[Seed, ...], Some] = (0,)
    cell_class: Name = Field(default="default", alias="class")

    @field_validator("data")
    @classmethod
    def _known(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        from data.registry import describe

        found = []
        for name in names:
            if name.endswith(".npz"):
                parts = Path(name).parts
                if Path(name).is_absolute() or ".." in parts or "\0" in name:
                    raise ValueError(
                        f"{name!r} leaves the output directory: put the file into it and name it from there"
                    )
                found.append(name)
                continue
            base, colon, options = name.partition(":")
            try:
                found.append(describe(base)["name"] + colon + options)
            except InputError as error:
                raise ValueError(str(error)) from error
        return tuple(found)

    @model_validator(mode="after")
    def _one_width(self) -> Grid:
        if (self.N1 is None) == (self.alpha is None):
            raise ValueError("give either N1 or alpha (alpha = P/N1)")
        named = [name for name in self.data if not name.endswith(".npz")]
        if named and None in self.P:
            raise ValueError(f"P is missing: how many patterns of {named[0]!r}?")
        if self.alpha is not None and None in self.P:
            raise ValueError("alpha needs P, also for a file")
        return self

    @property
    def size(self) -> int:
        """Cells of the block, before equal ones are counted once."""
        return math.prod(len(values) for values in self._axes())

    def _axes(self) -> list[tuple[Any, ...]]:
        return [
            self.data, self.classes, self.P, self.subset_seed, self.balanced, self.standardise, self.labels,
            self.label_seed, self.lambda0, self.lambda1, self.activation, self.sampler, self.seed,
            self.N1 or self.alpha or (), self.T,
        ]  # fmt: skip


class Sampling(Model):
    """How every cell is sampled: what decides its numbers."""

    chains: Annotated[int, Field(strict=True, ge=2, le=4096)] = 8
    warmup: Annotated[int, Field(strict=True, ge=0, le=10**7)] | None = None
    draws: Count | None = Field(default=None, description="exactly so many a chain, in place of a precision")
    thin: Count = 1
    starts: Annotated[tuple[Literal["prior", "aligned", "zero", "hot", "cold", "teacher"], ...], Some] = (
        "prior",
        "aligned",
    )
    dtype: Literal["float64", "float32"] = "float64"
    reweight: tuple[Positive, ...] = Field(
        default=(), description="temperatures at which log-likelihoods are recorded, for curves between the cells"
    )
    max_kept: Annotated[int, Field(strict=True, ge=100, le=100_000, multiple_of=2)] = 2000
    options: dict[Sampler, dict[Name, Option]] = Field(default_factory=dict, description="of each sampler, by its name")


class Precision(Model):
    """When a cell is done."""

    target: Annotated[float, Field(strict=True, gt=0, lt=1)] = Field(
        default=0.05, description="standard error of <D^2> relative to the effect |<D^2> - prior|"
    )
    finest: Annotated[float, Field(strict=True, gt=0, lt=1)] = Field(
        default=0.0005,
        description="error relative to <D^2> itself beyond which no cell is driven, however small its effect",
    )
    budget_seconds: Positive = Field(default=600.0, description="sampling time of one cell at most")


class Work(Model):
    """With what effort, and how often a failing cell is tried."""

    tries: Annotated[int, Field(strict=True, ge=1, le=100)] = 3
    threads: Annotated[int, Field(strict=True, ge=1, le=1024)] = 1
    device: Annotated[str, Field(pattern=r"^(cpu|cuda)$")] = "cpu"


class Spec(Model):
    """A campaign: grids, sampling, precision, effort, and what Slurm is asked for."""

    title: Annotated[str, Field(strict=True, max_length=200)] = ""
    grid: Annotated[tuple[Grid, ...], BeforeValidator(lambda v: (v,) if isinstance(v, dict) else v)]
    sampling: Sampling = Sampling()
    precision: Precision = Precision()
    work: Work = Work()
    slurm: SlurmSettings = SlurmSettings()

    @model_validator(mode="after")
    def _bounded(self) -> Spec:
        if not self.grid:
            raise ValueError("grid is missing: give at least one [grid] block")
        if self.size > LARGEST:
            raise ValueError(f"the grid has {self.size} cells; at most {LARGEST} in one campaign")
        used = {sampler for grid in self.grid for sampler in grid.sampler}
        for name in self.sampling.options:
            if name not in used:
                raise ValueError(f"sampling.options.{name}: the grid has no cell with this sampler")
        if "nuts" in used and self.sampling.draws is None:
            raise ValueError("sampling.draws is missing: nuts takes a number of draws, not a precision")
        return self

    @property
    def size(self) -> int:
        """Cells of all blocks, equal ones counted as often as they stand there."""
        return sum(grid.size for grid in self.grid)


def load(path: str | Path) -> Spec:
    """Read and check a spec. Raises SpecError, with every error by key and line, or InputError where it cannot be read at all."""
    path = Path(path)
    return validate(read(path), path.name)


class SpecError(InputError):
    """Every error of a spec; `errors` are (line, key, what is wrong), and the message holds them all, one a line."""

    def __init__(self, name: str, errors: list[tuple[int | None, str, str]]):
        self.errors = errors
        lines = [f"line {line}, {key}: {what}" if line else f"{key}: {what}" for line, key, what in errors]
        super().__init__("\n".join([f"{name}: {len(errors)} error" + "s" * (len(errors) != 1) + ":", *lines]))


def validate(source: Source, name: str = "spec") -> Spec:
    """The spec of a parsed source. Raises SpecError."""
    try:
        return Spec.model_validate(source.values)
    except ValidationError as error:
        found = []
        for one in error.errors(include_url=False, include_context=False):
            key = _key(one["loc"], source)
            what = one["msg"].removeprefix("Value error, ")
            if one["type"] == "extra_forbidden":
                what = "there is no such key" + _near(key, one["loc"])
            elif one["type"] != "missing" and not isinstance(one["input"], dict | list | tuple):
                what += f" (it is {one['input']!r})"
            found.append((source.line(key), ".".join(map(str, key)) or "spec", what))
        unique = list(dict.fromkeys(found))
        raise SpecError(name, sorted(unique, key=lambda one: (one[0] or 0, one[1]))) from error


def _key(loc: tuple[Any, ...], source: Source) -> Key:
    """The error's place as the file writes it: without pydantic's names of union members, or the index of a single block."""
    key: list[str | int] = []
    value: Any = source.values
    for part in loc:
        within = part in value if isinstance(value, dict) else isinstance(part, int) and part < _length(value)
        if within:
            key.append(part)
            value = value[part]
        elif isinstance(part, str) and isinstance(value, dict) and part.isidentifier() and part == loc[-1]:
            key.append(part)  # a key that is missing
    return tuple(key)


def _length(value: Any) -> int:
    return len(value) if isinstance(value, list) else 0


def _near(key: Key, loc: tuple[Any, ...]) -> str:
    import difflib

    models: dict[str, type[BaseModel]] = {
        "grid": Grid, "sampling": Sampling, "precision": Precision, "work": Work, "slurm": SlurmSettings,
    }  # fmt: skip
    model = models.get(str(loc[0]), Spec) if len(loc) > 1 else Spec
    names = [field.alias or name for name, field in model.model_fields.items()]
    near = difflib.get_close_matches(str(key[-1] if key else ""), names, n=1, cutoff=0.5)
    return f"; did you mean {near[0]!r}?" if near else f" (there are {', '.join(names)})"


def cells(spec: Spec, folder: Path | None = None) -> Iterator[Cell]:
    """Every cell once, block by block, T innermost; in memory only the ids seen so far.

    folder  the output directory, in which a spec's own data files lie
    Raises InputError for a data file that leaves the folder or cannot be read.
    """
    seen: set[bytes] = set()
    sampling = {key: getattr(spec.sampling, key) for key in ("chains", "warmup", "draws", "thin", "dtype", "max_kept")}
    sampling |= {"starts": list(spec.sampling.starts), "reweight": sorted(spec.sampling.reweight)}
    effort = {**spec.precision.model_dump(), **spec.work.model_dump()}
    for grid in spec.grid:
        digests = {name: _digest(name, folder) for name in grid.data}
        for values in itertools.product(*grid._axes()):
            (data, classes, P, subset_seed, balanced, standardise, labels, label_seed,
             lambda0, lambda1, activation, sampler, seed, width, T) = values  # fmt: skip
            N1 = width if grid.N1 is not None else max(1, round(P / width))
            identity = {
                "data": data, "sha256": digests[data], "classes": classes, "P": P, "subset_seed": subset_seed,
                "balanced": balanced, "standardise": standardise, "labels": labels,
                "label_seed": label_seed if labels == "random" else 0,
                "N1": N1, "T": float(T), "lambda0": float(lambda0), "lambda1": float(lambda1), "activation": activation,
                "sampler": sampler, "options": dict(spec.sampling.options.get(sampler, {})), "seed": seed,
                **sampling,
            }  # fmt: skip
            cell = Cell(identity, effort, grid.cell_class)
            name = bytes.fromhex(cell.id)
            if name not in seen:
                seen.add(name)
                yield cell


def _digest(name: str, folder: Path | None) -> str | None:
    if not name.endswith(".npz"):
        return None
    if folder is None:
        raise InputError(f"{name!r}: a spec with a data file of its own needs the output directory it lies in")
    return checksum(inside(folder, name))
