"""Files that are either the old one or the new one: written under a temporary name, flushed to disk, renamed."""

from __future__ import annotations

import contextlib
import glob
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

PART = ".part"


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` to write to; on a clean exit it is flushed to disk and renamed to `path`.

    The temporary name is random, so that two processes that write the same file cannot mix their bytes. A process that is killed
    leaves its temporary file behind; `sweep` removes it. Raises OSError as `open` does.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f"{path.name}.{secrets.token_hex(4)}{PART}"
    # Not tempfile: its files are mode 0600, which would hide results from a user's own group.
    os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
    try:
        yield temporary
        _flush(temporary)
        os.replace(temporary, path)
        _flush(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def sweep(path: Path) -> None:
    """Remove what killed writers of `path` left behind."""
    for stale in path.parent.glob(f"{glob.escape(path.name)}.*{PART}"):
        stale.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    """fsync a file, or a folder so that a rename in it outlives a power cut (where the system can do that)."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        if path.is_dir():  # Windows cannot open a folder
            return
        raise
    try:
        os.fsync(handle)
    except OSError:
        if not path.is_dir():
            raise
    finally:
        os.close(handle)
