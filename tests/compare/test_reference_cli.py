"""`saddlecheck predict --json` against the reference numbers, which an implementation that the project does not have made."""

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from compare.cli import app

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared"
DATA = Path(os.environ.get("SADDLECHECK_DATA", SHARED / "data"))
REFERENCE = DATA.parent / "reference"

CASES = {
    "cifar10_first1000": "--data cifar10 --classes even/odd --P 1000",
    "mnist01_first1000": "--data mnist --classes 0/1 --P 1000",
    "digits_even_odd": "--data digits --classes even/odd --P 100",
    "digits_0_1": "--data digits --classes 0/1 --P 100",
}
pytestmark = pytest.mark.skipif(
    not REFERENCE.is_dir(),
    reason="no reference numbers: set SADDLECHECK_DATA to a folder that has ../reference beside it",
)


def _list(values):
    return ",".join(f"{value!r}" for value in dict.fromkeys(values))


@pytest.mark.parametrize("name", CASES)
def test_every_row_of_a_reference_file_comes_out_of_the_command_line(name, monkeypatch):
    monkeypatch.setenv("SADDLECHECK_DATA", str(DATA))
    cases = json.loads((REFERENCE / f"{name}.json").read_text())["cases"]
    assert cases
    one = cases[0]
    command = [*CASES[name].split(), "--N1", _list(c["N1"] for c in cases), "--T", _list(c["T"] for c in cases)]
    command += ["--lambda0", str(one["lambda0"]), "--lambda1", str(one["lambda1"]), "--activation", one["activation"]]
    result = CliRunner().invoke(app, ["predict", *command, "--no-first-order", "--json"])
    assert result.exit_code == 0, result.stderr
    printed = json.loads(result.stdout)
    cells = {(cell["N1"], cell["T"]): cell for cell in printed["cells"]}
    for case in cases:
        cell = cells[case["N1"], case["T"]]
        assert (cell["problem"]["P"], cell["problem"]["N0"]) == (case["P"], case["N0"])

        def same(value, wanted):
            assert value == pytest.approx(wanted, rel=1e-8, abs=0)

        for key in ("Qbar", "prior", "delta1", "delta2", "fbar_a", "yKy_over_P"):
            same(cell[key], case[key])
        same(cell["levels"]["eq4"], case["eq4"])
        same(cell["levels"]["eq3"], case["eq3"])
        same(cell["levels"]["infinite_width"], case["prior"])
        same(cell["levels"]["eq3_q_averaged"], case["q_averaged"]["level3"])
        for key, value in case["q_averaged"].items():
            same(cell["q_averaged"][key], value)
        for matrix in ("Lambda1", "Lambda2"):
            for what in ("trace", "frobenius"):
                same(cell["weights"][f"{matrix.lower()}_{what}"], case[matrix][what])
    assert len(cells) == len(cases)


def test_a_users_file_reproduces_the_linear_reference():
    """gaussian_small: 30 and 20 labels, lambda0 and lambda1 not 1, linear sigma, inputs used as they are."""
    cases = json.loads((REFERENCE / "gaussian_small.json").read_text())["cases"]
    for activation in {case["activation"] for case in cases}:
        some = [case for case in cases if case["activation"] == activation]
        for lambdas in {(case["lambda0"], case["lambda1"]) for case in some}:
            rows = [case for case in some if (case["lambda0"], case["lambda1"]) == lambdas]
            command = ["--data", str(REFERENCE / "gaussian_small.npz"), "--standardise", "none"]
            command += ["--lambda0", str(lambdas[0]), "--lambda1", str(lambdas[1]), "--activation", activation]
            command += ["--N1", _list(c["N1"] for c in rows), "--T", _list(c["T"] for c in rows)]
            result = CliRunner().invoke(app, ["predict", *command, "--no-first-order", "--json"])
            assert result.exit_code == 0, result.stderr
            cells = {(cell["N1"], cell["T"]): cell for cell in json.loads(result.stdout)["cells"]}
            for case in rows:
                cell = cells[case["N1"], case["T"]]
                for key in ("Qbar", "prior", "delta1", "delta2", "fbar_a"):
                    assert cell[key] == pytest.approx(case[key], rel=1e-8, abs=0)
                assert cell["q_averaged"]["level3"] == pytest.approx(case["q_averaged"]["level3"], rel=1e-8, abs=0)
