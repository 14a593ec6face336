"""The CIFAR-10 archive: read as its Python 2 pickles are, and nothing in a pickle is ever executed."""

import hashlib
import io
import pickle
import struct
import tarfile
import warnings

import numpy as np
import pytest

from data import InputError, images, load
from data.cifar import channels_last, read_archive, unpickle

RNG = np.random.default_rng(0)


def text(value):
    return b"U" + bytes([len(value)]) + value  # SHORT_BINSTRING, Python 2's str


def number(value):
    return b"J" + struct.pack("<i", value)


def python2_batch(pixels, labels):
    """The opcodes that Python 2's cPickle wrote, protocol 2: {"data": ndarray, "labels": list, "batch_label": str}."""
    dtype = b"cnumpy\ndtype\n" + text(b"u1") + number(0) + number(1) + b"\x87R"
    state = number(3) + text(b"|") + b"NNN" + number(-1) + number(-1) + number(0)
    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n" + b"cnumpy\nndarray\n" + number(0) + b"\x85" + text(b"b") + b"\x87R"
    )
    raw = pixels.tobytes()
    content = (
        b"(" + number(1) + number(pixels.shape[0]) + number(pixels.shape[1]) + b"\x86" + dtype + b"(" + state + b"tb"
    )
    content += b"\x89" + b"T" + struct.pack("<i", len(raw)) + raw + b"tb"
    items = text(b"data") + array + content
    items += text(b"labels") + b"](" + b"".join(number(int(k)) for k in labels) + b"e"
    items += text(b"batch_label") + text(b"training batch 1 of 5")
    return b"\x80\x02}(" + items + b"u."


def batch(n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (n, 3072)).astype(np.uint8), rng.integers(0, 10, n)


def test_batch_as_python_2_wrote_it():
    pixels, labels = batch(4)
    raw = python2_batch(pixels, labels)
    with warnings.catch_warnings():  # numpy says that the pickle's name for it is old
        warnings.simplefilter("ignore", DeprecationWarning)
        plain = pickle.loads(raw, encoding="bytes")
    assert (plain[b"data"] == pixels).all()  # the opcodes above are a genuine pickle
    found = unpickle(raw, "batch")
    assert (found[0] == pixels).all()
    assert (found[1] == labels).all()


@pytest.mark.parametrize("order", ["C", "F"])
def test_batch_as_this_python_writes_it(order):
    pixels, labels = batch(3)
    raw = pickle.dumps({b"data": np.array(pixels, order=order), b"labels": labels.tolist()}, protocol=3)
    found = unpickle(raw, "batch")
    assert (found[0] == pixels).all()


def test_channels_last_by_hand():
    pixels, _ = batch(2)
    found = channels_last(pixels)
    for row, column, colour in ((0, 0, 0), (0, 0, 2), (5, 30, 1), (31, 31, 2)):
        assert found[1, (row * 32 + column) * 3 + colour] == pixels[1, colour * 1024 + row * 32 + column]


