"""Image sets: the embedded files are what they say, idx and `.npz` pieces are read whole or refused."""

import gzip
import hashlib
import re
import struct

import numpy as np
import pytest

from data import InputError, idx, load, local, mnist
from data.images import FILES, SETS, read_digits
from data.mnist import IdxFile, IdxSet


def test_digits_are_those_of_scikit_learn():
    source = pytest.importorskip("sklearn.datasets").load_digits()
    found = read_digits(FILES / "digits.csv.gz")
    assert (found.pixels == source.data).all()
    assert (found.labels == source.target).all()
    assert tuple(np.bincount(found.labels)) == SETS["digits"].counts


def test_changed_digits_are_refused(tmp_path):
    raw = (FILES / "digits.csv.gz").read_bytes()
    (tmp_path / "digits.csv.gz").write_bytes(raw[:-1])
    with pytest.raises(InputError, match="is not the file that was installed"):
        read_digits(tmp_path / "digits.csv.gz")


def test_fashion_mnist_is_the_beginning_of_the_original(shared_data):
    stored = np.load(shared_data / "fashion_mnist_train_first2000.npz")
    images, _ = next(SETS["fashion-mnist"].sources(False))
    assert (images.pixels == stored["images"].reshape(2000, -1)).all()
    assert (images.labels == stored["labels"]).all()


def test_licences_and_checksums_lie_beside_the_files():
    note = (FILES / "PROVENANCE.md").read_text()
    data_files = sorted(FILES.glob("*.gz"))
    assert len(data_files) == 3
    for path in data_files:
        assert hashlib.sha256(path.read_bytes()).hexdigest() in note
    assert "BSD 3-Clause" in (FILES / "digits.LICENSE").read_text()
    assert "MIT" in (FILES / "fashion_mnist.LICENSE").read_text()
    counts = re.search(r"0 to 9:\s+([\d ]+)\.", note)[1].split()
    assert [int(c) for c in counts] == np.bincount(next(SETS["fashion-mnist"].sources(False))[0].labels).tolist()


def test_known_cifar_bytes_and_labels(shared_data):
    """The sha256 of the first 1000 images and the first labels, as the project's notes give them."""
    data = load("cifar10", P=1000, standardise="none")
    known = "133c5674fd1c56ceeeb944ddcdc368da2593ce5b67acfa216ab83f98a084f388"
    assert hashlib.sha256(data.X.astype(np.uint8).tobytes()).hexdigest() == known
    assert data.y[:10].tolist() == [1 if k % 2 == 0 else -1 for k in (6, 9, 9, 4, 1, 1, 2, 7, 8, 3)]
    assert data.provenance["chosen from"] == "2000 of 50000 images of the training split"


def test_pieces_in_the_folder_or_its_data_subfolder(shared_data, monkeypatch):
    first = load("mnist", "0/1", P=100, P_test=50)
    monkeypatch.setenv("SADDLECHECK_DATA", str(shared_data.parent))
    assert load("mnist", "0/1", P=100, P_test=50).fingerprint == first.fingerprint
    stored = np.load(shared_data / "mnist_test.npz")
    rows = np.flatnonzero(stored["labels"] <= 1)[:50]
    assert (first.y_test == np.where(stored["labels"][rows] == 0, 1, -1)).all()
    mean, sd = first.provenance["standardise"]["mean"], first.provenance["standardise"]["sd"]
    np.testing.assert_allclose(first.X_test, (stored["images"][rows].reshape(50, -1) - mean) / sd)
    assert first.provenance["test"]["from"] == "the test split"


def test_two_pieces_join_in_file_order(shared_data):
    second = np.load(shared_data / "cifar10_train_1000_2000.npz")["images"].reshape(1000, -1)
    data = load("cifar10", P=1500, standardise="none")
    assert (data.X[1000:] == second[:500]).all()


# ---- idx files ----


def idx_bytes(array):
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


