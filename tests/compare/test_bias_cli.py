"""`saddlecheck bias`: the table it prints is the study's, its bias is seen against the truth, and bad input is named."""

import json

import numpy as np
import pytest

# Four patterns of digits and three units at T = 1: a step of 0.2 inflates the readout's variance by about a tenth.
SMALL = ["--P", 4, "--N1", 3, "--T", 1, "--step", 0.2, "--halvings", 1, "--draws", 150, "--warmup", 50, "--chains", 60]


def test_the_bias_of_a_large_step_is_told_and_halves(invoke):
    result = invoke("bias", *SMALL, "--json", "--quiet")
    assert result.exit_code in (0, 3), result.output
    printed = json.loads(result.stdout)
    assert printed["steps"] == [0.2, 0.1]
    rows = {(row["scalar"], row["step"]): row for row in printed["table"]}
    assert {scalar for scalar, _ in rows} == {"d2", "Q", "residual", "fbar_a"}
    coarse, fine, limit = (rows["Q", step] for step in (0.2, 0.1, 0.0))
    assert coarse["bias"] > 4 * coarse["bias_se"], "the Euler scheme inflates |v|^2, and that is seen"
    assert coarse["bias"] == pytest.approx(coarse["mean"] - printed["truth"]["Q"][0])
    assert limit["mean"] == pytest.approx(2 * fine["mean"] - coarse["mean"])
    assert abs(limit["bias"]) < coarse["bias"]
    assert np.isfinite([row["bias_se"] for row in rows.values()]).all()


def test_without_the_truth_the_table_is_against_the_extrapolation(invoke):
    result = invoke("bias", *SMALL[:-6], "--draws", 20, "--warmup", 10, "--chains", 4, "--no-truth")
    assert result.exit_code == 3, "twenty draws have not converged"
    assert "→ 0" in result.stdout
    assert "<D^2> is off by" in result.stdout
    assert "did not converge" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--P", 4, "--N1", "2,3"], "one problem at a time"),
        (["--P", 4, "--N1", 2, "--halvings", 0], "halvings = 0"),
    ],
)
def test_bad_input_ends_with_one_line(invoke, arguments, message):
    result = invoke("bias", *arguments, "--no-truth", "--quiet")
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
