"""Claims: who works on a cell. A courtesy that makes double work rare; the truth is the result file, and no lock is needed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sampling.campaign.small import read_json, write_once

FILE = "claim"
BEAT = 10.0  # seconds between signs of life
EXPIRY = 120.0  # without one for so long, the holder is dead: more than a network filesystem hides a change


def machine() -> str:
    """A word for this system's present boot and process numbers: equal words share process numbers. Names nothing and nobody."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
        space = os.stat("/proc/self/ns/pid").st_ino
    except OSError:  # another system: only time tells
        return ""
    return hashlib.sha256(f"{boot} {space}".encode()).hexdigest()[:16]


def _began(pid: int) -> str:
    """When a process began, in ticks since boot: tells it from a later one of the same number. Empty where it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def fresh(folder: Path, now: float | None = None, expiry: float = EXPIRY) -> bool:
    """Whether somebody alive works in the folder. A holder on this machine is looked up; of another its last sign of life counts."""
    path = folder / FILE
    try:
        beat = path.stat().st_mtime
    except OSError:
        return False
    told = read_json(path)
    if isinstance(told, dict) and told.get("machine") and told.get("machine") == machine():
        pid = told.get("pid")
        return isinstance(pid, int) and 0 < pid < 1 << 31 and _began(pid) == told.get("began")
    return abs((_now(folder) if now is None else now) - beat) < expiry


def _now(folder: Path) -> float:
    """The time by the clock that stamps files in this folder: of a network filesystem, its server's."""
    probe = folder / f".now.{secrets.token_hex(4)}"
    try:
        probe.touch()
        return probe.stat().st_mtime
    except OSError:
        return time.time()
    finally:
        with contextlib.suppress(OSError):
            probe.unlink(missing_ok=True)


@contextlib.contextmanager
def claim(folder: Path) -> Iterator[bool]:
    """Yields whether the cell in the folder is ours to work on; while it is, a thread gives a sign of life now and then.

    A dead holder's claim is moved aside, which only one of several can do. Raises OSError where nothing can be written there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    token = secrets.token_hex(8)
    text = json.dumps({"token": token, "pid": os.getpid(), "began": _began(os.getpid()), "machine": machine()})
    held = write_once(path, text)
    if not held:
        stale = _token(path)
        if not fresh(folder) and _move_aside(path, folder / f"{FILE}.{token}.old", stale):
            held = write_once(path, text)
    if not held:
        yield False
        return
    over = threading.Event()
    thread = threading.Thread(target=_beat, args=(path, over), daemon=True)
    thread.start()
    try:
        yield True
    finally:
        over.set()
        thread.join()
        # Only our own: one that was taken for dead and came back must not remove its successor's.
        if _token(path) == token:
            path.unlink(missing_ok=True)


def _token(path: Path) -> Any:
    told = read_json(path)
    return told.get("token") if isinstance(told, dict) else None


def _move_aside(path: Path, aside: Path, stale: Any) -> bool:
    """Take a dead holder's claim away; False where it is gone, or where another has taken it over meanwhile, whose claim is put back."""
    try:
        os.rename(path, aside)
    except OSError:
        return False
    ours = _token(aside) == stale
    if not ours:
        with contextlib.suppress(OSError):
            os.link(aside, path)
    aside.unlink(missing_ok=True)
    return ours


def _beat(path: Path, over: threading.Event) -> None:
    while not over.wait(BEAT):
        with contextlib.suppress(OSError):
            os.utime(path)
