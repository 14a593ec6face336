"""A user's own `.npz`: the three ways that labels are read, and one error for each thing that can be wrong with it."""

import numpy as np
import pytest

from data import InputError, load

RNG = np.random.default_rng(0)
X = RNG.standard_normal((8, 3))
Y = np.array([0, 1, 1, 0, 1, 0, 0, 1])


@pytest.fixture
def save(tmp_path):
    def write(**arrays):
        path = tmp_path / "mine.npz"
        np.savez(path, **arrays)
        return path

    return write


@pytest.mark.parametrize("pair", [(0, 1), (-1, 1), (3, 7), (-0.5, 2.25), (False, True)])
def test_any_two_values_with_the_larger_as_plus(save, pair):
    labels = np.array(pair)[Y]
    data = load(str(save(X=X, y=labels)), standardise="none")
    assert (data.X == X).all()
    assert (data.y == np.where(Y == 1, 1.0, -1.0)).all()
    assert (data.classes == data.y).all()
    assert data.provenance["labels read"]["y"] == {f"{float(pair[1]):g}": 1, f"{float(pair[0]):g}": -1}
    assert data.provenance["source"] == "mine.npz"
    assert len(data.provenance["sha256"]["mine.npz"]) == 64


def test_a_users_numbers_are_studied_as_they_are_unless_told_otherwise(save):
    assert (load(save(X=X + 5, y=Y)).X == X + 5).all()
    data = load(save(X=X + 5, y=Y), standardise="global")
    np.testing.assert_allclose(data.X, (X - X.mean()) / X.std(), rtol=1e-12, atol=1e-12)


def test_regression_target_with_classes_is_kept(save):
    target = RNG.standard_normal(8)
    data = load(save(X=X, y=target, classes=Y))
    assert (data.y == target).all()
    assert (data.classes == np.where(Y == 1, 1.0, -1.0)).all()
    assert data.provenance["labels read"]["y"] == "kept as it is"
    assert (load(save(X=X, y=np.zeros(8), classes=Y)).y == 0).all()


def test_labels_and_classes_can_differ(save):
    data = load(save(X=X, y=Y, classes=Y[::-1]))
    assert (data.y == 2.0 * Y - 1).all()
    assert (data.classes == (2.0 * Y - 1)[::-1]).all()


def test_class_indices_with_the_argument(save):
    indices = np.array([0, 1, 2, 3, 0, 1, 2, 3])
    data = load(save(X=X, y=indices), classes="0,2/1", standardise="none")
    assert (X[[0, 1, 2, 4, 5, 6]] == data.X).all()
    assert data.y.tolist() == [1, -1, 1, 1, -1, 1]
    assert load(save(X=X, y=indices), classes="first/second").y.tolist() == [1, 1, -1, -1] * 2


def test_P_balance_seed_and_test_rows(save):
    path = save(X=X, y=Y)
    assert load(path, P=5).P == 5
    assert load(path, P=4, balanced=True).y.tolist() == [1, 1, -1, -1]
    data = load(path, P=4, balanced=True, P_test=4, seed=1, standardise="none")
    both = np.concatenate([data.X, data.X_test])
    assert len(np.unique(both, axis=0)) == 8
    with pytest.raises(InputError, match=r"P = 9 needs 9 patterns, and mine.npz has 8"):
        load(path, P=9)


