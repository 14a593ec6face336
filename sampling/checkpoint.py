"""Checkpoints of a running sampler: plain arrays and JSON in one npz, written atomically; nothing is ever unpickled."""

from __future__ import annotations

import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from data.errors import InputError

META = "meta.json"


def write(path: Path, meta: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write under a temporary name in the same folder, flush to disk, rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=path.name, suffix=".part", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as out:
            packed: dict[str, Any] = {META: np.frombuffer(json.dumps(meta).encode(), dtype=np.uint8), **arrays}
            np.savez(out, **packed)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The JSON part and the arrays. Raises InputError where the file is not a checkpoint."""
    try:
        with open(path, "rb") as source, np.load(source, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        meta = json.loads(arrays.pop(META).tobytes())
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError) as error:
        raise InputError(f"{path}: not a readable checkpoint ({error}); delete it to start again") from error
    return meta, arrays


def section(arrays: dict[str, np.ndarray], prefix: str) -> dict[str, np.ndarray]:
    """The arrays whose names begin with `prefix.`, without it."""
    return {name.removeprefix(f"{prefix}."): value for name, value in arrays.items() if name.startswith(f"{prefix}.")}


def prefixed(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The inverse of `section`."""
    return {f"{prefix}.{name}": value for name, value in arrays.items()}
