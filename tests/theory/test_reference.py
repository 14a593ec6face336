"""Every number of the independent reference files, to 1e-8 relative, where the project's shared folder is beside the clone."""

import json
from pathlib import Path

import numpy as np
import pytest

from data.problem import Dataset, Problem
from theory import Spectrum, predict

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
FILES = ["gaussian_small", "digits_even_odd", "digits_0_1", "mnist01_first1000", "cifar10_first1000"]

pytestmark = pytest.mark.skipif(not (SHARED / "reference").is_dir(), reason="needs ../shared/reference beside the clone")


def standardised(X):
    return (X - X.mean()) / X.std()


def load(name):
    """The data as each reference file's own `data` field describes it, built here without the project's loader."""
    if name == "gaussian_small":
        stored = np.load(SHARED / "reference/gaussian_small.npz")
        return Dataset(stored["X"], stored["y"], stored["y"])
    if name.startswith("digits"):
        from sklearn.datasets import load_digits

        source = load_digits()
        even = source.target % 2 == 0 if name == "digits_even_odd" else source.target == 0
        odd = source.target % 2 == 1 if name == "digits_even_odd" else source.target == 1
        rows = np.r_[np.flatnonzero(even)[:50], np.flatnonzero(odd)[:50]]
        y = np.repeat([1.0, -1.0], 50)
        return Dataset(standardised(source.data[rows]), y, y)
    file = {"cifar10_first1000": "cifar10_train_first1000", "mnist01_first1000": "mnist_train_digits01"}[name]
    stored = np.load(SHARED / f"data/{file}.npz")
    labels = stored["labels"][:1000]
    y = np.where(labels % 2 == 0, 1.0, -1.0)
    return Dataset(standardised(stored["images"][:1000].reshape(1000, -1).astype(float)), y, y)


@pytest.mark.parametrize("name", FILES)
def test_every_reference_number(name):
    cases = json.loads((SHARED / f"reference/{name}.json").read_text())["cases"]
    dataset = load(name)
    spectra = {}
    for case in cases:
        key = (case["activation"], case["lambda0"])
        spectra.setdefault(key, Spectrum.of(dataset, *key))
        problem = Problem(dataset, case["N1"], case["T"], case["lambda0"], case["lambda1"], case["activation"])
        found = predict(problem, spectrum=spectra[key])
        assert found.saddle.certified
        assert len(found.saddle.stationary) == case["stationary_points"]
        cell = found.to_dict()
        expected = {k: case[k] for k in ("Qbar", "prior", "delta1", "delta2", "fbar_a", "yKy_over_P")}
        for key_, value in expected.items():
            assert cell[key_] == pytest.approx(value, rel=1e-8), (case["T"], case["N1"], key_)
        for level in ("eq4", "eq3"):
            assert cell["levels"][level] == pytest.approx(case[level], rel=1e-8)
        for key_, value in case["q_averaged"].items():
            assert cell["q_averaged"][key_] == pytest.approx(value, rel=1e-8), (case["T"], case["N1"], key_)
        pairs = {"c00": (0, 0), "c01": (0, 1), "c12": (1, 2)}
        both = found.weight_theory.components(list(pairs.values()), found.Qbar, problem.N1, problem.T, problem.lambda1)
        for label, prefix, values in zip(("Lambda1", "Lambda2"), ("lambda1", "lambda2"), both, strict=True):
            for norm in ("trace", "frobenius"):
                assert cell["weights"][f"{prefix}_{norm}"] == pytest.approx(case[label][norm], rel=1e-8)
            for component, value in zip(pairs, values, strict=True):
                assert value == pytest.approx(case[label][component], rel=1e-8), (label, component)
