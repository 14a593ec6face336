"""Slurm's own commands, each asked for one thing: submit a script, list the queue, the largest array; every word an argument, no shell."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from data.errors import InputError

TIMEOUT = 120.0  # a busy controller answers late
DEFAULT_MAX_ARRAY = 1001


class SlurmError(InputError):
    """A Slurm command failed; the message carries what it said."""


@dataclass(frozen=True)
class Element:
    """One array element that Slurm still holds: pending (and why), running or about to end."""

    job: str
    index: int
    name: str
    state: str
    reason: str = ""


def available() -> bool:
    """Whether Slurm's commands are on the PATH."""
    return all(shutil.which(name) for name in ("sbatch", "squeue", "scontrol"))


def require() -> None:
    """Raises InputError where this machine has no Slurm commands."""
    if not available():
        raise InputError(
            "engine slurm: sbatch, squeue and scontrol are not on the PATH; run this on a login node of the cluster, or use "
            "--engine local"
        )


def submit(script: Path, *, folder: Path) -> str:
    """Hand a script to sbatch, in the folder; returns the job's number. Raises SlurmError with what sbatch said."""
    said = _ask("sbatch", "--parsable", f"--chdir={folder}", str(script)).strip()
    number = said.splitlines()[-1].split(";")[0] if said else ""
    if not number.isdigit():
        raise SlurmError(f"sbatch answered {said!r} where a job number was expected")
    return number


def elements(prefix: str) -> list[Element]:
    """This user's array elements whose job name begins with `prefix`. Raises SlurmError where the queue cannot be read."""
    said = _ask("squeue", "--array", "--noheader", f"--user={os.getuid()}", "--format=%F|%K|%T|%r|%j")
    found = []
    for line in said.splitlines():
        job, index, state, reason, name = (word.strip() for word in line.split("|", 4))
        if name.startswith(prefix):
            found += [Element(job, one, name, state, reason) for one in _indices(index)]
    return found


def cancel(jobs: Iterable[str]) -> None:
    """End jobs or array elements; those that have ended already are no error."""
    for job in jobs:
        _ask("scancel", "--quiet", job)


def max_array() -> int:
    """The largest number of elements of one array here (MaxArraySize)."""
    found = re.search(r"^MaxArraySize\s*=\s*([0-9]+)", _ask("scontrol", "show", "config"), re.MULTILINE)
    return max(1, int(found.group(1)) if found else DEFAULT_MAX_ARRAY)


def _indices(text: str) -> list[int]:
    """`7`, or what squeue prints for a pending array that it does not expand: `0-3,7%2`."""
    found: list[int] = []
    for part in text.partition("%")[0].split(","):
        first, _, last = part.partition("-")
        if first.isdigit():
            found += range(int(first), int(last) + 1 if last.isdigit() else int(first) + 1)
    return found


def _ask(*command: str) -> str:
    # SQUEUE_* changes what squeue prints; SLURM_* is there when this runs inside a job, whose shape and restarts must not pass to
    # the jobs submitted from it. SBATCH_* stays: it is where users keep their account.
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("SQUEUE_", "SCANCEL_", "SLURM_")) or name in ("SLURM_CONF", "SLURM_CLUSTERS")
    }
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SlurmError(f"{command[0]}: {error}") from error
    if done.returncode:
        raise SlurmError(f"{command[0]}: {' '.join(done.stderr.split()) or f'exit status {done.returncode}'}")
    return done.stdout
