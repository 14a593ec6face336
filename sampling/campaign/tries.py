"""Tries: a file for each attempt on a cell, so that one that kills its worker is counted too and is given up after a few."""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

from sampling.campaign.small import read_json, write_once

NAME = re.compile(r"try-([0-9]{3})\.json")
MESSAGE = 2000  # characters of an error that are kept
KILLED = "the worker ended without a word (killed, or out of memory)"


@dataclass(frozen=True)
class Try:
    """One attempt that did not bring a result: its number, its error, whether another makes no sense, and when it began."""

    number: int
    error: str
    final: bool
    began: float


def listed(folder: Path, names: list[str] | None = None) -> list[Try]:
    """Attempts on the cell in the folder, oldest first. A file that is not readable counts as an attempt."""
    if names is None:
        try:
            names = os.listdir(folder)
        except OSError:
            names = []
    found = []
    for name in sorted(names):
        matched = NAME.fullmatch(name)
        if matched:
            told = read_json(folder / name)
            told = told if isinstance(told, dict) else {}
            error = told.get("error")
            began = told.get("began")
            found.append(
                Try(
                    int(matched.group(1)),
                    error[:MESSAGE] if isinstance(error, str) else KILLED,
                    told.get("final") is True,
                    float(began) if isinstance(began, int | float) else 0.0,
                )
            )
    return found


def spent(tries: list[Try], most: int) -> bool:
    """Whether the cell is to be given up."""
    return len(tries) >= most or any(one.final for one in tries)


def begin(folder: Path, checkpoint: Path) -> Path:
    """Note that an attempt begins; returns its file. Attempts that were killed but got further than they began do not count.

    Raises OSError where nothing can be written.
    """
    with contextlib.suppress(OSError):
        advanced = checkpoint.stat().st_mtime
        for one in listed(folder):
            path = folder / f"try-{one.number:03d}.json"
            if one.error == KILLED and path.stat().st_mtime < advanced:
                path.unlink(missing_ok=True)
    number = max((one.number for one in listed(folder)), default=0)
    while True:
        number += 1
        path = folder / f"try-{number:03d}.json"
        if write_once(path, json.dumps({"began": time.time()})):
            return path


def fail(path: Path, error: str, final: bool) -> None:
    """Note why the attempt failed; `final` where another would fail the same way. Raises OSError."""
    path.write_text(json.dumps({"error": error[:MESSAGE], "final": final, "began": time.time()}), encoding="utf-8")


def forget(folder: Path) -> None:
    """No attempt counts any more: the cell has its result, or the user wants it tried again."""
    for path in folder.glob("try-*.json"):
        path.unlink(missing_ok=True)
