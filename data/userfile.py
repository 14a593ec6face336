"""A user's own `.npz`: X (n, N0), y (n,), optionally classes (n,) and a test split; read without unpickling."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from data import local
from data.errors import InputError
from data.partition import Partition, parse
from data.selection import Pool

TEST = ("X_test", "y_test", "classes_test")


@dataclass(frozen=True, eq=False)
class UserFile:
    """Patterns to choose from, with how labels were read; a test pool where the file has X_test and y_test."""

    pool: Pool
    test: Pool | None
    facts: dict[str, Any]


def _numbers(file: str, name: str, array: np.ndarray, ndim: int, length: int | None = None) -> np.ndarray:
    """`array` as float64, with shape, type and finiteness checked."""
    wanted = "(patterns, inputs)" if ndim == 2 else f"({'patterns' if length is None else length},)"
    if array.dtype.kind not in "biuf":
        raise InputError(f"{file}: {name} holds {array.dtype}, not real numbers")
    if array.ndim != ndim or array.size == 0 or (length is not None and len(array) != length):
        raise InputError(f"{file}: {name} must have shape {wanted}; it has shape {array.shape}")
    array = array.astype(np.float64)
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        where = tuple(int(i) for i in bad[0])
        raise InputError(f"{file}: {name}{list(where)} is {array[where]}: every entry must be a finite number")
    return array


def _two_values(file: str, name: str, values: np.ndarray, mend: str) -> tuple[np.ndarray, tuple[float, float]]:
    """(+1/-1, (minus value, plus value)): the larger of exactly two values is +1."""
    found = np.unique(values)
    if len(found) == 1:
        raise InputError(f"{file}: {name} holds only the value {found[0]:g}: <D^2> needs patterns of two classes")
    if len(found) > 2:
        some = ", ".join(f"{value:g}" for value in found[:4])
        raise InputError(f"{file}: {name} holds {len(found)} different values ({some}, ...), not two; {mend}")
    low, high = float(found[0]), float(found[1])
    return np.where(values == high, 1.0, -1.0), (low, high)


def _mapped(file: str, name: str, values: np.ndarray, pair: tuple[float, float]) -> np.ndarray:
    if not np.isin(values, pair).all():
        raise InputError(f"{file}: {name} must hold the two values of the training rows, {pair[0]:g} and {pair[1]:g}")
    return np.where(values == pair[1], 1.0, -1.0)


def _class_indices(file: str, values: np.ndarray, text: str) -> np.ndarray:
    if (values != np.round(values)).any():
        raise InputError(f"{file}: classes = {text!r} needs y to hold whole-number class indices; y has other values")
    return values.astype(np.int64)


def _pool(X: np.ndarray, y: np.ndarray, sign: np.ndarray) -> Pool:
    return Pool(X, y, sign.astype(np.int8), np.arange(len(X)))


def read(path: Path, classes: str | None = None) -> UserFile:
    """The file's patterns, with labels read by one of three rules, which `facts` records:

    1. y has two values: the larger is +1, the smaller -1. `classes` in the file, where present, is read the same way and
       is the partition of <D^2>; otherwise the partition is that of y.
    2. y has other values (a regression target, or all 0) and the file has `classes` of two values: y is kept as it is.
    3. the argument `classes` ("0/1", "even/odd", ...): y holds class indices, and the partition picks rows and labels.

    X_test, y_test (and classes_test where the file has classes) are a test split, read by the same rule.

    Raises InputError for a missing or damaged file, a missing array, wrong shapes, entries that are not finite numbers,
    one class only, or labels of more than two values without `classes`.
    """
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}")
    file = path.name
    stored = local.read_npz(path, ("X", "y"), ("classes", *TEST))
    X = _numbers(file, "X", stored["X"], 2)
    y = _numbers(file, "y", stored["y"], 1, len(X))
    test_names = [name for name in TEST if name in stored]
    if test_names and not ("X_test" in stored and "y_test" in stored):
        raise InputError(f"{file}: a test split needs both X_test and y_test; the file has only {test_names[0]}")
    Xt = _numbers(file, "X_test", stored["X_test"], 2) if test_names else None
    if Xt is not None and Xt.shape[1] != X.shape[1]:
        raise InputError(f"{file}: X_test has {Xt.shape[1]} inputs a pattern, X has {X.shape[1]}")
    yt = _numbers(file, "y_test", stored["y_test"], 1, len(Xt)) if Xt is not None else None
    facts: dict[str, Any] = {"source": file, "sha256": {file: local.file_sha256(path)}, "licence": "the user's own"}
    test = None

    if classes is not None:
        if "classes" in stored:
            raise InputError(f"{file} has its own array `classes`: leave out classes = {classes!r}, or the array")
        labels = _class_indices(file, y, classes)
        partition: Partition = parse(classes, [int(k) for k in np.unique(labels)])
        sign = partition.sign(labels)
        facts["classes"] = partition.describe()
        if Xt is not None and yt is not None:
            sign_t = partition.sign(_class_indices(file, yt, classes))
            test = _pool(Xt, sign_t.astype(np.float64), sign_t)
        return UserFile(_pool(X, sign.astype(np.float64), sign), test, facts)

    if "classes" not in stored:
        mend = (
            "give an array `classes` of two values beside it (y is then kept as a real-valued target), or choose among "
            'whole-number class indices with classes="0/1", "even/odd", ...'
        )
        y, pair = _two_values(file, "y", y, mend)
        facts["labels read"] = {"y": {f"{pair[1]:g}": 1, f"{pair[0]:g}": -1}}
        if Xt is not None and yt is not None:
            yt = _mapped(file, "y_test", yt, pair)
            test = _pool(Xt, yt, yt)
        return UserFile(_pool(X, y, y), test, facts)

    sign, pair = _two_values(
        file,
        "classes",
        _numbers(file, "classes", stored["classes"], 1, len(X)),
        "it is the partition of <D^2>: two values",
    )
    facts["labels read"] = {"classes": {f"{pair[1]:g}": 1, f"{pair[0]:g}": -1}}
    values = np.unique(y)
    y_pair = (float(values[0]), float(values[1])) if len(values) == 2 else None
    if y_pair is None:
        facts["labels read"]["y"] = "kept as it is"
    else:
        y = _mapped(file, "y", y, y_pair)
        facts["labels read"]["y"] = {f"{y_pair[1]:g}": 1, f"{y_pair[0]:g}": -1}
    if Xt is not None and yt is not None:
        if "classes_test" not in stored:
            raise InputError(f"{file}: with `classes` a test split needs classes_test too")
        sign_t = _numbers(file, "classes_test", stored["classes_test"], 1, len(Xt))
        sign_t = _mapped(file, "classes_test", sign_t, pair)
        test = _pool(Xt, yt if y_pair is None else _mapped(file, "y_test", yt, y_pair), sign_t)
    return UserFile(_pool(X, y, sign), test, facts)
