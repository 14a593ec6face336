"""One small real job through the command line, shared by the tests of its output."""

import json

import pytest
from typer.testing import CliRunner

from compare.cli import app

# Digits, 20 images: small enough for seconds, and with a real difference between the levels.
SMALL = ["--data", "digits", "--P", "20", "--N1", "10", "--T", "0.1,0.3,1", "--chains", "8", "--draws", "200"]


@pytest.fixture(scope="session")
def invoke():
    """Run the command line in this process: invoke("verify", ...) -> result with exit_code, stdout, stderr."""

    def call(*arguments):
        return CliRunner().invoke(app, [str(one) for one in arguments])

    return call


@pytest.fixture(scope="session")
def job(tmp_path_factory, invoke):
    """(folder, result, printed JSON) of `verify` on the small problem."""
    folder = tmp_path_factory.mktemp("job") / "out"
    result = invoke("verify", *SMALL, "--out", folder, "--json")
    assert result.exit_code == 0, result.output
    return folder, result, json.loads(result.stdout)


@pytest.fixture(scope="session")
def small():
    """The flags of the small problem."""
    return list(SMALL)


@pytest.fixture(scope="session")
def stored():
    """The baseline of `saddlecheck regress` that is checked in."""
    from compare.regress import baseline

    return baseline.read(baseline.DEFAULT)
