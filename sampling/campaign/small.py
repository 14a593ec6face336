"""Small files: JSON read with a bound and without trust, and files that are written once, whole, by whoever comes first."""

from __future__ import annotations

import json
import os
import secrets
import stat
from pathlib import Path
from typing import Any

LARGEST = 1 << 20


def read_json(path: Path) -> Any:
    """The value of a JSON file; None where there is none, or it is a link, too large, cut off, or not strict JSON."""
    data = read_bytes(path)
    if data is None:
        return None
    try:
        return json.loads(data, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None


def read_bytes(path: Path) -> bytes | None:
    """The bytes of an ordinary file of at most 1 MiB, or None."""
    try:
        # Not blocking: a pipe of that name must not hang the reader.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return None
    try:
        told = os.fstat(handle)
        if not stat.S_ISREG(told.st_mode) or told.st_size > LARGEST:
            return None
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read(LARGEST + 1)
    except OSError:
        return None
    finally:
        os.close(handle)


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is not JSON")


def write_once(path: Path, text: str) -> bool:
    """Write a file that nobody has written yet; False where somebody was faster, whose file stands. Raises OSError.

    A hard link to a finished temporary file: atomic on network filesystems too, and never seen empty.
    """
    temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    try:
        temporary.write_text(text, encoding="utf-8")
        os.link(temporary, path)
    except FileExistsError:
        return False
    finally:
        temporary.unlink(missing_ok=True)
    return True
