"""The batch script of a campaign: a readable template that the user may edit, filled in for each submission."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from data.errors import InputError
from sampling.campaign.small import write_once

FILE = "slurm.sh"
PLACEHOLDER = re.compile(r"\{\{ *([a-z_]+) *\}\}")
REQUIRED = ("job_name", "array", "log", "worker")

TEMPLATE = r"""#!/bin/bash
# The Slurm script of a saddlecheck campaign. Edit it as your site needs (modules, partitions, mail): this copy is kept and used for
# every later submission; delete it to get a fresh one. Words in double braces are filled in; what was submitted is kept under slurm/.
#SBATCH --job-name={{ job_name }}
#SBATCH --comment=saddlecheck
#SBATCH --array={{ array }}
{{ resources }}
#SBATCH --output={{ log }}
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --signal=B:USR1@{{ grace_seconds }}

# module load python        # whatever makes the worker's interpreter run on a compute node

export OMP_NUM_THREADS="${SLURM_CPUS_PER_TASK:-1}" MKL_NUM_THREADS="${SLURM_CPUS_PER_TASK:-1}"
element="${SLURM_ARRAY_JOB_ID}_${SLURM_ARRAY_TASK_ID}"
restarts="${SLURM_RESTART_COUNT:-0}"
echo "$(date -u +%FT%TZ) $element on $(hostname), restart $restarts"

# The worker does the cells of one line of a file. It is idempotent: cells that have their result are left alone, an interrupted one
# goes on from its checkpoint. Before its time limit (USR1) and when it is preempted (TERM) it is told to write that checkpoint.
caught=
worker=
tell() {
  caught=1
  echo "$(date -u +%FT%TZ) $element: told to stop ($1)"
  if [ -n "$worker" ]; then kill -s USR1 "$worker" 2>/dev/null; fi
}
trap 'tell USR1' USR1
trap 'tell TERM' TERM
{{ worker }} "$SLURM_ARRAY_TASK_ID" &
worker=$!
if [ -n "$caught" ]; then kill -s USR1 "$worker" 2>/dev/null; fi
# A signal ends `wait` early: wait again for as long as one came.
while caught=; wait "$worker"; status=$?; [ -n "$caught" ]; do :; done
echo "$(date -u +%FT%TZ) $element: worker ended with status $status"

# {{ try_again }}: stopped with a checkpoint; above 128: killed. Both go on where they were; the store counts the tries of a cell.
if [ "$status" -eq {{ try_again }} ] || [ "$status" -gt 128 ]; then
  if [ "$restarts" -ge {{ max_requeues }} ]; then
    echo "$element: restarted $restarts times already; run the campaign again to go on" >&2
  elif scontrol requeue "$element"; then
    exit 0
  else
    # A preempted job has been requeued by Slurm itself; where a site cancels instead, run the campaign again.
    echo "$element: not requeued from here" >&2
  fi
fi
exit "$status"
"""


def template(folder: Path) -> str:
    """The template of a campaign: the user's `slurm.sh`, written once from the default.

    Raises InputError for a file that lacks what no submission can do without, or has an unknown word in double braces.
    """
    path = folder / FILE
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_once(path, TEMPLATE)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not readable ({error}); delete it to get a fresh one") from error
    _check(path, text)
    return text


def _check(path: Path, text: str) -> None:
    used = PLACEHOLDER.findall(text)
    known = set(PLACEHOLDER.findall(TEMPLATE))
    if not text.startswith("#!"):
        raise InputError(
            f"{path}: the first line must name the shell (#!/bin/bash); delete the file to get a fresh one"
        )
    for name in used:
        if name not in known:
            raise InputError(f"{path}: unknown word {{{{ {name} }}}}; known are {', '.join(sorted(known))}")
    for name in REQUIRED:
        if name not in used:
            raise InputError(f"{path}: it must contain {{{{ {name} }}}}; delete the file to get a fresh one")


def render(text: str, values: Mapping[str, str]) -> str:
    """The template with every word in double braces replaced. Raises KeyError for one without a value."""
    return PLACEHOLDER.sub(lambda found: values[found.group(1)], text)


def command(words: Sequence[str]) -> str:
    """One shell command line, every word quoted as the shell needs. Raises InputError for a word with a line break."""
    for word in words:
        if "\n" in word or "\r" in word or "\0" in word:
            raise InputError(f"{word!r}: a path with a line break cannot stand in a batch script; use another folder")
    return shlex.join(words)
