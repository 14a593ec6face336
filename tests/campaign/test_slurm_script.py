"""The batch script of the Slurm engine, run as a batch step would: checkpoint on a signal, requeue of what was cut short, and no more."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from sampling.campaign import slurm_script


def run_script(
    folder: Path, worker: Sequence[str], signals: Sequence[str], restarts: int = 0
) -> tuple[int, list[str], str]:
    """Run a rendered script as Slurm's batch step would; returns its status, the calls of scontrol, and what it printed."""
    values = dict.fromkeys(slurm_script.PLACEHOLDER.findall(slurm_script.TEMPLATE), "")
    values |= {"max_requeues": "3", "try_again": "75", "worker": slurm_script.command(worker), "grace_seconds": "60"}
    script = folder / "script.sh"
    script.write_text(slurm_script.render(slurm_script.TEMPLATE, values))
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    (programs / "scontrol").write_text(f'#!/bin/sh\necho "$@" >> {shlex.quote(str(folder / "calls"))}\n')
    (programs / "scontrol").chmod(0o755)
    environment = os.environ | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "SLURM_ARRAY_JOB_ID": "12",
        "SLURM_ARRAY_TASK_ID": "3",
        "SLURM_RESTART_COUNT": str(restarts),
    }
    with subprocess.Popen(
        ["bash", str(script)], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as job:
        assert job.stdout is not None
        said = []
        for line in job.stdout:
            said.append(line)
            if line.startswith("ready"):
                for name in signals:
                    subprocess.run(["bash", "-c", f"kill -s {name} {job.pid}"], check=True)
        status = job.wait(timeout=20)
    calls = (folder / "calls").read_text().splitlines() if (folder / "calls").exists() else []
    return status, calls, "".join(said)


STOPS = "trap 'sleep 0.3; echo checkpoint; exit 75' USR1; echo ready; while :; do sleep 0.05; done"


@pytest.mark.parametrize("signals", [["USR1"], ["TERM"], ["USR1", "TERM", "USR1"]])
def test_the_script_asks_for_a_checkpoint_and_requeues_itself(signals: list[str], tmp_path: Path) -> None:
    status, calls, said = run_script(tmp_path, ["bash", "-c", STOPS], signals)
    assert "checkpoint" in said
    assert status == 0
    assert calls == ["requeue 12_3"]


@pytest.mark.parametrize(
    ("worker", "status", "requeued"),
    [("exit 0", 0, False), ("exit 3", 3, False), ("exit 75", 0, True), ("kill -KILL $$", 0, True)],
)
def test_the_script_requeues_what_was_cut_short_and_nothing_else(worker, status, requeued, tmp_path: Path) -> None:
    found, calls, _ = run_script(tmp_path, ["bash", "-c", worker], [])
    assert found == status
    assert calls == (["requeue 12_3"] if requeued else [])


def test_the_script_does_not_requeue_for_ever(tmp_path: Path) -> None:
    status, calls, said = run_script(tmp_path, ["bash", "-c", "exit 75"], [], restarts=3)
    assert status == 75
    assert calls == []
    assert re.search("run the campaign again", said)