ARRAY = np.arange(60, dtype=np.uint8).reshape(5, 4, 3)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_idx_is_read_packed_or_not(tmp_path, pack):
    (tmp_path / "file").write_bytes(pack(idx_bytes(ARRAY)))
    assert (idx.parse(idx.payload(tmp_path / "file"), "file") == ARRAY).all()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (idx_bytes(ARRAY)[:-1], "file is truncated or corrupt: 75 bytes, where its header asks for 76"),
        (idx_bytes(ARRAY) + b"x", "truncated or corrupt"),
        (idx_bytes(ARRAY)[:9], "file is truncated: 9 bytes are less than its header"),
        (b"", "not an idx file"),
        (b"\x00\x00\x0d\x01" + bytes(8), "not an idx file"),
        (gzip.compress(idx_bytes(ARRAY))[:-9], "corrupt or truncated"),
        (gzip.compress(idx_bytes(ARRAY))[:20] + b"????" + gzip.compress(idx_bytes(ARRAY))[24:], "corrupt or truncated"),
    ],
    # a gzip header holds the time of day, which must not be in a test's name
    ids=["short", "long", "header", "empty", "other-dtype", "gzip-cut", "gzip-overwritten"],
)
def test_damaged_idx_is_refused(tmp_path, content, message):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(InputError, match=message):
        idx.parse(idx.payload(tmp_path / "file"), "file")


def test_genuine_mnist_test_files_have_the_built_in_checksums(shared_data, folder):
    """The original idx bytes, rebuilt from the shared arrays, pass the checksum; one changed byte does not."""
    stored = np.load(shared_data / "mnist_test.npz")
    assert mnist.split(mnist.MNIST, "test", False) is None
    (folder / "MNIST/raw").mkdir(parents=True)
    path = folder / "MNIST/raw/t10k-images-idx3-ubyte"
    (folder / "t10k-labels-idx1-ubyte.gz").write_bytes(gzip.compress(idx_bytes(stored["labels"])))
    path.write_bytes(idx_bytes(stored["images"]))
    found = mnist.split(mnist.MNIST, "test", False)
    assert (found.pixels == stored["images"].reshape(10000, -1)).all()
    assert (found.labels == stored["labels"]).all()
    damaged = bytearray(path.read_bytes())
    damaged[5000] ^= 1
    path.write_bytes(damaged)
    with pytest.raises(InputError, match=r"t10k-images-idx3-ubyte is corrupt, truncated or another file"):
        mnist.split(mnist.MNIST, "test", False)


@pytest.fixture
def small_mnist(folder, monkeypatch):
    """A whole MNIST of 60 + 20 images under its real file names, with checksums of its own."""
    rng = np.random.default_rng(0)
    splits, arrays = {}, {}
    for split, stem, n in (("train", "train", 60), ("test", "t10k", 20)):
        pair = []
        for kind, array in (
            ("images-idx3", rng.integers(0, 256, (n, 28, 28)).astype(np.uint8)),
            ("labels-idx1", np.arange(n, dtype=np.uint8) % 10),
        ):
            raw = idx_bytes(array)
            (folder / f"{stem}-{kind}-ubyte.gz").write_bytes(gzip.compress(raw))
            pair.append(IdxFile(f"{stem}-{kind}-ubyte", "0" * 64, hashlib.sha256(raw).hexdigest()))
            arrays[split, kind] = array
        splits[split] = tuple(pair)
    monkeypatch.setattr(mnist, "MNIST", IdxSet("mnist", (), ("",), splits))
    return arrays


def test_whole_set_from_local_idx_files(small_mnist):
    data = load("mnist", "even/odd", P=30, P_test=10, standardise="none")
    assert (small_mnist["train", "images-idx3"][:30].reshape(30, -1) == data.X).all()
    assert data.y.tolist() == [1, -1] * 15
    assert (data.X_test == small_mnist["test", "images-idx3"][:10].reshape(10, -1)).all()
    assert data.provenance["test"]["from"] == "the test split"
    assert len(data.provenance["sha256"]) == 4
    with pytest.raises(InputError, match="P = 61 needs 61 patterns, and mnist even/odd has 60"):
        load("mnist", P=61)
    with pytest.raises(InputError, match="P_test = 21 needs 21 patterns, and the test split of mnist even/odd has 20"):
        load("mnist", P=10, P_test=21)


def test_damaged_local_file_is_named(small_mnist, folder):
    path = folder / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(InputError, match=r"train-images-idx3-ubyte.gz is corrupt or truncated"):
        load("mnist", P=10)


def test_files_of_the_other_set_are_passed_over(folder, monkeypatch):
    """A Fashion-MNIST file where MNIST's of the same name could lie is not taken, and not called corrupt."""
    raw = idx_bytes(np.zeros((3, 28, 28), np.uint8))
    (folder / "t10k-images-idx3-ubyte").write_bytes(raw)
    with pytest.raises(InputError, match="another file"):
        mnist.split(mnist.MNIST, "test", False)
    monkeypatch.setattr(mnist, "_KNOWN", {hashlib.sha256(raw).hexdigest()})
    assert mnist.split(mnist.MNIST, "test", False) is None


