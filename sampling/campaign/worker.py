"""The unit of work that every engine calls: some cells in a campaign's folder, each left with its result, its error, or a checkpoint."""

from __future__ import annotations

import contextlib
import errno
import secrets
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from data.errors import InputError
from sampling.atomic import PART, sweep
from sampling.campaign import catalog, claims, tries
from sampling.campaign.cell import DATA, Cell, canonical
from sampling.campaign.engines import Event
from sampling.campaign.small import read_json
from sampling.campaign.store import CHECKPOINT, KEPT, RESULT, ROUND, RUN, Record, Store, wanted

# Exit statuses (sysexits.h where it has one). 75 means: told to stop, checkpoint written, give me the same cells again.
ALL_DONE, SOME_FAILED, NO_ROOM, TRY_AGAIN = 0, 1, 74, 75
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.ESTALE}
RESULTS = ("done", "inconclusive")
POLL = 2.0
PROBE = 1 << 20  # bytes

Report = Callable[[Event], None]


@dataclass
class Outcome:
    """What became of the cells: `made` those whose result was made here, `had` those that had one, `failed` id -> error, `full` id ->
    error of those that could not be written, `elsewhere` those that somebody else works on; `interrupted` after a signal."""

    made: list[str] = field(default_factory=list)
    had: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    full: dict[str, str] = field(default_factory=dict)
    elsewhere: list[str] = field(default_factory=list)
    interrupted: bool = False

    @property
    def exit_code(self) -> int:
        """0 every cell has a result or is in somebody's hands, 1 some failed, 74 the disk took no more, 75 stopped: call again."""
        if self.interrupted:
            return TRY_AGAIN
        if self.full:
            return NO_ROOM
        return SOME_FAILED if self.failed else ALL_DONE


def work(
    folder: str | Path,
    ids: Sequence[str],
    *,
    report: Report | None = None,
    stop: threading.Event | None = None,
    device: str | None = None,
    threads: int | None = None,
) -> Outcome:
    """Bring every cell to its result: what is there already is left alone, what was interrupted goes on from its checkpoint.

    ids      of cells in a catalogue of the folder (sampling.campaign.catalog)
    report   called with each Event: started, progress, finished
    stop     set by another thread to end between steps; in the main thread SIGTERM, SIGUSR1 and SIGINT do the same, write the
             checkpoint first, and the outcome's exit code is 75
    device, threads  instead of those of the cell

    An error in a cell is written down in its folder, the cell is tried again a bounded number of times after the others, and it never
    stops them. Two workers given the same cell: one claims it; the other leaves it, or waits while its holder seems dead.
    Raises InputError for an unknown id or a folder without catalogue.
    """
    folder = Path(folder)
    store, outcome, tell = Store(folder), Outcome(), report or (lambda event: None)
    queue = list(catalog.find(folder, ids).values())
    stop = stop or threading.Event()
    waited: dict[str, float] = {}
    with _signals(stop):
        while queue:
            cell = queue.pop(0)
            if stop.is_set():
                outcome.interrupted = True
                break
            try:
                state = _one(store, cell, tell, stop, device, threads)
            except OSError as error:
                outcome.full[cell.id] = f"{error}"
                tell(Event("finished", cell.id, str(error), {"state": "failed"}))
                continue
            if state.state == "claimed":
                since = waited.setdefault(cell.id, time.monotonic())
                # A holder that died on another machine looks alive until its claim expires.
                if not _alive(store.place(cell.id)) and time.monotonic() - since < claims.EXPIRY + 2 * claims.BEAT:
                    if all(one.id in waited for one in queue):
                        stop.wait(POLL)
                    queue.append(cell)
                else:
                    outcome.elsewhere.append(cell.id)
            elif state.state == "interrupted":
                outcome.interrupted = True
                break
            elif state.state == "again":
                queue.append(cell)
            elif state.state == "failed":
                outcome.failed[cell.id] = state.note
            else:
                (outcome.had if state.state == "had" else outcome.made).append(cell.id)
    return outcome


