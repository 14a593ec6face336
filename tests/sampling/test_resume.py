"""Every sampler resumes bit for bit wherever it is stopped (hmc and tempering under real kills: test_chains); nuts says it cannot."""

import numpy as np
import pytest

import sampling
from data.errors import InputError
from data.problem import Dataset, Problem


def problem():
    rng = np.random.default_rng(0)
    classes = np.where(np.arange(8) < 4, 1.0, -1.0)
    return Problem(Dataset(rng.normal(size=(8, 5)), classes, classes, name="test"), 6, 0.3)


class Stopped(Exception):
    """Raised in the middle of a run: nothing after the last checkpoint is kept, as after a kill."""


def stopping(phase, done):
    def progress(event):
        if event["phase"] == phase and event["done"] >= done:
            raise Stopped

    return progress


@pytest.mark.parametrize(
    ("sampler", "options"),
    [
        ("mala", {}),
        ("mala", {"density": "collapsed", "dtype": "float32"}),
        ("gibbs", {"proposals": 3}),
        ("underdamped", {}),
        ("langevin", {}),
        ("tempering", {"rungs": 3}),
    ],
)
def test_a_stopped_run_resumes_to_exactly_the_uninterrupted_result(sampler, options, tmp_path):
    """Stopped in warm-up (once with adaptation under way, once at its seam), and twice among the draws, which are thinned."""
    given = {"sampler": sampler, "chains": 3, "warmup": 75, "draws": 80, "thin": 2, "threads": 1, "seed": 7} | options
    whole = sampling.run(problem(), **given)
    path = tmp_path / "checkpoint.npz"
    for phase, done in (("warmup", 50), ("warmup", 75), ("sample", 50), ("sample", 75)):
        with pytest.raises(Stopped):
            sampling.run(problem(), **given, checkpoint=path, checkpoint_seconds=0.0, progress=stopping(phase, done))
    assert path.exists()
    resumed = sampling.run(problem(), **given, checkpoint=path)
    assert resumed.manifest["resumed"] >= 3
    for group in ("series", "sums"):
        for name, value in getattr(whole, group).items():
            np.testing.assert_array_equal(value, getattr(resumed, group)[name], err_msg=name)
    for key in ("acceptance", "settings", "gradients_per_chain"):
        assert whole.manifest[key] == resumed.manifest[key]
    other = sampling.run(problem(), **(given | {"seed": 8}))
    assert not np.array_equal(whole.series["d2"], other.series["d2"]), "the control: another seed is another run"


def test_a_checkpoint_of_one_sampler_is_not_taken_by_another(tmp_path):
    path = tmp_path / "checkpoint.npz"
    given = {"chains": 3, "warmup": 50, "draws": 30, "threads": 1, "checkpoint": path, "checkpoint_seconds": 0.0}
    with pytest.raises(Stopped):
        sampling.run(problem(), "mala", **given, progress=stopping("warmup", 50))
    with pytest.raises(InputError, match="other settings"):
        sampling.run(problem(), "langevin", **given)


def test_nuts_says_that_it_cannot_resume(tmp_path):
    def interrupt(event):
        if event["phase"] == "warmup":
            raise KeyboardInterrupt

    with pytest.raises(
        sampling.Interrupted, match=r"after 25 warm-up steps and 0 draws.*keeps no checkpoint"
    ) as stopped:
        sampling.run(problem(), "nuts", chains=2, warmup=30, draws=10, progress=interrupt, density="collapsed")
    assert "hmc" in str(stopped.value)


@pytest.mark.parametrize("name", ["state.position", "kernel.counters", "store.kept", "accepts", "streams.each0"])
def test_a_checkpoint_that_lacks_a_part_is_refused(name, tmp_path):
    """Its key is right and its file whole, so only taking it apart shows it."""
    from sampling import checkpoint

    given = {"chains": 2, "warmup": 50, "draws": 60, "threads": 1}
    path = tmp_path / "checkpoint.npz"
    with pytest.raises(Stopped):
        sampling.run(problem(), **given, checkpoint=path, checkpoint_seconds=0.0, progress=stopping("sample", 50))
    meta, arrays = checkpoint.read(path)
    if name not in arrays:  # the names of the store's parts are its own
        name = next(key for key in arrays if key.startswith("store."))
    del arrays[name]
    checkpoint.write(path, {key: value for key, value in meta.items() if key != "format"}, arrays)
    with pytest.raises(InputError, match="not a whole checkpoint"):
        sampling.run(problem(), **given, checkpoint=path)
