"""A report's folder: the data set and the runs, from which everything else is recomputed."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from data import arrays as untrusted
from data.errors import InputError
from data.problem import Dataset, Problem

if TYPE_CHECKING:
    from sampling.run import Run

DATA, RUNS, SETTINGS = "data.npz", "runs", "settings.json"
STUDY = "study.json"  # says that the folder holds several subsets, each in a folder of its own
NETWORK = ("N1", "T", "lambda0", "lambda1", "activation")
ARRAYS = ("X", "y", "classes", "X_test", "y_test", "classes_test")


def replace(path: Path, content: bytes | str) -> Path:
    """Write a whole file under a temporary name and rename it: a reader never sees half of one."""
    with part_of(path) as part:
        part.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@contextlib.contextmanager
def part_of(path: Path) -> Iterator[Path]:
    """A new, empty file beside `path` to write to, renamed to `path` on a clean exit.

    Its name cannot be foreseen and it is made anew, so that a link lying in a folder from somebody else leads no writing astray.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.stem}.{secrets.token_hex(4)}.part{path.suffix}")
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        yield part
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def own(folder: Path, name: str) -> Path:
    """A subfolder that is written to and cleared of old files. Raises InputError where it is a link: what lies there is not ours."""
    path = folder / name
    if path.is_symlink():
        raise InputError(
            f"{path} is a link to another place, where files would be overwritten and removed: delete the link"
        )
    return path


def save_dataset(dataset: Dataset, folder: Path) -> Path:
    """The arrays, name and provenance as `data.npz`; no pickled object in it."""
    arrays = {name: getattr(dataset, name) for name in ARRAYS if getattr(dataset, name) is not None}
    about = json.dumps({"name": dataset.name, "provenance": dataset.provenance})
    path = folder / DATA
    with part_of(path) as part:
        np.savez(part, about=np.array(about), **arrays)
    return path


def load_dataset(folder: Path) -> Dataset:
    """The data set that `save_dataset` wrote. Raises InputError where there is none, or not a readable one."""
    path = folder / DATA
    if not path.is_file():
        raise InputError(f"{folder} holds no {DATA}: give a folder that `saddlecheck verify` or `sample` wrote")
    try:
        with path.open("rb") as file:
            stored = untrusted.read(file, ("about", *ARRAYS))
        about = json.loads(str(stored.pop("about")))
        name, provenance = str(about["name"]), about["provenance"]
        if not isinstance(provenance, dict):
            raise ValueError("its provenance is not a table")
        absent = [key for key in ARRAYS[:3] if key not in stored]
        if absent:
            raise ValueError(f"it has no array {absent[0]!r}")
    except untrusted.DAMAGE as error:
        raise InputError(f"{path} cannot be read ({error}): sample again") from error
    arrays: dict[str, Any] = dict(stored)
    return Dataset(name=name, provenance=provenance, **arrays)


def run_path(folder: Path, problem: Problem) -> Path:
    """Where the run of a problem lies: the name says N1 and T, the file itself says all the rest."""
    return folder / RUNS / f"N1_{problem.N1}-T_{problem.T:g}.nc"


def checkpoint_path(folder: Path, problem: Problem) -> Path:
    """Where an interrupted run leaves its state."""
    return run_path(folder, problem).with_suffix(".checkpoint")


def load_runs(folder: Path) -> list[Run]:
    """Every run in the folder, by N1 and T. Raises InputError where there is none or one is damaged."""
    from sampling.run import Run

    paths = sorted((folder / RUNS).glob("*.nc"))
    if not paths:
        raise InputError(f"{folder / RUNS} holds no runs: give a folder that `saddlecheck verify` or `sample` wrote")
    found = [Run.load(path) for path in paths]
    return sorted(found, key=lambda run: tuple(run.manifest["problem"].get(key) or 0 for key in ("N1", "T")))


def problem_of(run: Run, dataset: Dataset) -> Problem:
    """The Problem that a run was made for, on this data set. Raises InputError when the data are not those it was made on."""
    told = run.manifest["problem"]
    lacking = [key for key in (*NETWORK, "fingerprint") if told.get(key) is None]
    if lacking:
        raise InputError(f"a run in the folder does not say its {lacking[0]}: sample again")
    problem = Problem(dataset, **{key: told[key] for key in NETWORK})
    if problem.fingerprint != told["fingerprint"]:
        raise InputError(
            f"the run at N1 = {problem.N1}, T = {problem.T:g} was made on other data than {DATA} beside it: sample again"
        )
    return problem


def save_settings(folder: Path, settings: dict[str, Any]) -> Path:
    """What a report was made with, beside what the runs say themselves."""
    return replace(folder / SETTINGS, json.dumps(settings, indent=1))


def load_settings(folder: Path) -> dict[str, Any]:
    """What `save_settings` wrote; empty where there is none. Raises InputError where it is not readable."""
    path = folder / SETTINGS
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path} cannot be read ({error}): delete it to use the defaults") from error
    if not isinstance(found, dict):
        raise InputError(f"{path} does not hold an object: delete it to use the defaults")
    margin, seed = found.get("margin", 0.1), found.get("seed", 0)
    good = isinstance(margin, int | float) and 0 < margin < 1 and isinstance(seed, int) and seed >= 0
    if not good or isinstance(seed, bool) or not isinstance(found.get("first_order", True), bool):
        raise InputError(f"{path}: margin, seed or first_order is not what it must be: delete it to use the defaults")
    return found