def test_test_split_of_the_file(save):
    split = {"X_test": X[:4] + 1, "y_test": Y[:4]}
    data = load(save(X=X, y=Y, **split), P_test=3, standardise="global")
    np.testing.assert_allclose(data.X_test, (X[:3] + 1 - X.mean()) / X.std())
    assert data.y_test.tolist() == [-1, 1, 1]
    assert data.provenance["test"]["from"] == "the test split"
    data = load(save(X=X, y=X[:, 0], classes=Y, X_test=X[:4], y_test=X[:4, 1], classes_test=Y[:4]), P_test=4)
    assert (data.y_test == X[:4, 1]).all()
    assert data.classes_test.tolist() == [-1, 1, 1, -1]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"X": X}, "has no array 'y': it needs X, y and has X"),
        ({"images": X, "labels": Y}, "has no array 'X'.* has images, labels"),
        ({"X": np.where(X[2, 1] == X, np.nan, X), "y": Y}, r"X\[2, 1\] is nan"),
        ({"X": X, "y": np.where(np.arange(8) == 5, np.inf, Y)}, r"y\[5\] is inf"),
        ({"X": X.ravel(), "y": Y}, r"X must have shape \(patterns, inputs\); it has shape \(24,\)"),
        ({"X": X.reshape(8, 3, 1), "y": Y}, "X must have shape"),
        ({"X": X[:0], "y": Y[:0]}, r"X must have shape .* \(0, 3\)"),
        ({"X": X, "y": Y[:7]}, r"y must have shape \(8,\); it has shape \(7,\)"),
        ({"X": X, "y": Y[:, None]}, r"y must have shape \(8,\)"),
        ({"X": X, "y": np.ones(8)}, "y holds only the value 1"),
        (
            {"X": X, "y": np.arange(8)},
            r"y holds 8 different values \(0, 1, 2, 3, ...\), not two; give an array `classes`",
        ),
        ({"X": X, "y": Y, "classes": np.arange(8)}, "classes holds 8 different values"),
        ({"X": X, "y": Y, "classes": np.zeros(8)}, "classes holds only the value 0"),
        ({"X": X, "y": np.array(["a", "b"] * 4)}, "y holds <U1, not real numbers"),
        ({"X": X.astype(complex), "y": Y}, "not real numbers"),
        ({"X": X, "y": Y, "X_test": X}, "needs both X_test and y_test"),
        ({"X": X, "y": Y, "X_test": X[:, :2], "y_test": Y}, "X_test has 2 inputs a pattern, X has 3"),
        ({"X": X, "y": Y, "X_test": X, "y_test": Y + 1}, "the two values of the training rows, 0 and 1"),
        ({"X": X, "y": Y, "classes": Y, "X_test": X, "y_test": Y}, "needs classes_test"),
    ],
)
def test_bad_files(save, arrays, message):
    with pytest.raises(InputError, match=message):
        load(save(**arrays))


def test_bad_choices(save):
    with pytest.raises(InputError, match="whole-number class indices"):
        load(save(X=X, y=X[:, 0]), classes="0/1")
    with pytest.raises(InputError, match="has its own array `classes`"):
        load(save(X=X, y=Y, classes=Y), classes="0/1")
    with pytest.raises(InputError, match="no class 7"):
        load(save(X=X, y=Y), classes="0/7")


def test_nothing_is_unpickled(save):
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("the file was unpickled",))

    objects = np.empty(8, dtype=object)
    objects[:] = [Bomb() for _ in range(8)]
    with pytest.raises(InputError, match=r"damaged or not an \.npz of plain arrays"):
        load(save(X=X, y=objects))


def test_damaged_and_missing_files(save, tmp_path):
    whole = save(X=X, y=Y).read_bytes()
    for name, content in (("cut", whole[: len(whole) // 2]), ("text", b"X,y\n1,2\n"), ("empty", b"")):
        (tmp_path / f"{name}.npz").write_bytes(content)
        with pytest.raises(InputError, match=f"{name}.npz is damaged or not an .npz"):
            load(tmp_path / f"{name}.npz")
    flipped = bytearray(whole)
    flipped[whole.index(X.tobytes()) + 8] ^= 1  # one bit of one entry: the archive's own checksum notices
    (tmp_path / "flipped.npz").write_bytes(flipped)
    with pytest.raises(InputError, match=r"flipped\.npz is damaged"):
        load(tmp_path / "flipped.npz")
    np.save(tmp_path / "single.npy", X)
    (tmp_path / "single.npy").rename(tmp_path / "single.npz")
    with pytest.raises(InputError, match=r"single\.npz is a single array"):
        load(tmp_path / "single.npz")
    with pytest.raises(InputError, match="there is no file"):
        load(tmp_path / "absent.npz")
