"""The baseline's file: plain JSON with the cells' data, theory numbers and measurements; read with every entry checked."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from compare.payload import dumps
from compare.store import replace
from data.errors import InputError
from data.problem import Dataset, Problem

FORMAT = 1
LARGEST = 16_000_000  # bytes
NAME = re.compile(r"[A-Za-z0-9_<>=,. -]{1,60}")  # it is printed, and shown beside progress
ARRAYS = ("X", "y", "classes", "X_test", "y_test", "classes_test")
DEFAULT = Path(__file__).parents[2] / "reports" / "regression-baseline" / "baseline.json"


@dataclass(frozen=True)
class Measured:
    """A posterior mean by independent chains: mean over `chains` of them, se = sd of chain means/sqrt(chains).

    length  draws a chain behind each chain mean;  ess  effective draws in all, NaN where not estimated
    """

    mean: float
    se: float
    chains: int
    length: int
    ess: float = math.nan

    @classmethod
    def of(cls, means: np.ndarray, length: int, ess: float = math.nan) -> Measured:
        """From the means of each chain (C,), C >= 2. A value that is not finite makes mean and se NaN."""
        se = float(means.std(ddof=1)) / math.sqrt(len(means))
        return cls(float(means.mean()), se, len(means), length, ess)


@dataclass(frozen=True, eq=False)
class Reference:
    """One cell of the baseline.

    theory    name -> value: deterministic numbers
    drawn     name -> (value, se): level 4, by its seed;  probe  the first numbers drawn for it: whether its draws are the same
    measured  name -> Measured, by long chains;  exact  name -> (value, se) where another method knows the posterior mean
    """

    name: str
    data: str
    problem: Problem
    theory: dict[str, float]
    drawn: dict[str, tuple[float, float]]
    probe: tuple[float, ...]
    measured: dict[str, Measured]
    exact: dict[str, tuple[float, float]]


@dataclass(frozen=True, eq=False)
class Baseline:
    """made  versions, commit, seeds, lengths, date, sampler, and how the numbers were checked;  history  reasons for updates."""

    made: dict[str, Any]
    history: list[dict[str, Any]]
    data: dict[str, Dataset]
    cells: list[Reference]

    def to_dict(self) -> dict[str, Any]:
        """As JSON types; `parse` takes it back."""
        stored = {}
        for key, dataset in self.data.items():
            arrays = {name: getattr(dataset, name) for name in ARRAYS if getattr(dataset, name) is not None}
            stored[key] = {"name": dataset.name, **arrays}
        cells = []
        for one in self.cells:
            p = one.problem
            network = {key: getattr(p, key) for key in ("N1", "T", "lambda0", "lambda1", "activation")}
            cells.append(
                {
                    "name": one.name,
                    "data": one.data,
                    **network,
                    "theory": one.theory,
                    "drawn": {name: list(pair) for name, pair in one.drawn.items()},
                    "probe": list(one.probe),
                    "measured": {name: vars(value) for name, value in one.measured.items()},
                    "exact": {name: list(pair) for name, pair in one.exact.items()},
                }
            )
        return {"format": FORMAT, "made": self.made, "history": self.history, "data": stored, "cells": cells}

    def write(self, path: Path) -> Path:
        """Written whole or not at all."""
        return replace(path, dumps(self.to_dict()) + "\n")


def read(path: Path) -> Baseline:
    """The baseline in a file. Raises InputError, naming what is wrong, where it is none, or an entry is not what it must be."""
    if not path.is_file():
        raise InputError(f"there is no baseline at {path}: make one with `saddlecheck regress --make-baseline`")
    if path.stat().st_size > LARGEST:
        raise InputError(f"{path} has {path.stat().st_size} bytes: a baseline has fewer than {LARGEST}")
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} is not a baseline: it cannot be read as JSON ({error})") from None
    return parse(found, str(path))


def parse(found: Any, where: str) -> Baseline:
    """`Baseline.to_dict` taken back. Raises InputError."""
    top = _object(found, where)
    if top.get("format") != FORMAT:
        raise InputError(
            f"{where}: format {top.get('format')!r} is not {FORMAT}: make the baseline again with this version"
        )
    data = {key: _dataset(value, f"{where}: data {key!r}") for key, value in _object(top.get("data"), where).items()}
    listed = top.get("cells")
    if not isinstance(listed, list) or not listed:
        raise InputError(f"{where}: it holds no cells")
    cells = [_cell(one, data, where) for one in listed]
    if len({one.name for one in cells}) < len(cells):
        raise InputError(f"{where}: two cells have the same name")
    history = top.get("history", [])
    if not isinstance(history, list):
        raise InputError(f"{where}: history must be a list")
    return Baseline(_object(top.get("made"), where), history, data, cells)


def _object(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{where}: an object is wanted where there is {type(value).__name__}")
    return value


def _number(value: Any, where: str, *, finite: bool = True) -> float:
    if value is None and not finite:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InputError(f"{where}: a finite number is wanted; it is {value!r}")
    return float(value)


def _whole(value: Any, where: str, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{where}: a whole number >= {least} is wanted; it is {value!r}")
    return value


def _dataset(value: Any, where: str) -> Dataset:
    stored = _object(value, where)
    arrays: dict[str, Any] = {}
    for name in ARRAYS:
        if name in stored:
            try:
                arrays[name] = np.array(stored[name], dtype=np.float64)
            except (TypeError, ValueError):
                raise InputError(f"{where}: {name} is not a rectangular array of numbers") from None
    missing = [name for name in ARRAYS[:3] if name not in arrays]
    if missing:
        raise InputError(f"{where}: {missing[0]} is missing")
    try:
        return Dataset(name=str(stored.get("name", "")), **arrays)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _cell(value: Any, data: dict[str, Dataset], where: str) -> Reference:
    cell = _object(value, where)
    name = cell.get("name")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InputError(f"{where}: a cell's name is some plain words; it is {ascii(name)[:80]}")
    where = f"{where}: cell {name!r}"
    key = cell.get("data")
    if key not in data:
        raise InputError(f"{where}: there is no data set {key!r}")
    activation = cell.get("activation")
    if not isinstance(activation, str):
        raise InputError(f"{where}: activation must be a name; it is {activation!r}")
    numbers = {one: _number(cell.get(one), f"{where}: {one}") for one in ("T", "lambda0", "lambda1")}
    problem = Problem(data[key], N1=_whole(cell.get("N1"), f"{where}: N1", 1), activation=activation, **numbers)

    def pairs(group: str) -> dict[str, tuple[float, float]]:
        out = {}
        for one, pair in _object(cell.get(group), f"{where}: {group}").items():
            if not isinstance(pair, list) or len(pair) != 2:
                raise InputError(f"{where}: {group} {one}: a value and its error are wanted")
            out[one] = (_number(pair[0], f"{where}: {group} {one}"), _number(pair[1], f"{where}: {group} {one}"))
        return out

    theory = _object(cell.get("theory"), f"{where}: theory")
    probe = cell.get("probe")
    if not isinstance(probe, list):
        raise InputError(f"{where}: probe must be a list")
    measured = {}
    for one, raw in _object(cell.get("measured"), f"{where}: measured").items():
        at = f"{where}: measured {one}"
        entry = _object(raw, at)
        se = _number(entry.get("se"), at)
        if se < 0:
            raise InputError(f"{at}: a standard error must be >= 0; it is {se}")
        measured[one] = Measured(
            mean=_number(entry.get("mean"), at),
            se=se,
            chains=_whole(entry.get("chains"), at, 2),
            length=_whole(entry.get("length"), at, 1),
            ess=_number(entry.get("ess"), at, finite=False),
        )
    return Reference(
        name=name,
        data=str(key),
        problem=problem,
        theory={one: _number(number, f"{where}: theory {one}") for one, number in theory.items()},
        drawn=pairs("drawn"),
        probe=tuple(_number(number, f"{where}: probe") for number in probe),
        measured=measured,
        exact=pairs("exact"),
    )
