"""`load` by name: defaults, labels, test rows, provenance, and one error for each bad argument."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from data import InputError, describe, load, names


def test_import_is_light_and_needs_no_scikit_learn():
    code = (
        "import sys, data; data.load('digits', P=20); data.load('fashion-mnist', P=20); data.load('network-teacher');"
        "heavy = {'pooch', 'requests', 'scipy', 'sklearn', 'torch', 'jax', 'pandas', 'arviz', 'pydantic'} & set(sys.modules);"
        "assert not heavy, heavy"
    )
    root = Path(__file__).resolve().parents[2]
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, cwd=root)


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("digit", "digits"),
        ("cifar", "cifar10"),
        ("fashion", "fashion-mnist"),
        ("gausian", "gaussian"),
        ("minst", "mnist"),
    ],
)
def test_unknown_name_suggests_the_nearest(name, suggested):
    with pytest.raises(InputError, match=f"unknown data set '{name}': did you mean '{suggested}'"):
        load(name)


def test_name_like_nothing_lists_what_there_is():
    with pytest.raises(InputError, match="unknown data set 'zzz': There are digits, fashion-mnist, mnist, cifar10"):
        load("zzz")
    with pytest.raises(InputError, match="give the name of a data set or the path"):
        load(3)
    with pytest.raises(InputError, match="there is no file"):
        load("some/where")


def test_spellings():
    assert load("Fashion_MNIST", P=10).fingerprint == load("fashion-mnist", P=10).fingerprint


def test_describe_covers_every_name():
    assert names() == [describe(name)["name"] for name in names()]
    json.dumps([describe(name) for name in names()], allow_nan=False)
    assert describe("digits")["offline"]
    assert not describe("cifar10")["offline"]


@pytest.mark.parametrize("name", ["digits", "fashion-mnist"])
def test_embedded_sets_are_balanced_with_positives_first(name):
    data = load(name, P=30)
    assert data.y.tolist() == [1.0] * 15 + [-1.0] * 15
    assert (data.classes == data.y).all()
    assert data.name == f"{name} even/odd"
    assert data.X.mean() == pytest.approx(0, abs=1e-13)
    assert data.X.std() == pytest.approx(1)


def test_seeded_subset_is_a_subset():
    whole = {row.tobytes() for row in load("digits", standardise="none", balanced=False).X}
    first, second = (load("digits", P=60, seed=seed, standardise="none") for seed in (0, 1))
    assert {row.tobytes() for row in first.X} <= whole
    assert first.fingerprint != second.fingerprint
    assert first.fingerprint == load("digits", P=60, seed=0, standardise="none", P_test=40).fingerprint


def test_test_rows_are_disjoint_and_scaled_with_the_training_constants():
    raw = load("digits", P=40, P_test=20, seed=2, standardise="none")
    data = load("digits", P=40, P_test=20, seed=2)
    assert not {row.tobytes() for row in raw.X} & {row.tobytes() for row in raw.X_test}
    np.testing.assert_allclose(data.X_test, (raw.X_test - raw.X.mean()) / raw.X.std(), rtol=1e-12)
    assert set(data.provenance["rows"]["indices"]).isdisjoint(data.provenance["test"]["indices"])
    assert data.provenance["test"]["from"] == "training rows not chosen"


def test_random_labels_permute_y_and_leave_the_classes():
    true, first, again, other = (
        load("digits", P=60, P_test=20, labels=labels, label_seed=seed)
        for labels, seed in (("true", 0), ("random", 0), ("random", 0), ("random", 1))
    )
    assert (first.classes == true.classes).all()
    assert (first.classes_test == true.classes_test).all()
    assert (first.X == true.X).all()
    assert sorted(first.y) == sorted(true.y)
    assert sorted(first.y_test) == sorted(true.y_test)
    assert 0.2 < (first.y == true.y).mean() < 0.8
    assert (first.y == again.y).all()
    assert (first.y != other.y).any()
    assert first.provenance["labels"] == {"kind": "random", "seed": 0}


def test_zero_labels():
    data = load("digits", P=20, P_test=4, labels="zero")
    assert (data.y == 0).all()
    assert (data.y_test == 0).all()
    assert set(data.classes) == {1.0, -1.0}


def test_provenance_is_json_and_tells_everything():
    data = load("digits", "0,1/2-4", P=120, seed=9, labels="random", label_seed=5, standardise="feature", P_test=10)
    found = json.loads(json.dumps(data.provenance, allow_nan=False))
    assert list(found["sha256"]) == ["digits.csv.gz"]
    assert found["classes"] == {"text": "0,1/2-4", "plus": [0, 1], "minus": [2, 3, 4]}
    assert found["rows"]["count"] == 120
    assert found["rows"]["seed"] == 9
    assert found["labels"] == {"kind": "random", "seed": 5}
    assert found["standardise"]["kind"] == "feature"
    assert "BSD" in found["licence"]
    assert load("digits", P=20).provenance["standardise"].keys() == {"kind", "mean", "sd"}
    assert str(Path.home()) not in json.dumps(found)


def test_teacher_survives_true_labels_only():
    assert load("network-teacher", P=20).teacher is not None
    assert load("network-teacher", P=20, labels="random").teacher is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"P": 101}, "P = 101 is odd"),
        ({"P": 2000}, r"P = 2000 needs 1000 patterns of class \+1, and digits even/odd has 891"),
        ({"P": 400, "classes": "0/1"}, r"needs 200 patterns of class \+1, and digits 0/1 has 178"),
        ({"P": 1798, "balanced": False}, "P = 1798 needs 1798 patterns, and digits even/odd has 1797"),
        ({"P": 1}, "P = 1: it must be a whole number >= 2"),
        ({"P": 10.5}, "P = 10.5"),
        ({"P_test": -1}, "P_test = -1"),
        ({"P": 10, "P_test": 5}, "P_test = 5 is odd"),
        ({"seed": -1}, "seed = -1"),
        ({"seed": "0"}, "seed = '0'"),
        ({"label_seed": 1.5}, "label_seed = 1.5"),
        ({"labels": "shuffled"}, "labels = 'shuffled': choose from true, random, zero"),
        ({"standardise": "zscore"}, "standardise = 'zscore': choose from"),
        ({"balanced": "yes"}, "balanced = 'yes'"),
        ({"classes": "0/10"}, "no class 10"),
        ({"classes": ""}, "one slash"),
        ({"P": 2, "classes": "0,1/2", "balanced": False}, r"every row chosen from digits 0,1/2 is of class \+1"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(InputError, match=message):
        load("digits", **arguments)
