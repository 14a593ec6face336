"""Arrays of an `.npz`, read without trust: nothing is unpickled, and a file that claims more than it holds is refused unread."""

from __future__ import annotations

import lzma
import math
import zipfile
import zlib
from collections.abc import Iterable
from typing import IO, BinaryIO

import numpy as np
from numpy.lib import format as npy

LARGEST = 16 << 30  # bytes of all arrays asked for, unpacked
SMALL = 64 << 20  # below this a high compression is nobody's harm
PACKED = 200  # times that genuine numbers and images are compressed at most
MEMBERS = 10_000
KINDS = "biufcSU"  # bool, numbers and text, each of a fixed size
PIECE = 1 << 20

# What a damaged or hostile archive makes the readers raise. MemoryError is left out: sizes are checked before memory is asked for.
DAMAGE = (
    OSError,
    EOFError,
    ValueError,  # of UnicodeDecodeError too
    KeyError,
    IndexError,
    TypeError,
    NotImplementedError,  # of zipfile, for a compression it does not know
    RuntimeError,  # encrypted members
    OverflowError,
    SyntaxError,  # a header that is no literal
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
)


class Unsafe(ValueError):
    """The archive claims or holds what no file of ours does; the text says what."""


def names(archive: zipfile.ZipFile) -> list[str]:
    """Names of the arrays, without `.npy`, in file order. Raises Unsafe for very many members."""
    members = archive.namelist()
    if len(members) > MEMBERS:
        raise Unsafe(f"it has {len(members)} members")
    return [name.removesuffix(".npy") for name in members]


def read(file: BinaryIO, wanted: Iterable[str] | None = None) -> dict[str, np.ndarray]:
    """The arrays of these names that are there; None for all.

    Every claim is checked first: plain types only, as many bytes as shape and type ask for, a compression that genuine data have,
    at most LARGEST in all. Raises Unsafe, or one of DAMAGE for a file that is no such archive.
    """
    if file.read(4) != b"PK\x03\x04":
        raise Unsafe("it is not a zip archive of arrays")
    found: dict[str, np.ndarray] = {}
    total = 0
    with zipfile.ZipFile(file) as archive:
        present = names(archive)
        members = dict(zip(present, archive.infolist(), strict=True))
        for name in present if wanted is None else wanted:
            if name not in members or name in found:
                continue
            info = members[name]
            total += info.file_size
            _check_size(name, info, total)
            with archive.open(info) as member:
                found[name] = _array(name, info, member)
    return found


def _check_size(name: str, info: zipfile.ZipInfo, total: int) -> None:
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise Unsafe(f"{name!r} is compressed in a way that numpy does not write")
    if total > LARGEST:
        raise Unsafe(f"its arrays claim {total / 2**30:.1f} GiB; at most {LARGEST >> 30} GiB are read")
    if info.file_size > SMALL and info.file_size > PACKED * info.compress_size:
        raise Unsafe(
            f"{name!r} claims {info.file_size / 2**20:.0f} MiB out of {info.compress_size} bytes; save it with numpy.savez, "
            "not compressed, if it is genuine"
        )


def _array(name: str, info: zipfile.ZipInfo, member: IO[bytes]) -> np.ndarray:
    version = npy.read_magic(member)
    if version != (1, 0):  # the later ones are for headers longer than 64 kB and names of fields
        raise Unsafe(f"{name!r} is of .npy version {version}, which plain arrays do not need")
    shape, fortran, kind = npy.read_array_header_1_0(member)
    if kind.hasobject or kind.kind not in KINDS or kind.names is not None:
        raise Unsafe(f"{name!r} holds {kind}, not plain numbers: saved with pickle, it is not read")
    if any(not isinstance(length, int) or length < 0 for length in shape):
        raise Unsafe(f"{name!r} has the shape {shape}")
    claimed = math.prod(shape) * kind.itemsize
    held = info.file_size - member.tell()
    if claimed != held:
        raise Unsafe(f"{name!r} claims shape {shape} of {kind}, {claimed} bytes, and has {held}")
    raw = np.empty(held, dtype=np.uint8)
    at = 0
    while piece := member.read(PIECE):  # to the end, where the checksum is compared
        if at + len(piece) > held:
            raise Unsafe(f"{name!r} is longer than it says")
        raw[at : at + len(piece)] = np.frombuffer(piece, dtype=np.uint8)
        at += len(piece)
    if at < held:
        raise Unsafe(f"{name!r} is cut off")
    return np.ascontiguousarray(raw.view(kind).reshape(shape, order="F" if fortran else "C")).reshape(shape)