# ---- `.npz` pieces ----


def piece(folder, name, labels, **more):
    images = np.random.default_rng(len(labels)).integers(0, 256, (len(labels), 28, 28)).astype(np.uint8)
    np.savez(folder / name, **{"images": images, "labels": np.array(labels), **more})


def test_places_of_pieces(folder):
    piece(folder, "mnist_train_first3.npz", [5, 0, 4])
    piece(folder, "mnist_train_3_5.npz", [1, 9])
    piece(folder, "mnist_train_some.npz", [2, 1], index=np.array([7, 5]))
    found = local.pieces("mnist_train", 784, 60000)
    assert found.index.tolist() == [0, 1, 2, 3, 4, 5, 7]
    assert found.labels.tolist() == [5, 0, 4, 1, 9, 1, 2]
    assert found.part == "7 of 60000 images"
    assert len(found.files) == 3


def test_only_rows_whose_place_is_certain_are_chosen(folder, monkeypatch):
    """Of pieces, the unbroken beginning counts; later rows only where every image of the chosen classes is there."""
    monkeypatch.setattr(mnist, "MNIST", IdxSet("mnist", (), ("",), mnist.MNIST.splits))
    piece(folder, "mnist_train_first6.npz", [0, 1, 0, 1, 2, 3])
    piece(folder, "mnist_train_10_14.npz", [0, 1, 0, 1])
    assert load("mnist", "0/1", P=4).P == 4
    with pytest.raises(
        InputError, match=r"P = 5 needs 5 patterns, and mnist 0/1 has 4.* whole set: downloading .* failed"
    ):
        load("mnist", "0/1", P=5)
    object.__setattr__(SETS["mnist"], "counts", (4, 4, *SETS["mnist"].counts[2:]))
    try:
        assert load("mnist", "0/1", P=8).P == 8
    finally:
        object.__setattr__(SETS["mnist"], "counts", (5923, 6742, *SETS["mnist"].counts[2:]))


@pytest.mark.parametrize(
    ("name", "arrays", "message"),
    [
        ("mnist_train_some.npz", {}, "have no known place"),
        ("mnist_train_first9.npz", {}, "have no known place"),
        ("mnist_train_0_9.npz", {}, "have no known place"),
        ("mnist_train.npz", {"images": np.zeros((3, 27, 28), np.uint8)}, "with 784 a pattern"),
        ("mnist_train.npz", {"images": np.zeros((3, 28, 28))}, "images float64"),
        ("mnist_train.npz", {"images": np.zeros((2, 28, 28), np.uint8)}, "images uint8"),
        ("mnist_train.npz", {"images": np.zeros((0, 28, 28), np.uint8), "labels": np.zeros(0, int)}, r"\(0, 28, 28\)"),
        ("mnist_train.npz", {"labels": np.array([0, 1, 10])}, "labels must be whole numbers 0 to 9"),
        ("mnist_train.npz", {"labels": np.array([0.0, 1, 2])}, "labels must be whole numbers 0 to 9"),
        ("mnist_train.npz", {"index": np.array([0, 0, 1])}, "`index` must hold 3 different whole numbers"),
        ("mnist_train.npz", {"index": np.array([0, 1, 60000])}, "`index` must hold"),
        ("mnist_train.npz", {"index": np.array([0.0, 1, 2])}, "`index` must hold"),
    ],
)
def test_bad_pieces(folder, name, arrays, message):
    piece(folder, name, **{"labels": [0, 1, 2], **arrays})
    with pytest.raises(InputError, match=message):
        local.pieces("mnist_train", 784, 60000)


def test_pieces_at_odds_and_damaged_pieces(folder):
    piece(folder, "mnist_train_first3.npz", [0, 1, 2])
    piece(folder, "mnist_train_first2.npz", [0, 1])
    with pytest.raises(InputError, match="two files differ on image 0"):
        local.pieces("mnist_train", 784, 60000)
    path = folder / "mnist_train_first2.npz"
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(InputError, match=r"mnist_train_first2.npz is damaged"):
        local.pieces("mnist_train", 784, 60000)


def test_folder_that_is_not_there(monkeypatch, tmp_path):
    monkeypatch.setenv("SADDLECHECK_DATA", str(tmp_path / "absent"))
    with pytest.raises(InputError, match=r"SADDLECHECK_DATA = .* is not a folder"):
        load("cifar10")
    assert load("digits", P=10).P == 10
