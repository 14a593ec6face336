"""Downloads, each checked against its sha256 and kept in the user's cache; progress goes to stderr only."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from data.errors import InputError
from data.local import VARIABLE, file_sha256


class _Progress:
    """What pooch calls while it downloads: a percentage on a terminal, two lines elsewhere."""

    def __init__(self, name: str) -> None:
        self.name, self.total, self.done, self.shown = name, 0, 0, -1
        self.live = sys.stderr.isatty()
        if not self.live:
            print(f"downloading {name}", file=sys.stderr, flush=True)

    def reset(self) -> None:
        self.done = 0

    def update(self, count: int) -> None:
        self.done += count
        percent = min(100, int(100 * self.done / self.total)) if self.total else 0
        if self.live and percent != self.shown:
            self.shown = percent
            size = f" of {self.total / 1e6:.1f} MB" if self.total else ""
            print(f"\rdownloading {self.name}: {percent}%{size} ", end="", file=sys.stderr, flush=True)

    def close(self) -> None:
        print("" if self.live else f"downloaded {self.name}", file=sys.stderr, flush=True)


def cache() -> Path:
    """The user's cache folder of saddlecheck, as the operating system has it."""
    import pooch

    return Path(pooch.os_cache("saddlecheck"))


def cached(filename: str, sha256: str) -> Path | None:
    """A file downloaded before, or None where it is missing or no longer whole (it is then downloaded again)."""
    path = cache() / filename
    return path if path.is_file() and file_sha256(path) == sha256 else None


def download(urls: Sequence[str], filename: str, sha256: str) -> Path:
    """The file from the first address that delivers it whole, kept in the cache.

    Raises InputError, saying what each address answered, where none does; a damaged download is never kept.
    """
    import pooch

    ready = cached(filename, sha256)
    if ready is not None:
        return ready
    logger = pooch.get_logger()
    level = logger.level
    logger.setLevel(logging.ERROR)
    reasons = []
    try:
        for url in urls:
            downloader: Any = pooch.HTTPDownloader(progressbar=_Progress(filename))  # type: ignore[arg-type]
            try:
                return Path(pooch.retrieve(url, f"sha256:{sha256}", filename, cache(), downloader=downloader))
            except ValueError:
                reasons.append(f"{url}: corrupt or truncated, its sha256 is not {sha256[:16]}...")
            except OSError as error:  # every error of requests is one
                reasons.append(f"{url}: {type(error).__name__}")
    finally:
        logger.setLevel(level)
    raise InputError(
        f"downloading {filename} failed ({'; '.join(reasons)}): try again, or put the file in the folder that {VARIABLE} names"
    )
