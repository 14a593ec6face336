"""Run files that may come from anybody: what an HDF5 file could do beyond holding arrays is refused before it is read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sampling.diagnostics import GATES

if TYPE_CHECKING:
    from sampling.run import Run

GROUPS = ("series", "sums", "fixed", "extra")
NEEDED = (*GATES, "fbar_a")  # series that every reader counts on
MOST = 1000  # objects in a file: ours has some dozens
# What netCDF writes on the placeholder of a dimension, which is never read as a variable.
PLACEHOLDER = b"This is a netCDF dimension but not a netCDF variable."
WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_ .:+-]{0,63}")
# Of the manifest: what readers count on.
PROBLEM: dict[str, tuple[type, ...]] = {
    "N1": (int,), "T": (int, float), "lambda0": (int, float), "lambda1": (int, float), "activation": (str,), "fingerprint": (str,),
}  # fmt: skip
MANIFEST: dict[str, tuple[type, ...]] = {
    "sampler": (str,), "device": (str,), "dtype": (str,), "density": (str,), "seed": (int,), "chains": (int,), "warmup": (int,),
    "draws": (int,), "thin": (int,), "batch": (int,), "acceptance": (list,), "nan_share": (int, float), "settings": (dict,),
    "options": (dict,), "versions": (dict,), "seconds": (dict,), "gradients_per_chain": (int, float), "resumed": (int,),
}  # fmt: skip


def check_file(path: Path) -> None:
    """Raises ValueError where an HDF5 file has anything but plain numbers lying in itself.

    Refused: links to other files or by name, data kept in other files, virtual data, types of varying size or of objects, filters
    (any of which may be code), and arrays that claim more bytes than the file holds for them, which memory would be asked for.
    """
    import h5py

    with h5py.File(path, "r") as file:
        count = 0
        todo: list[Any] = [file]
        while todo:
            group = todo.pop()
            for name in group:
                count += 1
                if count > MOST:
                    raise ValueError(f"it holds more than {MOST} objects")
                link = group.get(name, getlink=True)
                if not isinstance(link, h5py.HardLink):
                    raise ValueError(f"{name!r} is a link, which no run file has")
                one = group[name]
                if isinstance(one, h5py.Group):
                    if group is not file:
                        raise ValueError(f"{name!r} is a group inside a group, which no run file has")
                    todo.append(one)
                elif isinstance(one, h5py.Dataset):
                    _check_dataset(name, one)
                else:
                    raise ValueError(f"{name!r} is neither a group nor an array")


def _check_dataset(name: str, one: Any) -> None:
    if one.external or one.is_virtual:
        raise ValueError(f"{name!r} lies in another file")
    if one.dtype.kind not in "biuf" or one.dtype.hasobject or one.dtype.subdtype is not None:
        raise ValueError(f"{name!r} holds {one.dtype}, not plain numbers")
    if one.chunks is not None or one.id.get_create_plist().get_nfilters():
        raise ValueError(f"{name!r} is stored in pieces or through filters, which no run file is")
    note = one.attrs.get("NAME")
    placeholder = isinstance(note, bytes) and note.startswith(PLACEHOLDER) and one.ndim == 1
    if not placeholder and one.nbytes > one.id.get_storage_size():
        raise ValueError(f"{name!r} claims {one.nbytes} bytes and holds {one.id.get_storage_size()}")


def check_run(run: Run) -> None:
    """Raises ValueError where what was read is not of the shapes, types and words that every reader counts on."""
    series = run.series
    missing = [name for name in NEEDED if name not in series]
    if missing:
        raise ValueError(f"it has no series {missing[0]!r}")
    shape = series["d2"].shape
    for name, value in series.items():
        if value.ndim not in (2, 3) or value.shape[:2] != shape[:2] or value.dtype != np.float64 or not value.size:
            raise ValueError(f"series {name!r} has shape {value.shape} of {value.dtype}")
        if name in NEEDED and value.ndim != 2:
            raise ValueError(f"series {name!r} has shape {value.shape}")
    for name, value in run.sums.items():
        if len(value.shape) < 1 or value.shape[0] != shape[0]:
            raise ValueError(f"sums {name!r} has shape {value.shape}")
    starts, manifest = run.starts, run.manifest
    if not isinstance(starts, list) or len(starts) != shape[0] or not all(_word(one) for one in starts):
        raise ValueError("its starts are not one word a chain")
    if not isinstance(manifest, dict) or not isinstance(manifest.get("problem"), dict):
        raise ValueError("its manifest does not say what problem it was made for")
    for table, wanted in ((manifest, MANIFEST), (manifest["problem"], PROBLEM)):
        for key, kinds in wanted.items():
            # What is said must be of its type; who needs what is not said, says so.
            told: Any = table.get(key)
            if told is not None and (not isinstance(told, kinds) or isinstance(told, bool)):
                raise ValueError(f"its manifest has no proper {key!r}")
    numbers = [*manifest.get("acceptance", []), *manifest.get("seconds", {}).values()]
    if not all(isinstance(one, int | float) for one in numbers):
        raise ValueError("its manifest has no proper 'acceptance' or 'seconds'")


def _word(value: Any) -> bool:
    return isinstance(value, str) and WORD.fullmatch(value) is not None
