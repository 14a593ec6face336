"""The commands and the spec that docs/cluster.md shows exist as they stand there. What they do is tested beside: test_slurm.py, ..."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from tests_support.commands import context

from sampling.campaign import slurm_script
from sampling.campaign.engines import ENGINES, get
from sampling.campaign.slurm_settings import SlurmSettings
from sampling.campaign.store import STATES

TEXT = (Path(__file__).parents[2] / "docs" / "cluster.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    (saddlecheck .*?)(?:\s+#.*)?$", TEXT, re.MULTILINE)


def test_there_are_commands() -> None:
    assert len(COMMANDS) >= 8


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_is_taken_as_it_stands(line: str) -> None:
    found = context(shlex.split(line))
    engine = found.params.get("engine")
    if engine is not None:
        get(engine.replace("HOST", "127.0.0.1"))


def test_a_misspelt_command_would_be_found() -> None:
    with pytest.raises(Exception, match="engin"):
        context(["saddlecheck", "campaign", "run", "SPEC.toml", "--engin", "slurm"])


def test_the_spec_is_one() -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    settings = SlurmSettings.model_validate(tomllib.loads(block)["slurm"])
    assert "--gres=gpu:a100:1" in "\n".join(settings.resources("big").directives())
    # Every setting is shown or is one that a reader can do without.
    shown = set(re.findall(r"^(\w+) = ", block, re.MULTILINE))
    assert set(SlurmSettings.model_fields) - shown == {"qos", "constraint", "cpus", "cells_per_job", "classes"}


def test_engines_states_and_numbers() -> None:
    assert {name.partition(":")[0] for name in re.findall(r"^\| `--engine (\S+)`", TEXT, re.MULTILINE)} == set(ENGINES)
    assert set(re.findall(r"^\| ([a-z-]+) \| ", TEXT.partition("## Reading")[2], re.MULTILINE)) - {"state"} == set(
        STATES
    )
    assert slurm_script.FILE in TEXT
    from sampling.campaign import claims, precision, worker

    assert f"status {worker.NO_ROOM}" in TEXT
    assert f"every {precision.CHECKPOINT_SECONDS:.0f} s" in TEXT
    assert claims.EXPIRY == 120.0  # "two minutes"
