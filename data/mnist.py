"""The four idx files of MNIST and of Fashion-MNIST: checksums, addresses, and where a split is found."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from data import download, idx, local
from data.local import Images


@dataclass(frozen=True)
class IdxFile:
    """One gzipped idx file of a set: its name, the sha256 of the download and of the unzipped bytes."""

    name: str
    gz: str
    raw: str


@dataclass(frozen=True)
class IdxSet:
    """Four idx files: (images, labels) of each split, where they are downloaded from, and where they may lie locally."""

    stem: str
    urls: tuple[str, ...]
    subfolders: tuple[str, ...]
    splits: dict[str, tuple[IdxFile, IdxFile]]


MNIST = IdxSet(
    "mnist",
    ("https://ossci-datasets.s3.amazonaws.com/mnist/", "https://storage.googleapis.com/cvdf-datasets/mnist/"),
    ("", "mnist", "MNIST/raw"),
    {
        "train": (
            IdxFile(
                "train-images-idx3-ubyte",
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
            ),
            IdxFile(
                "train-labels-idx1-ubyte",
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
                "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
            ),
        ),
        "test": (
            IdxFile(
                "t10k-images-idx3-ubyte",
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
            ),
            IdxFile(
                "t10k-labels-idx1-ubyte",
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
                "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
            ),
        ),
    },
)

FASHION = IdxSet(
    "fashion_mnist",
    ("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",),
    ("", "fashion-mnist", "FashionMNIST/raw"),
    {
        "train": (
            IdxFile(
                "train-images-idx3-ubyte",
                "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
                "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
            ),
            IdxFile(
                "train-labels-idx1-ubyte",
                "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
                "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
            ),
        ),
        "test": (
            IdxFile(
                "t10k-images-idx3-ubyte",
                "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
                "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
            ),
            IdxFile(
                "t10k-labels-idx1-ubyte",
                "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
                "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
            ),
        ),
    },
)

# MNIST and Fashion-MNIST share their file names: a file of the other set in a flat folder is passed over, not an error.
_KNOWN = {file.raw for one in (MNIST, FASHION) for pair in one.splits.values() for file in pair}


def _file(one: IdxSet, file: IdxFile, fetch: bool) -> tuple[np.ndarray, str, str] | None:
    """(array, file name, its sha256) from the local folder, the cache or, with `fetch`, a download; None when absent."""
    for path in local.find_all((f"{file.name}.gz", file.name), one.subfolders):
        raw = idx.payload(path)
        if hashlib.sha256(raw).hexdigest() not in _KNOWN - {file.raw}:
            idx.check(raw, file.raw, path.name)
            return idx.parse(raw, path.name), path.name, local.file_sha256(path)
    kept = f"{one.stem}-{file.name}.gz"
    at = download.cached(kept, file.gz)
    if at is None and fetch:
        at = download.download([f"{url}{file.name}.gz" for url in one.urls], kept, file.gz)
    if at is None:
        return None
    raw = idx.payload(at)
    idx.check(raw, file.raw, at.name)
    return idx.parse(raw, at.name), at.name, local.file_sha256(at)


def split(one: IdxSet, part: str, fetch: bool) -> Images | None:
    """The `train` or `test` part, in file order; None where a file is not at hand and `fetch` is False.

    Raises InputError for a damaged local file or a failed download.
    """
    found = [_file(one, file, fetch) for file in one.splits[part]]
    if found[0] is None or found[1] is None:
        return None
    (pixels, image_file, image_sha), (labels, label_file, label_sha) = found[0], found[1]
    n = len(labels)
    files = {image_file: image_sha, label_file: label_sha}
    return Images(pixels.reshape(n, -1), labels.astype(np.int64), np.arange(n), files)
