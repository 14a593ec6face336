"""float32 sampling gives the posterior that float64 gives: means of whole runs agree to their errors, at low T and in both forms of A."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import norm

import sampling
from data.problem import Dataset, Problem
from sampling.battery.result import difference_z

NAMES = ("d2", "Q", "fbar_a", "residual", "loglik", "norm_w")
FALSE_ALARM = 1e-4  # of the whole comparison, over scalars and components of <w w>


def problem(N1, T):
    rng = np.random.default_rng(3)
    classes = np.where(np.arange(12) < 5, 1.0, -1.0)
    return Problem(Dataset(rng.normal(size=(12, 4)), classes, classes, name="test"), N1, T)


def sample(given, seed, **options):
    return sampling.run(given, chains=24, warmup=120, draws=250, threads=1, seed=seed, **options)


def scores(left, right):
    """z of the difference of every mean, chains being independent values."""
    found = {name: difference_z(left.series[name].mean(1), right.series[name].mean(1)) for name in NAMES}
    for h, k in zip(*np.triu_indices(4), strict=True):
        found[f"ww{h}{k}"] = difference_z(left.sums["ww_stein"][:, h, k], right.sums["ww_stein"][:, h, k])
    return found


@pytest.mark.parametrize(("N1", "T"), [(6, 0.02), pytest.param(15, 0.1, marks=pytest.mark.slow)])
def test_float32_and_float64_runs_agree(N1, T):
    """N1 < P and N1 > P. The control is a float32 run at a temperature 30% higher, which the same comparison must refuse."""
    exact = sample(problem(N1, T), 1)
    single = sample(problem(N1, T), 2, dtype="float32")
    assert (exact.manifest["dtype"], single.manifest["dtype"]) == ("float64", "float32")
    assert single.manifest["nan_share"] < 1e-3
    assert single.series["d2"].dtype == np.float64
    found = scores(exact, single)
    limit = norm.isf(FALSE_ALARM / (2 * len(found)))
    assert max(map(abs, found.values())) < limit, found
    off = scores(exact, sample(dataclasses.replace(problem(N1, T), T=1.3 * T), 2, dtype="float32"))
    assert max(map(abs, off.values())) > 2 * limit
