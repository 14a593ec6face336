"""Reader of the idx format of MNIST and Fashion-MNIST, gzipped or not, with checksum; nothing is executed."""

from __future__ import annotations

import gzip
import hashlib
import math
import struct
import zlib
from pathlib import Path

import numpy as np

from data.errors import InputError

LARGEST = 64 << 20  # bytes, unzipped: the largest genuine file has 47 MB


def payload(path: Path) -> bytes:
    """The file's bytes, unzipped when they are gzip. Raises InputError for a truncated or corrupt file, or one above LARGEST bytes."""
    try:
        with path.open("rb") as file:
            zipped = file.read(2) == b"\x1f\x8b"
        # No more than one byte too many is ever unpacked.
        with gzip.open(path) if zipped else path.open("rb") as file:
            raw = file.read(LARGEST + 1)
        if len(raw) > LARGEST:
            raise InputError(f"{path.name} holds more than {LARGEST >> 20} MiB, which no idx file of these sets does")
        return raw
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path.name} is corrupt or truncated ({error}): fetch it again") from None


def check(raw: bytes, sha256: str, name: str) -> None:
    """Raises InputError unless the unzipped bytes have this sha256 (gzip headers of genuine copies differ)."""
    found = hashlib.sha256(raw).hexdigest()
    if found != sha256:
        raise InputError(
            f"{name} is corrupt, truncated or another file: sha256 of its unzipped bytes is {found[:16]}..., "
            f"not {sha256[:16]}...; delete it and fetch it again"
        )


def parse(raw: bytes, name: str) -> np.ndarray:
    """The uint8 array of an idx file: magic 0 0 8 d, then d big-endian sizes, then the entries.

    Raises InputError for another magic number or a length that the sizes do not ask for.
    """
    if len(raw) < 4 or raw[:3] != b"\x00\x00\x08" or not 1 <= raw[3] <= 4:
        raise InputError(f"{name} is not an idx file of bytes: it begins with {raw[:4].hex() or 'nothing'}")
    start = 4 + 4 * raw[3]
    if len(raw) < start:
        raise InputError(f"{name} is truncated: {len(raw)} bytes are less than its header")
    shape = struct.unpack(f">{raw[3]}I", raw[4:start])
    wanted = start + math.prod(shape)
    if len(raw) != wanted or len(raw) == start:
        raise InputError(f"{name} is truncated or corrupt: {len(raw)} bytes, where its header asks for {wanted}")
    return np.frombuffer(raw, dtype=np.uint8, offset=start).reshape(shape)
