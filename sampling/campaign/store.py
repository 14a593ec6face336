"""The store: one folder a cell, a Run and a small signed summary in it; read while it is written, believed only where it checks."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from data.errors import InputError
from data.local import file_sha256
from data.provenance import version
from sampling.atomic import replacing
from sampling.campaign import claims, tries
from sampling.campaign.cell import ID, IDENTITY, Cell, canonical, identify
from sampling.campaign.small import read_bytes

FORMAT = 1
CELLS, RUN, RESULT, CHECKPOINT, KEPT, ROUND = "cells", "run.nc", "result.json", "checkpoint", "kept", "round.json"
STATES = ("done", "inconclusive", "running", "failed", "missing", "damaged", "other-version")
FRAME = re.compile(rb'\{"sha256":"([0-9a-f]{64})","body":(\{.*\})\}\n', re.DOTALL)
SHARD = re.compile(r"[0-9a-f]{2}")
# Of a summary: what must be there, and of which type. Anything else in a file is refused.
BODY: dict[str, type | tuple[type, ...]] = {
    "format": int, "id": str, "identity": dict, "effort": dict, "cell_class": str, "version": str, "outcome": str,
    "reasons": list, "numbers": dict, "problem": dict, "provenance": dict, "run": dict, "seconds": (int, float),
    "finished": (int, float),
}  # fmt: skip


PROBLEM: dict[str, type | tuple[type, ...]] = {
    "P": int,
    "N0": int,
    "N1": int,
    "alpha": (int, float),
    "fingerprint": str,
    "dataset_fingerprint": str,
}


@dataclass(frozen=True)
class Record:
    """What the store knows of a cell. state is one of STATES; body the summary, None where there is none to be believed; note why."""

    id: str
    state: str
    body: dict[str, Any] | None = None
    note: str = ""
    tries: list[tries.Try] = field(default_factory=list)
    claimed: bool = False

    @property
    def relative_error(self) -> float:
        """Standard error of <D^2> relative to the effect; infinite where it is not known."""
        value = None if self.body is None else self.body["numbers"].get("relative_error")
        return math.inf if value is None else float(value)


@dataclass(frozen=True)
class Store:
    """The cells of a campaign's folder."""

    folder: Path

    def place(self, name: str) -> Path:
        """The folder of a cell, `cells/ab/abcd...`. Raises InputError for a name that is not the id of a cell."""
        if not ID.fullmatch(name):
            raise InputError(f"cell {name[:80]!r}: an id is 32 hexadecimal digits")
        return self.folder / CELLS / name[:2] / name

    def ids(self) -> Iterator[str]:
        """Ids of the cells that have a folder, shard by shard; whatever else lies there is passed over."""
        for shard in _names(self.folder / CELLS):
            if SHARD.fullmatch(shard):
                yield from (
                    name for name in _names(self.folder / CELLS / shard) if ID.fullmatch(name) and name[:2] == shard
                )

    def write(self, cell: Cell, body: dict[str, Any], draft: Path | None = None) -> None:
        """Put a Run, written to `draft` beside its place, there, and then its summary: with that the cell has its result.

        The checksum is of the draft, which nobody else writes: where two workers end the same cell (one was taken for dead and came
        back), the summary of one beside the Run of the other is damage, never a result. Without `draft` the Run is in its place
        already. Raises OSError.
        """
        place = self.place(cell.id)
        run = place / RUN
        told = {"sha256": file_sha256(draft or run), "size": (draft or run).stat().st_size}
        if draft is not None:
            os.replace(draft, run)
        whole = body | {"format": FORMAT, "id": cell.id, "identity": cell.identity, "effort": cell.effort,
                        "cell_class": cell.cell_class, "version": version(),
                        "run": told}  # fmt: skip
        with replacing(place / RESULT) as temporary:
            temporary.write_bytes(framed(canonical(whole)))

    def read(self, name: str, *, deep: bool = False, now: float | None = None, most: int = 3) -> Record:
        """The state of a cell by itself, whatever precision is wanted now (`wanted` puts the two together).

        deep  read the Run's whole file and compare its checksum; else its size alone, which is what truncation changes
        most  tries after which a cell is given up
        Nothing read here is unpickled or evaluated; a file that is not what it should be makes the cell `damaged`.
        """
        place = self.place(name)
        files = _names(place)
        body, note = self._summary(place, name, deep) if RESULT in files else (None, "")
        attempts = tries.listed(place, files)
        claimed = claims.FILE in files and claims.fresh(place, now)
        if body is not None:
            state = (
                "other-version" if (body["version"], body["format"]) != (version(), FORMAT) else str(body["outcome"])
            )
            return Record(name, state, body, note, attempts, claimed)
        last = attempts[-1].error if attempts else ""
        if claimed:
            return Record(name, "running", None, note, attempts, True)
        if tries.spent(attempts, most):
            return Record(name, "failed", None, last, attempts)
        return Record(name, "damaged" if note else "missing", None, note or last, attempts)

    def _summary(self, place: Path, name: str, deep: bool) -> tuple[dict[str, Any] | None, str]:
        """The summary where it is believed, else None and why not."""
        data = read_bytes(place / RESULT)
        if data is None:
            return None, "its summary is not an ordinary file of at most 1 MiB"
        body, why = parse(data, name)
        if body is None:
            return None, why
        run = place / RUN
        try:
            told = os.lstat(run)
        except OSError:
            return None, "its run file is gone"
        if not stat.S_ISREG(told.st_mode):
            return None, "its run file is not an ordinary file"
        if told.st_size != body["run"]["size"]:
            return None, f"its run file has {told.st_size} bytes, not the {body['run']['size']} that were written"
        if deep and file_sha256(run) != body["run"]["sha256"]:
            return None, "the checksum of its run file does not match"
        return body, ""

    def run_path(self, name: str) -> Path:
        """Where a cell's Run lies."""
        return self.place(name) / RUN

    def discard(self, name: str) -> None:
        """Remove a result that is damaged or to be made anew, summary first; what a cell has beside it stays."""
        place = self.place(name)
        for file in (RESULT, RUN):
            (place / file).unlink(missing_ok=True)


