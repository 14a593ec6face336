"""The exact data of every reference file, seen through their `prior` and `yKy_over_P` with a kernel written here."""

import json

import numpy as np
import pytest

from data import load

CASES = [
    ("digits_even_odd", "digits", "even/odd", 100),
    ("digits_0_1", "digits", "0/1", 100),
    ("cifar10_first1000", "cifar10", "even/odd", 1000),
    ("mnist01_first1000", "mnist", "0/1", 1000),
]


def kernel(X, lambda0, activation):
    """C or the erf kernel of physics.md section 1, independent of the theory package."""
    C = X @ X.T / (lambda0 * X.shape[1])
    n = 1.0 + 2.0 * np.diag(C)
    return C if activation == "linear" else (2 / np.pi) * np.arcsin(2 * C / np.sqrt(np.outer(n, n)))


def agrees(dataset, path):
    cases = json.loads(path.read_text())["cases"]
    assert cases
    for case in cases:
        K = kernel(dataset.X, case["lambda0"], case["activation"])
        assert (case["P"], case["N0"]) == (dataset.P, dataset.N0)
        assert case["N1"] * dataset.a @ K @ dataset.a == pytest.approx(case["prior"], rel=1e-8)
        assert dataset.y @ K @ dataset.y / dataset.P == pytest.approx(case["yKy_over_P"], rel=1e-8)


@pytest.mark.parametrize(("file", "name", "classes", "P"), CASES)
def test_defaults_give_the_data_of_the_reference(file, name, classes, P, shared_data, reference):
    agrees(load(name, classes, P), reference / f"{file}.json")


def test_a_user_file_gives_the_data_of_the_reference(reference):
    agrees(load(reference / "gaussian_small.npz"), reference / "gaussian_small.json")


@pytest.mark.parametrize(
    "other", [{"balanced": False}, {"seed": 0}, {"standardise": "feature"}, {"classes": "first/second"}]
)
def test_other_choices_do_not(other, reference):
    """The check above can fail: each other choice moves the prior by more than the tolerance."""
    choices = {"classes": "even/odd", **other}
    with pytest.raises(AssertionError):
        agrees(load("digits", P=100, **choices), reference / "digits_even_odd.json")
