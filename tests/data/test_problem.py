"""Dataset and Problem: every bad input is one InputError that names it; duplicates are named at T = 0."""

import dataclasses

import numpy as np
import pytest

from data import Dataset, InputError, Problem, check_for_zero_temperature

X = np.random.default_rng(0).standard_normal((6, 4))
Y = np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0])


def changed(array, where, value):
    out = np.array(array)
    out[where] = value
    return out


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"X": changed(X, (2, 3), np.nan)}, r"X\[2, 3\] is nan"),
        ({"X": changed(X, (0, 1), np.inf)}, r"X\[0, 1\] is inf"),
        ({"y": changed(Y, 4, np.nan)}, r"y\[4\] is nan"),
        ({"X": X.ravel()}, r"X must be a non-empty 2-D array .* shape \(24,\)"),
        ({"X": X[None]}, r"shape \(1, 6, 4\)"),
        ({"X": X[:0]}, r"shape \(0, 4\)"),
        ({"y": Y[:5]}, r"y must have one entry per row of X, shape \(6,\); it has shape \(5,\)"),
        ({"classes": Y[:, None]}, r"classes must have one entry per row"),
        ({"classes": changed(Y, 0, 2.0)}, r"classes must hold only \+1 and -1"),
        ({"classes": np.ones(6)}, r"classes holds only the class \+1"),
        ({"classes": -np.ones(6)}, r"classes holds only the class -1"),
        ({"X": X.astype(complex)}, "X must hold real numbers"),
        ({"X": [["a", "b"]] * 6}, "X must hold real numbers"),
        ({"X": [[1.0, 2.0], [1.0]]}, "X is not a rectangular array"),
        ({"y": [None] * 6}, "y must hold real numbers"),
        ({"X_test": np.ones((2, 3))}, "X_test has 3 inputs a pattern, X has 4"),
        ({"X_test": np.ones((2, 4)), "y_test": np.ones(3)}, "y_test must have one entry per row of X_test"),
        ({"y_test": np.ones(3)}, "need X_test"),
    ],
)
def test_bad_dataset(fields, message):
    with pytest.raises(InputError, match=message):
        Dataset(**{"X": X, "y": Y, "classes": Y, **fields})


def test_arrays_are_copies_that_cannot_be_written():
    mine = X.copy()
    data = Dataset(mine, Y, Y)
    mine[0, 0] = 99.0
    assert data.X[0, 0] == X[0, 0]
    with pytest.raises(ValueError, match="read-only"):
        data.X[0, 0] = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        data.y = Y


def test_contrast_is_the_difference_of_class_means():
    classes = np.array([1.0, -1.0, -1.0, 1.0, -1.0, -1.0])
    s = np.arange(6.0) ** 2
    data = Dataset(X, Y, classes)
    assert data.a @ s == pytest.approx(s[classes > 0].mean() - s[classes < 0].mean())


def test_fingerprint_is_that_of_the_arrays():
    data = Dataset(X, Y, Y)
    assert data.fingerprint == Dataset(X.copy(), Y, Y, name="other").fingerprint
    for other in (data.replace(X=X[:, ::-1]), data.replace(y=-Y), data.replace(classes=-Y)):
        assert other.fingerprint != data.fingerprint


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"N1": 0}, "N1 = 0"),
        ({"N1": 2.5}, "N1 = 2.5"),
        ({"N1": float("nan")}, "N1 = nan"),
        ({"N1": "many"}, "N1 = many"),
        ({"T": -1.0}, "T = -1"),
        ({"T": float("nan")}, "T = nan"),
        ({"T": None}, "T = None"),
        ({"lambda0": 0.0}, "lambda0 = 0"),
        ({"lambda1": float("inf")}, "lambda1 = inf"),
    ],
)
def test_bad_problem(fields, message):
    with pytest.raises(InputError, match=message):
        Problem(Dataset(X, Y, Y), **{"N1": 5, "T": 0.1, **fields})


def rows(**changes):
    out = X.copy()
    for row, values in changes.items():
        out[int(row[1:])] = values
    return Dataset(out, Y, Y)


@pytest.mark.parametrize(
    ("dataset", "message"),
    [
        (rows(r4=X[1]), "rows 1 and 4 of X are equal"),
        (rows(r5=-X[0]), r"rows 0 and 5 of X are opposite"),
        (rows(r2=0.0), "row 2 of X is all 0"),
        (rows(r1=[0.0, 1, 2, 3], r3=[-0.0, 1, 2, 3]), "rows 1 and 3 of X are equal"),
    ],
)
def test_duplicates_are_named_at_zero_temperature_only(dataset, message):
    with pytest.raises(InputError, match=message):
        Problem(dataset, N1=5, T=0)
    assert Problem(dataset, N1=5, T=0.01).T == 0.01


def test_what_is_named_is_singular_and_what_passes_is_not():
    """The erf kernel of each refused set has an eigenvalue of 0; that of the plain set has not."""

    def smallest(data):
        C = data.X @ data.X.T / data.N0
        n = 1 + 2 * np.diag(C)
        return np.linalg.eigvalsh((2 / np.pi) * np.arcsin(2 * C / np.sqrt(np.outer(n, n))))[0]

    for data in (rows(r4=X[1]), rows(r5=-X[0]), rows(r2=0.0)):
        assert abs(smallest(data)) < 1e-12
    plain = rows()
    check_for_zero_temperature(plain)
    assert smallest(plain) > 1e-3


def test_linear_network_needs_at_most_N0_patterns_at_zero_temperature():
    data = Dataset(X, Y, Y)
    with pytest.raises(InputError, match="P = 6 > N0 = 4"):
        Problem(data, N1=5, T=0, activation="linear")
    Problem(data, N1=5, T=0, activation="erf")
    Problem(Dataset(X.T[:, :5], [1, 1, -1, -1], [1, 1, -1, -1]), N1=5, T=0, activation="linear")
