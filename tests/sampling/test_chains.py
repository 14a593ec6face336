"""The run loop: kill and resume, Ctrl-C, targets and budgets, constant memory, bad input, storage."""

import json
import math
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
import torch

import sampling
from data.errors import InputError
from data.problem import Dataset, Problem
from sampling.run import Run
from sampling.series import SeriesStore

ROOT = Path(__file__).resolve().parents[2]


def problem(P=8, N0=5, N1=6, T=0.3, **changes):
    rng = np.random.default_rng(0)
    classes = np.where(np.arange(P) < P // 2, 1.0, -1.0)
    return Problem(Dataset(rng.normal(size=(P, N0)), classes, classes, name="test"), N1, T, **changes)


def small(**changes):
    return sampling.run(problem(), **({"chains": 4, "warmup": 30, "draws": 40, "threads": 1} | changes))


def equal(left, right):
    for group in ("series", "sums"):
        for name, value in getattr(left, group).items():
            np.testing.assert_array_equal(value, getattr(right, group)[name], err_msg=name)


def test_the_same_seed_gives_the_same_run_and_another_does_not():
    first, second, other = small(), small(), small(seed=1)
    equal(first, second)
    assert not np.array_equal(first.series["d2"], other.series["d2"])
    assert first.starts == ["prior", "aligned", "prior", "aligned"]
    assert first.series["d2"].shape == (4, 40)
    assert first.sums["ww"].shape == (4, 5, 5)
    assert first.basis.shape == (5, 5)
    np.testing.assert_allclose(first.basis.T @ first.basis, np.eye(5), atol=1e-12)


# Kills the process for good from inside the progress callback, at the given phase and count.
CHILD = """
import os, signal, sys
sys.path.insert(0, {root!r})
from tests_chain_problem import problem
import sampling
def progress(event):
    if event["phase"] == {phase!r} and event["done"] >= {done}:
        os.kill(os.getpid(), signal.{signal})
sampling.run(problem(), sampler={sampler!r}, chains=4, warmup=60, draws=100, threads=2, checkpoint={path!r},
             checkpoint_seconds=0.0, progress=progress, temperatures=[0.3, 1.0])
"""


@pytest.fixture
def child(tmp_path):
    """Run the child script; returns a function of (phase, done, signal) that gives its completed process."""
    source = Path(__file__).read_text()
    start, end = source.index("def problem("), source.index("def small(")
    header = "import numpy as np\nfrom data.problem import Dataset, Problem\n\n"
    (tmp_path / "tests_chain_problem.py").write_text(header + source[start:end])

    def run(path, sampler, phase, done, name="SIGKILL"):
        code = textwrap.dedent(CHILD).format(
            root=str(ROOT), phase=phase, done=done, path=str(path), sampler=sampler, signal=name
        )
        environment = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}
        return subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120
        )

    return run


@pytest.mark.parametrize("sampler", ["hmc", "tempering"])
def test_a_killed_run_resumes_to_exactly_the_uninterrupted_result(sampler, tmp_path, child):
    options = {"sampler": sampler, "chains": 4, "warmup": 60, "draws": 100, "threads": 2, "temperatures": [0.3, 1.0]}
    whole = sampling.run(problem(), **options)
    path = tmp_path / "checkpoint.npz"
    for phase, done in (("warmup", 50), ("sample", 25), ("sample", 75)):
        ended = child(path, sampler, phase, done)
        assert ended.returncode == -signal.SIGKILL, ended.stderr
        assert path.exists()
    resumed = sampling.run(problem(), **options, checkpoint=path)
    equal(whole, resumed)
    assert resumed.manifest["resumed"] == 3
    assert not path.exists(), "a finished run leaves no checkpoint"


def test_a_signal_is_heeded_between_steps_and_says_how_to_resume(tmp_path, child):
    path = tmp_path / "checkpoint.npz"
    for name in ("SIGINT", "SIGTERM"):
        ended = child(path, "hmc", "sample", 25, name)
        assert ended.returncode == 1
        assert "Interrupted" in ended.stderr
        assert str(path) in ended.stderr
    whole = sampling.run(problem(), chains=4, warmup=60, draws=100, temperatures=[0.3, 1.0])
    equal(whole, sampling.run(problem(), chains=4, warmup=60, draws=100, temperatures=[0.3, 1.0], checkpoint=path))


def test_a_checkpoint_of_other_settings_or_of_garbage_is_refused(tmp_path):
    path = tmp_path / "c.npz"

    def stop(event):
        if event["phase"] == "sample":
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(sampling.Interrupted, match="run the same again to resume"):
        small(checkpoint=path, progress=stop)
    with pytest.raises(InputError, match="other settings"):
        small(checkpoint=path, seed=5)
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(InputError, match="not a readable checkpoint"):
        small(checkpoint=path)
    with pytest.raises(sampling.Interrupted, match="give a checkpoint path"):
        small(progress=stop)


def test_run_until_a_target_or_a_budget():
    reached = small(draws=None, target=0.05, warmup=100)
    estimate = sampling.assess(reached).table["d2"]
    assert estimate.mcse / estimate.mean <= 0.05
    assert estimate.ess_bulk >= 400
    begun = time.monotonic()
    cut = small(draws=None, target=1e-6, budget_seconds=0.5)
    assert time.monotonic() - begun < 20
    assert cut.draws >= 4
    assert cut.manifest["seconds"]["sample"] >= 0.5


