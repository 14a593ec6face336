"""Hostile files of every kind that the program reads, and the means to see that none of them did anything."""

from __future__ import annotations

import io
import pickle
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from tests_support.synthetic import run as synthetic_run

import sampling  # noqa: F401  (before any test that watches memory)
from sampling.run import Run


class Bomb:
    """Unpickled, it makes a file: the trace that code of the file has run."""

    def __init__(self, trace: Path):
        self.trace = str(trace)

    def __reduce__(self):
        return (Path.touch, (Path(self.trace),))


@pytest.fixture
def trace(tmp_path):
    """The file that a live pickle makes; it must never be there at the end of a test."""
    path = tmp_path / "the file's code has run"
    yield path
    assert not path.exists()


@pytest.fixture
def live(trace):
    """A pickle that leaves the trace, proved to be live."""
    raw = pickle.dumps(Bomb(trace))
    pickle.loads(raw)
    assert trace.exists()
    trace.unlink()
    return raw


def npy(shape, kind: str = "<f8", payload: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    """A .npy with any header that is wanted, and whatever bytes after it."""
    header = f"{{'descr': {kind!r}, 'fortran_order': False, 'shape': {shape!r}, }}\n".encode()
    length = struct.pack("<H" if version == b"\x01\x00" else "<I", len(header))
    return b"\x93NUMPY" + version + length + header + payload


def npz(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    """An archive of these members, with the given bytes."""
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, raw in members.items():
            archive.writestr(f"{name}.npy", raw)
    return path


def plain(array) -> bytes:
    """A genuine .npy."""
    out = io.BytesIO()
    np.save(out, np.asarray(array))
    return out.getvalue()


def zeros(shape, kind: str = "<f8") -> tuple[bytes, int, int]:
    """(deflated bytes, crc, length) of a genuine .npy of zeros, made without holding it."""
    length = int(np.prod(shape, dtype=np.int64)) * np.dtype(kind).itemsize
    squeeze, crc, out = zlib.compressobj(9, zlib.DEFLATED, -15), 0, []
    head, block = npy(shape, kind), bytes(1 << 20)
    for piece in [head, *[block] * (length >> 20), bytes(length & ((1 << 20) - 1))]:
        crc = zlib.crc32(piece, crc)
        out.append(squeeze.compress(piece))
    return b"".join([*out, squeeze.flush()]), crc, len(head) + length


def deflated(path: Path, name: str, packed: bytes, crc: int, length: int) -> Path:
    """An archive with one member that is given packed already."""
    raw = f"{name}.npy".encode()
    local = struct.pack("<4sHHHHHIIIHH", b"PK\x03\x04", 20, 0, 8, 0, 0, crc, len(packed), length, len(raw), 0) + raw
    entry = struct.pack(
        "<4sHHHHHHIIIHHHHHII", b"PK\x01\x02", 20, 20, 0, 8, 0, 0, crc, len(packed), length, len(raw), 0, 0, 0, 0, 0, 0
    )
    entry += raw
    end = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, 1, 1, len(entry), len(local) + len(packed), 0)
    path.write_bytes(local + packed + entry + end)
    return path


@pytest.fixture
def genuine() -> Run:
    """A Run with a complete manifest, as a sampler would have made it."""
    run = synthetic_run(np.random.default_rng(0), chains=4, draws=40)
    run.manifest["problem"] |= {"N1": 3, "T": 0.5, "lambda0": 1.0, "activation": "erf", "fingerprint": "0" * 64}
    return run
