"""A Run that does not fit on the disk: an OSError, the old file whole, nothing left behind, and the process lives on.

The limit is RLIMIT_FSIZE, which needs no rights and no disk of its own; a real full disk is in tests/campaign/test_slurm.py.
HDF5 writing to the file itself raised as well, and crashed the process when its objects were freed: hence a process of its own here.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sampling
from data.problem import Dataset, Problem

SCRIPT = """
import gc, resource, sys
from sampling.diagnostics import GATES
from sampling.run import Run
run = Run.load(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    run.save(sys.argv[1])
except OSError as error:
    print("OSError", error.errno)
del run
gc.collect()
print("alive")
"""


def test_a_run_that_does_not_fit(tmp_path: Path) -> None:
    pytest.importorskip("resource", reason="no file size limits on this system")
    y = np.array([1.0, 1.0, -1.0, -1.0])
    problem = Problem(Dataset(np.random.default_rng(0).normal(size=(4, 3)), y, y), 3, 1.0)
    run = sampling.run(problem, chains=4, warmup=10, draws=400, threads=1)
    path = run.save(tmp_path / "run.nc")
    assert path.stat().st_size > 20_000
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(path)], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == ["OSError 27", "alive"], done.stderr[-2000:]
    assert done.returncode == 0
    assert [one.name for one in tmp_path.iterdir()] == ["run.nc"]
    assert sampling.Run.load(path).checksum() == run.checksum()