def test_memory_does_not_grow_with_the_number_of_draws():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(3, 100))
    store, thinned = SeriesStore(limit=8), SeriesStore(limit=8, thin=True)
    for one in (store, thinned):
        one.layout({"x": 0, "y": 2}, chains=3)
        for column in values.T:
            one.add(np.stack([column, column, 2 * column], 1))
    kept = store.series()
    assert kept["x"].shape == (3, 6)  # 100 draws in batches of 16, the last one open
    np.testing.assert_allclose(kept["x"], values[:, :96].reshape(3, 6, 16).mean(2))
    np.testing.assert_allclose(kept["y"][..., 1], 2 * kept["x"])
    np.testing.assert_array_equal(thinned.series()["x"], values[:, 15:96:16])
    twin = SeriesStore(limit=8)
    twin.load_state_dict(store.state_dict())
    for extra in rng.normal(size=(40, 3)):
        for one in (store, twin):
            one.add(np.stack([extra, extra, extra], 1))
    np.testing.assert_array_equal(store.series()["x"], twin.series()["x"])


@pytest.mark.slow
def test_a_million_draws_in_constant_memory():
    import resource

    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    sampling.run(problem(P=4, N0=2, N1=2), chains=20, warmup=50, draws=1000, threads=1, max_kept=1000)
    before = peak()
    run = sampling.run(problem(P=4, N0=2, N1=2), chains=20, warmup=50, draws=50_000, threads=1, max_kept=1000)
    assert run.manifest["draws"] * run.chains == 10**6
    assert peak() - before < 20, "MiB"


def test_the_run_survives_the_disk_and_a_damaged_file_is_named(tmp_path):
    run = small(temperatures=[0.3, 0.6])
    path = run.save(tmp_path / "cell" / "run.nc")
    back = Run.load(path)
    equal(run, back)
    assert back.manifest == run.manifest
    assert back.starts == run.starts
    assert back.series["loglik_T"].shape == (4, 40, 2)
    assert [p.name for p in path.parent.iterdir()] == ["run.nc"], "no temporary file is left"
    damaged = bytearray(path.read_bytes())
    where = damaged.find(run.series["d2"][0, :4].tobytes())
    assert where > 0
    damaged[where] ^= 1
    (tmp_path / "flipped.nc").write_bytes(bytes(damaged))
    (tmp_path / "cut.nc").write_bytes(path.read_bytes()[: len(damaged) // 2])
    with pytest.raises(InputError, match=r"flipped\.nc: its checksum does not match"):
        Run.load(tmp_path / "flipped.nc")
    with pytest.raises(InputError, match=r"cut\.nc: not a readable run file"):
        Run.load(tmp_path / "cut.nc")
    with pytest.raises(InputError, match="no such run file"):
        Run.load(tmp_path / "none.nc")


def test_arviz_takes_the_run():
    import arviz

    run = small()
    summary = arviz.summary(run.inference_data(), var_names=["d2", "Q"])
    assert summary.loc["d2", "mean"] == pytest.approx(run.series["d2"].mean(), abs=6e-4)
    assert float(arviz.ess(run.dataset())["Q"]) > 0


def test_the_manifest_is_json_and_traceable():
    run = small()
    manifest = json.loads(json.dumps(run.manifest))
    assert manifest["problem"]["fingerprint"] == problem().fingerprint
    assert manifest["versions"]["torch"] == torch.__version__
    assert manifest["device"].startswith("cpu")
    assert manifest["dtype"] == "float64"
    assert manifest["tf32"] is False
    assert len(manifest["acceptance"]) == 4
    assert all(0 < a <= 1 for a in manifest["acceptance"])
    assert manifest["settings"]["step_size"] > 0
    assert math.isfinite(sum(manifest["seconds"].values()))
    assert run.biased is False
    assert small(sampler="langevin").biased is True


def test_progress_counts_up_and_tells_the_time_left():
    events = []
    small(progress=events.append, draws=100)
    phases = [event["phase"] for event in events]
    assert phases == sorted(phases, key=["warmup", "sample"].index)
    done = [event["done"] for event in events if event["phase"] == "sample"]
    assert done == [25, 50, 75, 100]
    assert events[-1]["eta_s"] == 0
    assert events[-2]["eta_s"] > 0


def test_torch_settings_come_back():
    before = torch.get_num_threads(), torch.get_default_dtype()
    small(threads=1)
    assert (torch.get_num_threads(), torch.get_default_dtype()) == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sampler": "hcm"}, "did you mean 'hmc'"),
        ({"draws": 0}, "draws = 0"),
        ({"draws": None, "target": 2.0}, "target = 2.0"),
        ({"chains": 0}, "chains = 0"),
        ({"seed": -1}, "seed = -1"),
        ({"dtype": "float16"}, "float64 or float32"),
        ({"device": "cuda:7"}, "take cpu"),
        ({"starts": ("warm",)}, "not a kind of start"),
        ({"starts": ()}, "at least one kind of start"),
        ({"temperatures": [0.0]}, "finite number > 0"),
        ({"density": "collpased"}, "joint or collapsed"),
        ({"density": "joint"}, "collapsed density only"),
        ({"leapfrogs": 3}, "does not take these options"),
    ],
)
def test_bad_input_is_named(changes, message):
    with pytest.raises(InputError, match=message):
        small(**changes)