def parse(data: bytes, name: str) -> tuple[dict[str, Any] | None, str]:
    """The body of a summary, checked by checksum, types and id; or None and what is wrong with it."""
    framed = FRAME.fullmatch(data)
    if framed is None:
        return None, "its summary is cut off or not one"
    if hashlib.sha256(framed[2]).hexdigest().encode() != framed[1]:
        return None, "the checksum of its summary does not match"
    try:
        body = json.loads(framed[2], parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None, "its summary is not JSON"
    if not isinstance(body, dict):
        return None, "its summary is not a table"
    for key, kind in BODY.items():
        if not isinstance(body.get(key), kind) or isinstance(body.get(key), bool):
            return None, f"its summary has no proper {key!r}"
    for key, kind in PROBLEM.items():
        if not isinstance(body["problem"].get(key), kind):
            return None, f"its summary has no proper problem.{key}"
    if not all(one is None or isinstance(one, int | float) for one in body["numbers"].values()):
        return None, "its numbers are not numbers"
    if not all(isinstance(body["effort"].get(key), int | float) for key in ("target", "finest", "budget_seconds")):
        return None, "its summary does not say with what effort it was made"
    run = body["run"]
    if not isinstance(run.get("size"), int) or not isinstance(run.get("sha256"), str):
        return None, "its summary does not say what its run file is"
    if body["format"] == FORMAT and set(body["identity"]) != set(IDENTITY):
        return None, "its summary does not say what cell it is"
    if body["id"] != name or identify(body["identity"]) != name:
        return None, "it is the summary of another cell"
    if body["outcome"] not in ("done", "inconclusive"):
        return None, f"its outcome {str(body['outcome'])[:40]!r} is unknown"
    if not all(isinstance(one, str) for one in body["reasons"]):
        return None, "its reasons are not texts"
    return body, ""


def wanted(record: Record, cell: Cell) -> Record:
    """The record seen from what a spec wants now: a result that is too coarse, or was given up too early, is missing again.

    A result does not depend on the target it was made for: one that is finer than wanted is done, whatever it was called.
    """
    if record.state not in ("done", "inconclusive") or record.body is None:
        return record
    body, effort = record.body, cell.effort
    if body["reasons"] or cell.identity["draws"] is not None:
        met = not body["reasons"]
    else:
        met = record.relative_error <= effort.get("target", math.inf)
    if met:
        return Record(record.id, "done", body, record.note, record.tries)
    error = f"error {100 * record.relative_error:.3g}% of the effect, wanted {100 * effort.get('target', 0):.3g}%"
    note = "; ".join([*body["reasons"], error] if not body["reasons"] else body["reasons"])
    before = body["effort"]
    more = effort.get("budget_seconds", 0) > before.get("budget_seconds", 0) or (
        effort.get("finest", 0) < before.get("finest", 0) or effort.get("target", 0) < before.get("target", 0)
    )
    # With draws given, or the same effort as before, another run would bring the same.
    if cell.identity["draws"] is None and more and (not body["reasons"] or _budget_grew(effort, before)):
        if not record.claimed and tries.spent(record.tries, int(effort.get("tries", 3))):
            return Record(record.id, "failed", body, record.tries[-1].error, record.tries)
        state = "running" if record.claimed else "missing"
        return Record(record.id, state, body, f"to be continued: {note}", record.tries, record.claimed)
    return Record(record.id, "inconclusive", body, note, record.tries)


def _budget_grew(effort: dict[str, Any], before: dict[str, Any]) -> bool:
    return bool(effort.get("budget_seconds", 0) > before.get("budget_seconds", 0))


def framed(text: str) -> bytes:
    """A summary file: the body's JSON text, and the checksum of exactly its bytes before it."""
    body = text.encode()
    return b'{"sha256":"%s","body":%s}\n' % (hashlib.sha256(body).hexdigest().encode(), body)


def _refuse(word: str) -> None:
    raise ValueError(word)


def _names(folder: Path) -> list[str]:
    """Names in a folder, sorted; none where it is not there."""
    with contextlib.suppress(OSError):
        return sorted(os.listdir(folder))
    return []
