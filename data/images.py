"""The image sets: digits and Fashion-MNIST (embedded), MNIST and CIFAR-10 (local folder, cache or download)."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from data import cifar, download, idx, local, mnist
from data.errors import InputError
from data.local import Images

FILES = Path(__file__).parent / "files"

# A source of one data set: training images, and test images where a test split is at hand and was asked for.
Source = tuple[Images, Images | None]


@dataclass(frozen=True)
class ImageSet:
    """What is known of a set. `sources(want_test)` yields its sources in order of preference, each read only when taken.

    counts are the sizes of the classes in the whole training split: where all images of a class are at hand, file order
    within that class is known even if the rest of the file is missing.
    """

    name: str
    summary: str
    licence: str
    shape: tuple[int, ...]
    class_names: tuple[str, ...]
    counts: tuple[int, ...]
    balanced: bool
    embedded: bool
    sources: Callable[[bool], Iterator[Source]]

    @property
    def N0(self) -> int:
        return int(np.prod(self.shape))


# ---- digits and the Fashion-MNIST subset, beside this file ----

DIGITS_SHA256 = "09f66e6debdee2cd2b5ae59e0d6abbb73fc2b0e0185d2e1957e9ebb51e23aa22"
FASHION_STEM = "fashion_mnist_train_first2000"
FASHION_CUT = {  # sha256 of the unzipped bytes; files/PROVENANCE.md says how they were cut
    "images-idx3": "71a9f8cec24060d6752b3e4940ce6d6fd729334afa47b735dd553481aa83b53e",
    "labels-idx1": "8983259dfbc9f185f92698916f7daf361704b43ba7d19568cc7bcdeefdc1bece",
}


def read_digits(path: Path, sha256: str = DIGITS_SHA256) -> Images:
    """Images of scikit-learn's digits.csv.gz: 64 pixels 0 to 16 and the digit on each line.

    Raises InputError where the file's sha256 is another.
    """
    raw = path.read_bytes()
    if hashlib.sha256(raw).hexdigest() != sha256:
        raise InputError(f"{path.name} is not the file that was installed (sha256 differs): install saddlecheck again")
    rows = csv.reader(io.StringIO(gzip.decompress(raw).decode("ascii")))
    table = np.array([[int(float(entry)) for entry in row] for row in rows], dtype=np.int64)
    return Images(table[:, :-1].astype(np.uint8), table[:, -1], np.arange(len(table)), {path.name: sha256})


def _digits(want_test: bool) -> Iterator[Source]:
    yield read_digits(FILES / "digits.csv.gz"), None


def _fashion_cut() -> Images:
    arrays, files = [], {}
    for kind, sha256 in FASHION_CUT.items():
        path = FILES / f"{FASHION_STEM}-{kind}-ubyte.gz"
        raw = idx.payload(path)
        idx.check(raw, sha256, path.name)
        arrays.append(idx.parse(raw, path.name))
        files[path.name] = local.file_sha256(path)
    pixels, labels = arrays
    n = len(labels)
    return Images(pixels.reshape(n, -1), labels.astype(np.int64), np.arange(n), files, f"the first {n} of 60000 images")


# ---- MNIST and the whole Fashion-MNIST: four idx files (mnist.py) ----


def _mnist(want_test: bool) -> Iterator[Source]:
    def test(fetch: bool) -> Images | None:
        if not want_test:
            return None
        ready = mnist.split(mnist.MNIST, "test", False) or local.pieces("mnist_test", 784, 10000)
        return ready or (mnist.split(mnist.MNIST, "test", True) if fetch else None)

    whole = mnist.split(mnist.MNIST, "train", False)
    if whole is None:
        part = local.pieces("mnist_train", 784, 60000)
        if part is not None:
            yield part, test(False)
        whole = mnist.split(mnist.MNIST, "train", True)
    assert whole is not None  # a download that fails raises
    yield whole, test(True)


def _fashion(want_test: bool) -> Iterator[Source]:
    # The embedded images come first whenever they suffice, so that a seed means the same on every machine.
    yield _fashion_cut(), None
    whole = mnist.split(mnist.FASHION, "train", True)
    assert whole is not None
    yield whole, mnist.split(mnist.FASHION, "test", True) if want_test else None


# ---- CIFAR-10: one archive ----

CIFAR_FILE = "cifar-10-python.tar.gz"
CIFAR_URLS = (f"https://www.cs.toronto.edu/~kriz/{CIFAR_FILE}",)
CIFAR_SHA256 = "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce"


def _cifar_split(path: Path, split: str) -> Images:
    pixels, labels = cifar.read_archive(path, CIFAR_SHA256, split)
    return Images(pixels, labels, np.arange(len(labels)), {path.name: CIFAR_SHA256})


def _cifar10(want_test: bool) -> Iterator[Source]:
    at = next(iter(local.find_all((CIFAR_FILE,))), None) or download.cached(CIFAR_FILE, CIFAR_SHA256)
    if at is None:
        part = local.pieces("cifar10_train", 3072, 50000)
        if part is not None:
            yield part, local.pieces("cifar10_test", 3072, 10000) if want_test else None
        at = download.download(CIFAR_URLS, CIFAR_FILE, CIFAR_SHA256)
    yield _cifar_split(at, "train"), _cifar_split(at, "test") if want_test else None


DIGIT_NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")

SETS = {
    one.name: one
    for one in (
        ImageSet(
            "digits",
            "8x8 handwritten digits, 1797 images, embedded",
            "BSD-3-Clause (scikit-learn's copy; data/files/digits.LICENSE)",
            (8, 8),
            DIGIT_NAMES,
            (178, 182, 177, 183, 181, 182, 181, 179, 174, 180),
            True,
            True,
            _digits,
        ),
        ImageSet(
            "fashion-mnist",
            "28x28 clothing, the first 2000 training images embedded, all 60000 by download",
            "MIT (data/files/fashion_mnist.LICENSE)",
            (28, 28),
            ("t-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"),
            (6000,) * 10,
            True,
            True,
            _fashion,
        ),
        ImageSet(
            "mnist",
            f"28x28 handwritten digits, 60000 + 10000 images, from the folder {local.VARIABLE} names or by download",
            "CC BY-SA 3.0",
            (28, 28),
            DIGIT_NAMES,
            (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
            False,
            False,
            _mnist,
        ),
        ImageSet(
            "cifar10",
            f"32x32 colour photographs, 50000 + 10000 images, from the folder {local.VARIABLE} names or by download",
            "none stated by its authors: downloaded at run time, never shipped",
            (32, 32, 3),
            ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"),
            (5000,) * 10,
            False,
            False,
            _cifar10,
        ),
    )
}