class Touch:
    """An object whose pickle, loaded in the ordinary way, makes a file."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return (open, (self.path, "w"))


def hostile(path):
    name = str(path).encode()
    call = b"(" + b"V" + name + b"\nVw\nt"
    pixels, labels = batch(1)
    good = python2_batch(pixels, labels)
    return {
        "reduce": pickle.dumps({b"data": Touch(path), b"labels": [1]}),
        "protocol 0": b"cio\nopen\n" + call + b"R.",
        "inst": b"(V" + name + b"\nVw\niio\nopen\n.",
        "obj": b"(cio\nopen\nV" + name + b"\nVw\no.",
        "before good content": b"\x80\x02cio\nopen\n" + call + b"R0" + good[2:],
        "stack global": b"\x80\x04\x8c\x02io\x8c\x04open\x93" + call + b"R.",
        "numpy beyond arrays": b"cnumpy\nsave\n" + call + b"R.",
        "dotted name": b"\x80\x04\x8c\x05numpy\x8c\x0dcore.os.system\x93" + call + b"R.",
        "getattr": b"cbuiltins\ngetattr\n(cnumpy\nndarray\nV__class__\ntR.",
        "state of the class": b"\x80\x02cnumpy\ndtype\n}U\x04textU\x01xsb.",
        "persistent id": b"Pio.open\n.",
        "extension": b"\x80\x02\x82\x01.",
    }


@pytest.mark.parametrize("kind", list(hostile("x")))
def test_hostile_pickles_are_refused_and_run_nothing(kind, tmp_path):
    target = tmp_path / "executed"
    with pytest.raises(InputError, match="is not a CIFAR-10 batch or is corrupt"):
        unpickle(hostile(target)[kind], "batch")
    assert not target.exists()


@pytest.mark.parametrize("kind", ["reduce", "protocol 0", "inst", "obj", "before good content", "stack global"])
def test_those_pickles_are_live(kind, tmp_path):
    """Negative control: loaded in the ordinary way each of them does make the file."""
    target = tmp_path / "executed"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = pickle.loads(hostile(target)[kind], encoding="bytes")
        if hasattr(found, "close"):
            found.close()
        elif isinstance(found, dict) and hasattr(found[b"data"], "close"):
            found[b"data"].close()
    assert target.exists()


@pytest.mark.parametrize(
    "content",
    [
        {b"data": np.zeros((2, 3072)), b"labels": [0, 1]},
        {b"data": np.zeros((2, 3072), np.int8), b"labels": [0, 1]},
        {b"data": np.zeros((2, 100), np.uint8), b"labels": [0, 1]},
        {b"data": np.zeros((2, 3072), np.uint8), b"labels": [0]},
        {b"data": np.zeros((2, 3072), np.uint8), b"labels": [0, 10]},
        {b"data": np.zeros((2, 3072), np.uint8), b"labels": [0, -1]},
        {b"data": np.zeros((2, 3072), np.uint8), b"labels": ["a", "b"]},
        {b"data": np.zeros((0, 3072), np.uint8), b"labels": []},
        {b"labels": [0, 1]},
        [1, 2],
    ],
)
def test_other_content_is_refused(content):
    with pytest.raises(InputError, match="is not a CIFAR-10 batch or is corrupt"):
        unpickle(pickle.dumps(content, protocol=3), "batch")


def test_truncated_batches_are_refused():
    raw = python2_batch(*batch(2))
    for end in (0, 1, 10, 100, 3000, len(raw) - 1):
        with pytest.raises(InputError, match="corrupt"):
            unpickle(raw[:end], "batch")


@pytest.fixture
def archive(folder, monkeypatch):
    """A whole archive of 5 x 8 + 6 images in the local folder, with a checksum of its own."""
    path = folder / "cifar-10-python.tar.gz"
    batches = {f"data_batch_{i}": batch(8, i) for i in range(1, 6)} | {"test_batch": batch(6, 9)}
    with tarfile.open(path, "w:gz") as packed:
        for name, (pixels, labels) in batches.items():
            raw = python2_batch(pixels, labels)
            info = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
            info.size = len(raw)
            packed.addfile(info, io.BytesIO(raw))
    monkeypatch.setattr(images, "CIFAR_SHA256", hashlib.sha256(path.read_bytes()).hexdigest())
    return path, batches


def test_whole_archive_in_file_order(archive):
    path, batches = archive
    data = load("cifar10", P=40, P_test=6, standardise="none")
    pixels = np.concatenate([batches[f"data_batch_{i}"][0] for i in range(1, 6)])
    labels = np.concatenate([batches[f"data_batch_{i}"][1] for i in range(1, 6)])
    planes = pixels.reshape(40, 3, 32, 32)
    assert (data.X.reshape(40, 32, 32, 3)[..., 1] == planes[:, 1]).all()
    assert (data.y == np.where(labels % 2 == 0, 1, -1)).all()
    assert (data.y_test == np.where(batches["test_batch"][1] % 2 == 0, 1, -1)).all()
    assert data.provenance["sha256"] == {path.name: images.CIFAR_SHA256}
    assert data.provenance["test"]["from"] == "the test split"


def test_whole_archive_is_preferred_to_pieces(archive, folder):
    np.savez(folder / "cifar10_train_first3.npz", images=np.zeros((3, 32, 32, 3), np.uint8), labels=np.array([0, 1, 2]))
    assert load("cifar10", P=20).provenance["chosen from"] == "all 40 images of the training split"


def test_truncated_or_changed_archive(archive):
    path, _ = archive
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) // 2])
    with pytest.raises(InputError, match=r"cifar-10-python.tar.gz is corrupt, truncated or another file"):
        load("cifar10", P=10)
    # The readers behind the checksum have errors of their own: cut, empty, and without a member.
    for content in (raw[: len(raw) // 2], b"", raw[:-2000] + bytes(2000)):
        path.write_bytes(content)
        with pytest.raises(InputError, match="corrupt"):
            read_archive(path, hashlib.sha256(content).hexdigest(), "train")
    with tarfile.open(path, "w:gz") as packed:
        packed.addfile(tarfile.TarInfo("cifar-10-batches-py/readme.html"), io.BytesIO(b""))
    with pytest.raises(InputError, match="data_batch_1"):
        read_archive(path, hashlib.sha256(path.read_bytes()).hexdigest(), "train")
