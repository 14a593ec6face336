"""A campaign of cells that take a fraction of a second: P = 6 digits, 8 units, a handful of draws; stand-ins of Slurm's programs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from tests_support.slurm import STAND_IN

from sampling.campaign import catalog, spec
from sampling.campaign.source import parse_toml

SMALL = """
title = "small"
[grid]
data = "digits"
P = 6
N1 = 8
T = {T}
labels = {labels}
[sampling]
chains = 4
warmup = 10
draws = 20
[work]
tries = 2
"""


@pytest.fixture
def small():
    """A function (T, labels, **replace) -> Spec of the small campaign."""

    def make(T="[1.0]", labels='["true"]', more=""):
        return spec.validate(parse_toml(SMALL.format(T=T, labels=labels) + more))

    return make


@pytest.fixture
def planned(small, tmp_path: Path):
    """A function -> (folder, cells) of a small campaign whose catalogue is written."""

    def make(*arguments, folder: Path | None = None, **named):
        folder = tmp_path / "out" if folder is None else folder
        path = catalog.write(folder, small(*arguments, **named))
        return folder, list(catalog.read(path))

    return make


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A function that puts the stand-ins on the PATH and returns the folder with one file a job in the queue."""

    def make(max_array: int = 1001, max_jobs: int = 100_000) -> Path:
        programs, queue = tmp_path / "programs", tmp_path / "queue"
        programs.mkdir()
        queue.mkdir()
        for name in ("sbatch", "squeue", "scontrol"):
            path = programs / name
            path.write_text(
                STAND_IN.format(python=sys.executable, queue=str(queue), max_array=max_array, max_jobs=max_jobs)
            )
            path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
        return queue

    return make
