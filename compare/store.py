"""A report's folder: the data set and the runs, from which everything else is recomputed."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from data.errors import InputError
from data.problem import Dataset, Problem

if TYPE_CHECKING:
    from sampling.run import Run

DATA, RUNS, SETTINGS = "data.npz", "runs", "settings.json"
ARRAYS = ("X", "y", "classes", "X_test", "y_test", "classes_test")


def replace(path: Path, content: bytes | str) -> Path:
    """Write a whole file under a temporary name and rename it: a reader never sees half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_bytes(content if isinstance(content, bytes) else content.encode())
    os.replace(part, path)
    return path


def save_dataset(dataset: Dataset, folder: Path) -> Path:
    """The arrays, name and provenance as `data.npz`; no pickled object in it."""
    arrays = {name: getattr(dataset, name) for name in ARRAYS if getattr(dataset, name) is not None}
    about = json.dumps({"name": dataset.name, "provenance": dataset.provenance})
    path = folder / DATA
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name("data.part.npz")
    np.savez(part, about=np.array(about), **arrays)
    os.replace(part, path)
    return path


def load_dataset(folder: Path) -> Dataset:
    """The data set that `save_dataset` wrote. Raises InputError where there is none, or not a readable one."""
    path = folder / DATA
    if not path.is_file():
        raise InputError(f"{folder} holds no {DATA}: give a folder that `saddlecheck verify` or `sample` wrote")
    try:
        with np.load(path, allow_pickle=False) as stored:
            about = json.loads(str(stored["about"]))
            arrays = {name: stored[name] for name in ARRAYS if name in stored.files}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} cannot be read ({error}): sample again") from error
    return Dataset(name=str(about["name"]), provenance=about["provenance"], **arrays)


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
    return sorted(found, key=lambda run: (run.manifest["problem"]["N1"], run.manifest["problem"]["T"]))


def problem_of(run: Run, dataset: Dataset) -> Problem:
    """The Problem that a run was made for, on this data set. Raises InputError when the data are not those it was made on."""
    told = run.manifest["problem"]
    problem = Problem(
        dataset,
        N1=told["N1"],
        T=told["T"],
        lambda0=told["lambda0"],
        lambda1=told["lambda1"],
        activation=told["activation"],
    )
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
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({error}): delete it to use the defaults") from error
    if not isinstance(found, dict):
        raise InputError(f"{path} does not hold an object: delete it to use the defaults")
    return found
