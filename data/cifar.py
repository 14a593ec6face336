"""Reader of the CIFAR-10 python archive. Its members are pickles: they are read by an unpickler that executes nothing."""

from __future__ import annotations

import hashlib
import io
import pickle
import tarfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from data.errors import InputError

FOLDER = "cifar-10-batches-py"
BATCHES = {"train": [f"data_batch_{i}" for i in range(1, 6)], "test": ["test_batch"]}
PIXELS = 3 * 32 * 32


class _Type:
    """Stands where a pickle names a dtype: keeps the name, never calls numpy with what the file says."""

    def __init__(self, text: Any = None, *flags: Any) -> None:
        self.text = text.decode("ascii") if isinstance(text, bytes) else text

    def __setstate__(self, state: Any) -> None:
        pass  # byte order and flags: a type of one byte has none


class _Array:
    """Stands where a pickle rebuilds an array: keeps the state (version, shape, dtype, order, bytes)."""

    def __init__(self, *arguments: Any) -> None:
        self.state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def bytes_array(self) -> np.ndarray:
        _, shape, kind, fortran, raw = self.state
        if not isinstance(kind, _Type) or kind.text not in ("u1", "|u1", "uint8"):
            raise ValueError("its array is not of unsigned bytes")
        return np.frombuffer(raw, dtype=np.uint8).reshape(tuple(shape), order="F" if fortran else "C")


class _Unpickler(pickle.Unpickler):
    """Admits plain containers, and stand-ins for the three names that numpy pickles an array by; refuses all else."""

    ADMITTED = {  # noqa: RUF012
        ("numpy.core.multiarray", "_reconstruct"): _Array,
        ("numpy._core.multiarray", "_reconstruct"): _Array,
        ("numpy", "ndarray"): _Array,
        ("numpy", "dtype"): _Type,
    }

    def find_class(self, module: str, name: str) -> Any:
        try:
            return self.ADMITTED[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which a picture file has no use for") from None


def unpickle(raw: bytes, name: str) -> tuple[np.ndarray, np.ndarray]:
    """(n, 3072) uint8 pixels, channels first as stored, and (n,) labels of one batch; no code of the file is run.

    Raises InputError for a pickle that names anything but an array of bytes and plain containers, or is no CIFAR batch.
    """
    try:
        content = _Unpickler(io.BytesIO(raw), encoding="bytes").load()
        pixels = content[b"data"].bytes_array()
        labels = np.array(content[b"labels"])
        good = pixels.ndim == 2 and pixels.shape[1] == PIXELS and labels.shape == (len(pixels),)
        if not good or labels.dtype.kind != "i" or labels.min() < 0 or labels.max() > 9:
            raise ValueError(f"data {pixels.shape} and labels {labels.shape} are not those of CIFAR-10")
    except Exception as error:  # a hostile or broken pickle can raise anything
        raise InputError(f"{name} is not a CIFAR-10 batch or is corrupt ({error}): fetch the archive again") from None
    return pixels, labels.astype(np.int64)


def channels_last(pixels: np.ndarray) -> np.ndarray:
    """(n, 3072) with colours fastest (row, column, colour), from the archive's colour planes (colour, row, column)."""
    return np.ascontiguousarray(pixels.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)).reshape(len(pixels), PIXELS)


def read_archive(path: Path, sha256: str, split: str) -> tuple[np.ndarray, np.ndarray]:
    """(n, 3072) uint8 pixels, channels last, and (n,) labels of `train` or `test`, in file order.

    Raises InputError where the file's sha256 is another, or a member is missing or damaged.
    """
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        raise InputError(
            f"{path.name} is corrupt, truncated or another file: its sha256 is {found[:16]}..., not {sha256[:16]}...; "
            "delete it and fetch it again"
        )
    parts = []
    try:
        with tarfile.open(path, "r:*") as archive:
            for batch in BATCHES[split]:
                member = archive.extractfile(f"{FOLDER}/{batch}")
                if member is None:
                    raise KeyError(f"{FOLDER}/{batch} is not a file")
                parts.append(unpickle(member.read(), f"{path.name}: {batch}"))
    except (tarfile.TarError, KeyError, OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path.name} is corrupt or truncated ({error}): fetch it again") from None
    return channels_last(np.concatenate([p for p, _ in parts])), np.concatenate([labels for _, labels in parts])
