"""The note that a job leaves in its folder until it is done, so that the same request goes on and any other starts afresh."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from compare import store
from compare.payload import dumps


def write(path: Path, request: dict[str, Any], done: set[str]) -> None:
    """Note that `request` is being worked on and which of its parts are done."""
    store.replace(path, dumps({"request": request, "done": sorted(done)}))


def done(path: Path, request: dict[str, Any]) -> set[str] | None:
    """The parts that an interrupted call with this very request finished; None where the note is of another, damaged, or not there."""
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
        same = stored["request"] == json.loads(dumps(request))
        return {str(one) for one in stored["done"]} if same else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