def _one(
    store: Store, cell: Cell, tell: Report, stop: threading.Event, device: str | None, threads: int | None
) -> Record:
    """One attempt on one cell. Raises OSError where the folder cannot be written."""
    most = int(cell.effort["tries"])
    place = store.place(cell.id)
    record = wanted(store.read(cell.id, deep=True, most=most), cell)
    if record.state in (*RESULTS, "other-version"):
        return Record(cell.id, "had", record.body)
    damaged = record.note if record.state == "damaged" else ""
    with claims.claim(place) as ours:
        if not ours:
            return Record(cell.id, "claimed")
        # Between the first look and the claim somebody may have finished it.
        record = wanted(store.read(cell.id, deep=True, most=most), cell)
        if record.state in (*RESULTS, "other-version"):
            return Record(cell.id, "had", record.body)
        before = tries.listed(place)
        if tries.spent(before, most):
            return Record(cell.id, "failed", note=before[-1].error)
        if damaged:
            tell(Event("note", cell.id, f"cell {cell.id}: {damaged}; it is computed again"))
        attempt = tries.begin(place, place / CHECKPOINT)
        tell(Event("started", cell.id))
        began = time.time()
        try:
            made = _sample(
                store, cell, tell, stop, device or str(cell.effort["device"]), threads or int(cell.effort["threads"])
            )
        except Exception as error:
            from sampling import Interrupted

            if isinstance(error, Interrupted):
                attempt.unlink(missing_ok=True)
                tell(Event("finished", cell.id, str(error), {"state": "interrupted"}))
                return Record(cell.id, "interrupted", note=str(error))
            full = _no_room(place, error)
            if full is not None:
                attempt.unlink(missing_ok=True)
                raise full from error
            where = traceback.extract_tb(error.__traceback__)[-1]
            text = f"{type(error).__name__}: {error} ({Path(where.filename).name}, line {where.lineno})"
            return _failed(attempt, cell, text, isinstance(error, InputError), most, tell)
        tries.forget(place)
        data = {"state": made.state, "seconds": time.time() - began}
        tell(Event("finished", cell.id, made.note, data))
        return made


def _no_room(place: Path, error: Exception) -> OSError | None:
    """The error as one of the disk, which is not the cell's fault; some libraries hide it, so it is tried whether a file can be written."""
    if isinstance(error, InputError):
        return None
    if isinstance(error, OSError) and error.errno in FULL:
        return error
    probe = place / f".probe.{secrets.token_hex(4)}"
    try:
        probe.write_bytes(bytes(PROBE))
    except OSError as found:
        return found
    finally:
        with contextlib.suppress(OSError):
            probe.unlink(missing_ok=True)
    return None


def _failed(attempt: Path, cell: Cell, error: str, final: bool, most: int, tell: Report) -> Record:
    tries.fail(attempt, error, final)
    given_up = tries.spent(tries.listed(attempt.parent), most)
    tell(Event("finished", cell.id, error, {"state": "failed" if given_up else "again"}))
    return Record(cell.id, "failed" if given_up else "again", note=error)


def _sample(store: Store, cell: Cell, tell: Report, stop: threading.Event, device: str, threads: int) -> Record:
    from sampling import Interrupted
    from sampling.campaign import precision, summary

    place = store.place(cell.id)
    dataset = _dataset(store.folder, cell)
    problem = cell.problem(dataset)

    def progress(event: dict[str, Any]) -> None:
        tell(Event("progress", cell.id, "", event))
        # A signal that comes while the main thread samples is heeded by sampling.run itself, with a checkpoint.
        if stop.is_set():
            raise Interrupted("told to stop; the last checkpoint holds what there was")

    _usable_checkpoint(place, cell, problem, device)
    found = precision.sample(cell, problem, place, device=device, threads=threads, progress=progress)
    body = summary.of(cell, problem, found)
    draft = place / f"{RUN}.{secrets.token_hex(4)}{PART}"
    try:
        found.run.save(draft)
        store.write(cell, body, draft)
    finally:
        draft.unlink(missing_ok=True)
    # What workers that were killed while they wrote have left.
    for name in (RUN, RESULT, CHECKPOINT, ROUND):
        sweep(place / name)
    # Of a cell that stopped short the last checkpoint stays: with a larger budget it goes on from there.
    goes_on = body["outcome"] == "inconclusive" and cell.identity["draws"] is None
    for name in (CHECKPOINT, ROUND, *([] if goes_on else [KEPT])):
        (place / name).unlink(missing_ok=True)
    return Record(cell.id, body["outcome"], body, "; ".join(body["reasons"]))


