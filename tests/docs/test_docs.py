"""The documentation: it builds without a warning, its commands are commands, the guide's run, the tutorial runs, ArviZ takes a run."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from tests_support.commands import context
from typer.main import get_command
from typer.testing import CliRunner

from compare.cli import app

ROOT = Path(__file__).parents[2]
SHOWN = re.compile(r"^    (saddlecheck [^\n]*?)(?:[ ]{2,}[^\n]*)?$", re.MULTILINE)
GUIDE = SHOWN.findall((ROOT / "docs" / "guide.md").read_text(encoding="utf-8"))


def shown():
    """Commands of README and docs, two on a line apart."""
    found = []
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))):
        for line in re.findall(r"^    (saddlecheck [^\n]*)$", path.read_text(encoding="utf-8"), re.MULTILINE):
            for part in re.split(r"\s{2,}(?=saddlecheck )", line):
                found.append((path.name, re.split(r"\s{2,}", part.split(" #")[0])[0].strip()))
    return found


def epilogs():
    """(command, example) of every `--help`."""
    found = []

    def walk(command, name):
        for key, one in getattr(command, "commands", {}).items():
            walk(one, f"{name} {key}")
        examples = re.findall(r"\[bold\](saddlecheck .*?)\[/bold\]", command.epilog or "")
        found.extend((name, example) for example in examples)
        if not getattr(command, "commands", None):
            leaves.append((name, command))

    leaves = []
    walk(get_command(app), "saddlecheck")
    return found, leaves


@pytest.mark.parametrize(("page", "line"), shown())
def test_a_command_in_the_documents_is_taken_as_it_stands(page, line):
    context(shlex.split(line))


@pytest.mark.parametrize(("name", "line"), epilogs()[0])
def test_an_example_of_help_is_taken_as_it_stands(name, line):
    context(shlex.split(line))


def test_a_misspelt_command_would_be_found():
    assert len(shown()) > 12
    with pytest.raises(Exception, match="nosuch"):
        context(["saddlecheck", "verify", "--nosuch", "1"])


def test_the_commands_of_the_guide_run_as_they_stand(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(GUIDE) == 5
    for line in GUIDE:
        result = CliRunner().invoke(app, shlex.split(line)[1:])
        assert result.exit_code in (0, 3), (line, result.output)
    assert (tmp_path / "OUT" / "report.html").exists()
    assert (tmp_path / "OUT" / "figures.html").exists()


def test_the_pages_and_the_reference_build_without_a_warning(tmp_path):
    pytest.importorskip("sphinx", reason="the extra `docs` is not installed")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "-b",
        "html",
        "-d",
        str(tmp_path / "trees"),
        str(ROOT / "docs"),
        str(tmp_path / "html"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    reference = (tmp_path / "html" / "api.html").read_text(encoding="utf-8")
    for name in ("data.load", "theory.predict.predict", "sampling.run", "compare.verify"):
        assert f'id="{name}"' in reference


def test_the_tutorial_runs():
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs" / "tutorial.py")], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert "Delta1" in done.stdout
    assert "gaussian_closure" in done.stdout or "delta1_dropped" in done.stdout


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_arviz_takes_a_run():
    import arviz
    import matplotlib

    import data
    import sampling
    from data.problem import Problem

    matplotlib.use("Agg")
    run = sampling.run(Problem(data.load("digits", P=12), N1=6, T=1.0), chains=4, draws=50, warmup=50)
    found = run.inference_data()
    summary = arviz.summary(found, var_names=["d2"])
    assert summary.loc["d2", "mean"] == pytest.approx(run.series["d2"].mean(), abs=1e-3)
    assert arviz.plot_trace(found, var_names=["d2"]).shape == (1, 2)


def test_shell_completion_is_there():
    environment = {"_SADDLECHECK_COMPLETE": "complete_bash", "COMP_WORDS": "saddlecheck ver", "COMP_CWORD": "1"}
    import os

    done = subprocess.run(
        [str(Path(sys.executable).with_name("saddlecheck"))],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert "verify" in done.stdout.split()
