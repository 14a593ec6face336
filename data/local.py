"""Files at hand: the folder named by SADDLECHECK_DATA, whole original files in it, or `.npz` pieces of a set."""

from __future__ import annotations

import hashlib
import os
import re
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from data import arrays
from data.errors import InputError

VARIABLE = "SADDLECHECK_DATA"


def folders() -> list[Path]:
    """The folder that SADDLECHECK_DATA names and its `data` subfolder; none when the variable is unset or empty.

    Raises InputError where the variable names no folder.
    """
    text = os.environ.get(VARIABLE, "").strip()
    if not text:
        return []
    top = Path(text).expanduser()
    if not top.is_dir():
        raise InputError(f"{VARIABLE} = {text!r} is not a folder: name the folder that holds the data, or unset it")
    return [folder for folder in (top, top / "data") if folder.is_dir()]


def find_all(names: Sequence[str], subfolders: Sequence[str] = ("",)) -> list[Path]:
    """Every file of one of these names in the folders and the given subfolders of theirs."""
    places = (folder / sub / name for folder in folders() for sub in subfolders for name in names)
    return [path for path in places if path.is_file()]


def file_sha256(path: Path) -> str:
    """sha256 of a file's bytes, as hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_npz(path: Path, keys: Sequence[str], optional: Sequence[str] = ()) -> dict[str, np.ndarray]:
    """Arrays of an `.npz` by name, never unpickling. Raises InputError for a missing key or a damaged file."""
    try:
        with path.open("rb") as file:
            if file.read(6) == b"\x93NUMPY":
                raise InputError(f"{path.name} is a single array: save it with numpy.savez(path, X=X, y=y)")
            file.seek(0)
            stored = arrays.read(file, (*keys, *optional))
            missing = [key for key in keys if key not in stored]
            if missing:
                with zipfile.ZipFile(file) as archive:
                    there = ", ".join(arrays.names(archive)) or "none"
                raise InputError(f"{path.name} has no array {missing[0]!r}: it needs {', '.join(keys)} and has {there}")
            return stored
    except InputError:
        raise
    except arrays.DAMAGE as error:
        raise InputError(f"{path.name} is damaged or not an .npz of plain arrays ({error})") from None


@dataclass(frozen=True, eq=False)
class Images:
    """Images of one split: pixels (n, N0) uint8, labels (n,), index (n,) ascending positions in the original file.

    files maps each file read to its sha256; part says in words which part of the split this is, None for the whole.
    """

    pixels: np.ndarray
    labels: np.ndarray
    index: np.ndarray
    files: dict[str, str]
    part: str | None = None


def _positions(path: Path, stem: str, count: int) -> np.ndarray:
    """Where a piece without `index` lies in the original file, as its name says."""
    tail = path.stem.removeprefix(stem)
    first, span = re.fullmatch(r"_first(\d+)", tail), re.fullmatch(r"_(\d+)_(\d+)", tail)
    if tail == "":
        return np.arange(count)
    if first and int(first[1]) == count:
        return np.arange(count)
    if span and int(span[2]) - int(span[1]) == count:
        return np.arange(int(span[1]), int(span[2]))
    raise InputError(
        f"{path.name}: its {count} images have no known place in the original file; add an array `index` with their "
        f"positions, or name it {stem}_first{count}.npz or {stem}_FROM_TO.npz"
    )


def pieces(stem: str, N0: int, total: int) -> Images | None:
    """All `stem*.npz` (`images`, `labels`, optionally `index`) of the folders as one, or None when there are none.

    Raises InputError for a piece of another shape, out of range, or at odds with another piece.
    """
    found: dict[str, Path] = {}
    for folder in folders():
        for path in sorted(folder.glob(f"{stem}*.npz")):
            found.setdefault(path.name, path)
    if not found:
        return None
    parts = []
    for path in found.values():
        stored = read_npz(path, ("images", "labels"), ("index",))
        pixels, labels = stored["images"], stored["labels"]
        n = len(labels) if labels.ndim == 1 else -1
        if n < 1 or pixels.dtype != np.uint8 or pixels.ndim < 2 or len(pixels) != n or pixels[0].size != N0:
            raise InputError(
                f"{path.name}: images {pixels.dtype} {pixels.shape} and labels {labels.shape} are not (n, ...) bytes with "
                f"{N0} a pattern and (n,) labels"
            )
        if labels.dtype.kind not in "iu" or labels.min() < 0 or labels.max() > 9:
            raise InputError(f"{path.name}: labels must be whole numbers 0 to 9")
        index = stored["index"] if "index" in stored else _positions(path, stem, n)
        good = index.dtype.kind in "iu" and index.shape == (n,) and len(np.unique(index)) == n
        if not good or index.min() < 0 or index.max() >= total:
            raise InputError(f"{path.name}: `index` must hold {n} different whole numbers from 0 to {total - 1}")
        parts.append((index.astype(np.int64), pixels.reshape(n, N0), labels.astype(np.int64)))
    index, pixels, labels = (np.concatenate([part[i] for part in parts]) for i in range(3))
    order = np.argsort(index, kind="stable")
    index, pixels, labels = index[order], pixels[order], labels[order]
    again = np.flatnonzero(index[1:] == index[:-1])
    for i in again:
        if labels[i] != labels[i + 1] or (pixels[i] != pixels[i + 1]).any():
            raise InputError(f"{', '.join(found)}: two files differ on image {index[i]}; remove the wrong one")
    keep = np.ones(len(index), dtype=bool)
    keep[again + 1] = False
    files = {name: file_sha256(path) for name, path in found.items()}
    part = None if keep.sum() == total else f"{int(keep.sum())} of {total} images"
    return Images(pixels[keep], labels[keep], index[keep], files, part)
