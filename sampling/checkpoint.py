"""Checkpoints of a running sampler: plain arrays and JSON in one npz, written atomically; nothing is ever unpickled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from data.arrays import DAMAGE
from data.arrays import read as read_arrays
from data.errors import InputError
from sampling.atomic import replacing

META = "meta.json"
FORMAT = 3


def write(path: Path, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write under a temporary name in the same folder, flush to disk, rename: a kill leaves the last whole checkpoint."""
    packed: dict[str, Any] = {
        META: np.frombuffer(json.dumps({"format": FORMAT} | meta).encode(), dtype=np.uint8),
        **arrays,
    }
    with replacing(path) as temporary, open(temporary, "wb") as out:
        np.savez(out, **packed)


def read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The JSON part and the arrays. Raises InputError where the file is not a checkpoint, or damaged (npz carries a CRC)."""
    try:
        with open(path, "rb") as source:
            arrays = read_arrays(source)
        meta = json.loads(arrays.pop(META).tobytes())
        if not isinstance(meta, dict):
            raise ValueError("its settings are not a table")
    except DAMAGE as error:
        raise InputError(f"{path}: not a readable checkpoint ({error}); delete it to start again") from error
    if meta.get("format") != FORMAT:
        raise InputError(
            f"{path}: a checkpoint of another version of saddlecheck; finish it there, or delete it to start again"
        )
    return meta, arrays


def section(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """The arrays whose names begin with `prefix.`, without it."""
    return {name.removeprefix(f"{prefix}."): value for name, value in arrays.items() if name.startswith(f"{prefix}.")}


def prefixed(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The inverse of `section`."""
    return {f"{prefix}.{name}": value for name, value in arrays.items()}
