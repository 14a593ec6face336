"""The command line as a user or a script meets it: output, JSON, exit status, bad input, interruption."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
LEVELS = {"infinite_width", "eq4", "eq3", "eq3_q_averaged", "first_order"}
OUTCOMES = {"agrees", "differs", "inconclusive"}


def test_help_does_not_load_what_is_slow():
    heavy = ["torch", "jax", "arviz", "scipy", "pandas", "matplotlib", "xarray"]
    code = f"import sys, compare.cli; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("command", ["", "verify", "predict", "sample", "report", "check-sampler", "data"])
def test_help_of_every_command_shows_an_example_or_where_to_start(invoke, command):
    result = invoke(*([command] if command else []), "--help")
    assert result.exit_code == 0
    assert "saddlecheck" in result.stdout or command == "data"


def test_version_and_no_command(invoke):
    assert invoke("--version").stdout.startswith("saddlecheck ")
    assert invoke().exit_code == 2


def test_predict_prints_one_json_object_with_a_cell_for_each_width_and_temperature(invoke):
    result = invoke("predict", "--P", 20, "--N1", "10,20", "--T", "0.1,1", "--no-first-order", "--json")
    assert result.exit_code == 0
    printed = json.loads(result.stdout)
    assert printed["problem"]["N1"] == [10, 20]
    assert printed["problem"]["T"] == [0.1, 1.0]
    assert [(c["N1"], c["T"]) for c in printed["cells"]] == [(10, 0.1), (10, 1.0), (20, 0.1), (20, 1.0)]
    for cell in printed["cells"]:
        assert {"problem", "Qbar", "prior", "delta1", "delta2", "fbar_a", "levels", "weights"} <= cell.keys()
        assert set(cell["levels"]) == LEVELS - {"first_order"}
        weights = {"lambda1_trace", "lambda2_trace", "lambda1_frobenius", "lambda2_frobenius"}
        assert set(cell["weights"]) == weights
        assert cell["levels"]["eq4"] == pytest.approx(cell["prior"] + cell["delta2"], rel=1e-12)
        assert cell["levels"]["eq3"] == pytest.approx(cell["prior"] - cell["delta1"] + cell["delta2"], rel=1e-12)


def test_predict_has_level_4_with_its_error_and_alpha_in_place_of_N1(invoke):
    result = invoke("predict", "--P", 20, "--alpha", 2, "--T", 1, "--json", "--seed", 3)
    cell = json.loads(result.stdout)["cells"][0]
    assert cell["N1"] == 10
    fourth = cell["levels"]["first_order"]
    assert fourth["se"] > 0
    assert abs(fourth["value"] - cell["levels"]["eq3"]) < 0.5 * cell["delta2"]


def test_predict_prints_a_table_for_people(invoke):
    result = invoke("predict", "--P", 20, "--N1", 10, "--T", 1, "--no-first-order")
    assert result.exit_code == 0
    assert "Eq. (4)" in result.stdout


def test_verify_prints_one_json_object_as_specified(job):
    _, result, printed = job
    assert result.stdout.count("\n}") == 1
    assert len(printed["cells"]) == 3
    for cell in printed["cells"]:
        measured = cell["measured"]
        assert {"mean", "mcse", "ess", "rhat"} <= measured["d2"].keys()
        assert {"mean", "mcse", "ess", "rhat"} <= measured["Q"].keys()
        assert set(measured["delta1"]) == set(measured["delta2"]) == {"mean", "se"}
        parts = ("delta1_dropped", "q_fluctuations", "gaussian_closure", "remainder")
        total = sum(cell["budget"][name]["value"] for name in parts)
        assert total == pytest.approx(measured["d2"]["mean"] - cell["levels"]["eq4"], abs=1e-10)
        assert set(cell["verdicts"]) == LEVELS
        for verdict in cell["verdicts"].values():
            assert verdict["outcome"] in OUTCOMES
            assert {"z", "relative_to_effect", "power"} <= verdict.keys()
        # Nothing is learnt at infinite width: the level must be seen to differ by the whole effect.
        assert cell["verdicts"]["infinite_width"]["outcome"] == "differs"
        assert cell["verdicts"]["infinite_width"]["relative_to_effect"] == pytest.approx(1.0)
    assert json.loads(json.dumps(printed, allow_nan=False)) == printed


def test_progress_goes_to_stderr_and_quiet_silences_it(invoke, job, tmp_path):
    _, result, _ = job
    assert "warm-up" in result.stderr
    assert "left" in result.stderr
    quiet = invoke("predict", "--P", 20, "--N1", 10, "--T", 1, "--quiet", "--json")
    assert quiet.stderr == ""


def test_report_again_from_stored_runs_gives_the_same_numbers(invoke, job):
    folder, _, printed = job
    result = invoke("report", folder, "--json")
    assert result.exit_code == 0, result.output
    again = json.loads(result.stdout)
    for key in ("problem", "cells", "peak", "runs", "verdict", "settings"):
        assert again[key] == printed[key], key


def test_chains_too_short_exit_3_write_the_report_and_give_no_verdict(invoke, tmp_path):
    out = tmp_path / "short"
    flags = ["--P", 10, "--N1", 5, "--T", 1, "--chains", 4, "--draws", 20, "--warmup", 20, "--no-first-order"]
    result = invoke("verify", *flags, "--out", out, "--json")
    assert result.exit_code == 3
    printed = json.loads(result.stdout)
    assert printed["status"] == "inconclusive"
    cell = printed["cells"][0]
    assert cell["reasons"]
    assert {verdict["outcome"] for verdict in cell["verdicts"].values()} == {"inconclusive"}
    assert "inconclusive" in (out / "report.html").read_text()


def test_sample_stores_runs_that_report_takes_up(invoke, tmp_path):
    out = tmp_path / "chains"
    flags = ["--data", "gaussian:N0=10", "--P", 10, "--N1", 5, "--T", 1, "--chains", 8, "--draws", 150]
    result = invoke("sample", *flags, "--out", out, "--json")
    assert result.exit_code == 0, result.output
    cell = json.loads(result.stdout)["cells"][0]
    assert cell["measured"]["d2"]["se"] > 0
    assert Path(cell["run"]).is_file()
    assert not (out / "report.html").exists()
    assert invoke("report", out, "--quiet").exit_code == 0
    assert (out / "report.html").is_file()


def test_a_biased_sampler_gives_no_verdict_and_is_marked(invoke, tmp_path):
    out = tmp_path / "biased"
    flags = ["--P", 10, "--N1", 5, "--T", 1, "--chains", 4, "--draws", 100, "--sampler", "langevin", "--no-first-order"]
    result = invoke("verify", *flags, "--out", out, "--json")
    printed = json.loads(result.stdout)
    assert printed["cells"][0]["status"] == "biased"
    assert {v["outcome"] for v in printed["cells"][0]["verdicts"].values()} == {"inconclusive"}
    assert "(biased)" in (out / "report.html").read_text()


def test_data_lists_the_sets(invoke):
    names = {one["name"] for one in json.loads(invoke("data", "--json").stdout)["data"]}
    assert {"digits", "fashion-mnist", "mnist", "cifar10", "gaussian"} <= names
    assert "digits" in invoke("data").stdout


def test_check_sampler_passes_a_right_one_and_exits_1_on_a_biased_one(invoke):
    result = invoke("check-sampler", "hmc", "--checks", "density", "--controls", "--json")
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert printed["passed"]
    assert [one["name"] for one in printed["checks"]] == ["density", "density control"]
    biased = invoke("check-sampler", "langevin", "--checks", "linear", "--effort", "0.2", "--quiet")
    assert biased.exit_code == 1
    assert "failed linear" in biased.stdout


def test_ctrl_c_stops_at_a_checkpoint_and_the_same_command_goes_on(invoke, tmp_path):
    """A real process gets a real SIGINT while it samples; the second call resumes and ends as one without interruption."""
    flags = ["--P", "8", "--N1", "4", "--T", "0.3", "--chains", "4", "--warmup", "50", "--draws", "600", "--json"]
    out = tmp_path / "out"
    command = [sys.executable, "-m", "compare.cli", "sample", *flags, "--out", str(out)]
    stopped = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for line in stopped.stderr:
        if "sampling" in line:
            stopped.send_signal(signal.SIGINT)
            break
    printed, said = stopped.communicate(timeout=120)
    assert stopped.returncode == 130
    assert printed == ""
    assert "stopped: interrupted after" in said
    assert "run the same again to resume" in said
    assert list((out / "runs").glob("*.checkpoint"))
    resumed = json.loads(invoke("sample", *flags, "--out", out).stdout)
    straight = json.loads(invoke("sample", *flags, "--out", tmp_path / "straight").stdout)
    assert resumed["cells"][0]["measured"] == straight["cells"][0]["measured"]
    assert not list((out / "runs").glob("*.checkpoint"))


NPZ = {
    "nan.npz": {"X": np.array([[np.nan, 1.0], [2.0, 3.0]]), "y": np.array([1.0, -1.0])},
    "one.npz": {"X": np.eye(3), "y": np.ones(3)},
}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["predict", "--data", "digitz"], "digits"),
        (["predict", "--data", "nosuch/file.npz"], "file.npz"),
        (["predict", "--data", "{folder}/nan.npz"], "nan"),
        (["predict", "--data", "{folder}/one.npz"], "class"),
        (["predict", "--T", "warm"], "--T"),
        (["predict", "--T", "-1"], "T = -1"),
        (["predict", "--N1", "ten"], "--N1"),
        (["predict", "--N1", "10", "--alpha", "1"], "--alpha"),
        (["predict", "--P", "100000"], "P = 100000"),
        (["predict", "--P", "1"], "--P"),
        (["predict", "--P", "x"], "--P"),
        (["predict", "--activation", "relu"], "relu"),
        (["predict", "--lambda0", "0"], "lambda0"),
        (["predict", "--labels", "wrong"], "labels"),
        (["predict", "--classes", "cats/dogs"], "cats"),
        (["predict", "--nosuch"], "--nosuch"),
        (["frobnicate"], "frobnicate"),
        (["verify", "--T", "0"], "T = 0"),
        (["verify", "--sampler", "hcm"], "hmc"),
        (["verify", "--dtype", "float16"], "float16"),
        (["verify", "--device", "abacus"], "abacus"),
        (["verify", "--margin", "2"], "margin"),
        (["verify", "--starts", "hott"], "hot"),
        (["verify", "--target", "-1"], "target"),
        (["verify", "--budget", "0"], "budget"),
        (["verify", "--draws", "-5"], "draws"),
        (["verify", "--chains", "0"], "chains"),
        (["report", "{folder}"], "data.npz"),
        (["report"], "DIR"),
    ],
)
def test_bad_input_is_one_line_on_stderr_and_exit_2(invoke, tmp_path, arguments, named):
    for name, arrays in NPZ.items():
        np.savez(tmp_path / name, **arrays)
    arguments = [text.format(folder=tmp_path) for text in arguments]
    more = ["--out", tmp_path / "out", "--json"] if arguments[0] == "verify" else []
    result = invoke(*arguments, *more)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")
    assert named in lines[0]
    assert not (tmp_path / "out").exists()  # refused before anything ran


def test_damaged_or_foreign_files_are_refused(invoke, job, tmp_path):
    import shutil

    folder, _, _ = job
    broken = tmp_path / "broken"
    shutil.copytree(folder, broken)
    run = next((broken / "runs").glob("*.nc"))
    run.write_bytes(run.read_bytes()[:-200])
    assert invoke("report", broken).exit_code == 2

    foreign = tmp_path / "foreign"
    shutil.copytree(folder, foreign)
    with np.load(foreign / "data.npz") as stored:
        arrays = dict(stored)
    arrays["X"] = arrays["X"] + 1e-9
    np.savez(foreign / "data.npz", **arrays)
    result = invoke("report", foreign)
    assert result.exit_code == 2
    assert "other data" in result.stderr