def _usable_checkpoint(place: Path, cell: Cell, problem: Any, device: str) -> None:
    """Remove a checkpoint that cannot be gone on from: damaged, of another version, or from another kind of device."""
    from sampling import checkpoint as files
    from sampling.campaign.precision import settings

    for name in (CHECKPOINT, KEPT):
        path = place / name
        if path.exists() or path.is_symlink():
            try:
                good = not path.is_symlink() and files.read(path)[0].get("key") == settings(cell, device).key(problem)
            except InputError:
                good = False
            if not good:
                path.unlink()
    if not (place / CHECKPOINT).exists() and not (place / KEPT).exists():
        (place / ROUND).unlink(missing_ok=True)


_last: dict[str, Any] = {}
_guard = threading.Lock()


def _dataset(folder: Path, cell: Cell) -> Any:
    """The cell's data set; the last one is kept, since neighbours in a campaign share it."""
    key = f"{folder.resolve()} {canonical([cell.identity[name] for name in DATA])}"
    with _guard:
        found = _last.get(key)
    if found is None:
        found = cell.dataset(folder)
        with _guard:
            _last.clear()
            _last[key] = found
    return found


def _alive(place: Path) -> bool:
    """Whether the holder of a claim is surely alive: it gave a sign of life within two beats, or is a process here."""
    told = read_json(place / claims.FILE)
    if isinstance(told, dict) and told.get("machine") and told.get("machine") == claims.machine():
        return claims.fresh(place)
    return claims.fresh(place, expiry=2.5 * claims.BEAT)


@contextlib.contextmanager
def _signals(stop: threading.Event) -> Iterator[None]:
    """SIGTERM, SIGUSR1 and SIGINT set `stop`; sampling.run listens to them itself while it samples."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    caught = [getattr(signal, name) for name in ("SIGTERM", "SIGUSR1", "SIGINT") if hasattr(signal, name)]
    before = {number: signal.signal(number, lambda number, frame: stop.set()) for number in caught}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m sampling.campaign.worker FOLDER --cells a,b,c` or `--list FILE --chunk K` (line K of a file of ids)."""
    import argparse

    parser = argparse.ArgumentParser(prog="sampling.campaign.worker", description=work.__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--cells", help="ids, separated by commas")
    parser.add_argument("--list", type=Path, help="a file with the ids of one portion a line, separated by blanks")
    parser.add_argument("--chunk", type=int, help="which line of the list, from 0")
    parser.add_argument("--device")
    parser.add_argument("--threads", type=int)
    given = parser.parse_args(arguments)
    try:
        if given.cells is not None:
            ids = [one for one in given.cells.split(",") if one]
        elif given.list is not None and given.chunk is not None:
            lines = given.list.read_text(encoding="ascii").splitlines()
            if not 0 <= given.chunk < len(lines):
                raise InputError(f"--chunk {given.chunk}: {given.list.name} has {len(lines)} lines")
            ids = lines[given.chunk].split()
        else:
            raise InputError("give --cells, or --list and --chunk")
        outcome = work(given.folder, ids, report=_say, device=given.device, threads=given.threads)
    except (InputError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return outcome.exit_code


def _say(event: Event) -> None:
    """One line an event that matters, for the log of a job."""
    if event.kind != "progress":
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        state = event.data.get("state", "")
        print(" ".join(filter(None, (stamp, event.cell, event.kind, state, event.text))), flush=True)


if __name__ == "__main__":
    sys.exit(main())
