"""Submit what is missing to Slurm, once: array jobs whose elements each do some cells; two shells that submit together agree by mkdir."""

from __future__ import annotations

import contextlib
import json
import re
import secrets
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from data.errors import InputError
from sampling.atomic import replacing
from sampling.campaign import slurm_queue, slurm_script
from sampling.campaign.engines import Task
from sampling.campaign.slurm_queue import SlurmError
from sampling.campaign.slurm_settings import SlurmSettings
from sampling.campaign.small import write_once
from sampling.campaign.worker import TRY_AGAIN

FOLDER = "slurm"
IDENTITY = "id"
RECORD = "jobs.json"
# What may stand in a list of cells and in the name of a class: one word, no path.
WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
# A submission whose folder has not changed for so long was broken off: sbatch itself is given up after slurm_queue.TIMEOUT.
BROKEN_OFF = slurm_queue.TIMEOUT + 30.0
POLL = 0.2
# What sbatch says when the queue takes no more now (limits of the site, of the account, of the controller).
FULL = re.compile(
    r"Max\w*(Submit|Job)\w*Limit|violates accounting/QOS policy|temporarily unavailable|job limit", re.IGNORECASE
)


@dataclass(frozen=True)
class Submission:
    """jobs: numbers of the arrays submitted now; cells in them; queued: cells that jobs in the queue do already; held: elements in the
    queue before; later: cells that the queue did not take (`note` says why): run again when it has room."""

    jobs: tuple[str, ...] = ()
    cells: int = 0
    queued: int = 0
    held: int = 0
    later: int = 0
    note: str = ""


def submit_missing(folder: Path, missing: Callable[[], Iterable[Task]], settings: SlurmSettings) -> Submission:
    """Submit the cells that have no result and that no job in the queue does.

    Each submission has a folder slurm/NNNN of its own with the scripts and the lists of cells. Its number is taken by `mkdir`, which
    is atomic on shared filesystems too, and the queue is read after the number is known and before it is taken: of two shells that
    submit at the same time one gets it, the other waits for it and sees its jobs.
    Raises InputError for a bad template or folder, SlurmError where Slurm cannot be asked or refuses.
    """
    slurm_queue.require()
    text = slurm_script.template(folder)
    (folder / "logs").mkdir(parents=True, exist_ok=True)
    prefix = f"sc-{identity(folder)}-"
    while True:
        number = _settled(folder)
        held = slurm_queue.elements(prefix)
        covered = {one for cells in cells_of(folder, prefix, held).values() for one in cells}
        every = list(missing())
        work = [one for one in every if one.id not in covered]
        queued = len(every) - len(work)
        if not work:
            return Submission(queued=queued, held=len(held))
        room = settings.max_queued - len(held)
        if room <= 0:
            note = f"{len(held)} elements of this campaign are in the queue, and max_queued = {settings.max_queued}"
            return Submission(queued=queued, held=len(held), later=len(work), note=note)
        place = folder / FOLDER / f"{number + 1:04d}"
        try:
            place.mkdir(parents=True)
        except FileExistsError:
            continue
        return replace(_submit(folder, place, prefix, text, work, room, settings), queued=queued, held=len(held))


def identity(folder: Path) -> str:
    """Eight characters that name this campaign in the queue, whatever path leads to its folder; made once."""
    path = folder / FOLDER / IDENTITY
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_once(path, secrets.token_hex(4))
    found = path.read_text(encoding="utf-8").strip()
    if not re.fullmatch(r"[0-9a-f]{8}", found):
        raise InputError(f"{path}: not the name of a campaign; delete it when no job of the campaign is in the queue")
    return found


def cells_of(
    folder: Path, prefix: str, held: Iterable[slurm_queue.Element]
) -> dict[slurm_queue.Element, tuple[str, ...]]:
    """Ids of the cells that each of these array elements does or will do."""
    lists: dict[str, list[str]] = {}
    found: dict[slurm_queue.Element, tuple[str, ...]] = {}
    for element in held:
        number, _, rest = element.name.removeprefix(prefix).partition("-")
        if element.name not in lists:
            lists[element.name] = []
            if number.isdigit() and WORD.fullmatch(rest):
                with contextlib.suppress(OSError, UnicodeDecodeError):
                    lists[element.name] = (folder / FOLDER / number / f"{rest}.cells").read_text().splitlines()
        lines = lists[element.name]
        found[element] = tuple(lines[element.index].split()) if element.index < len(lines) else ()
    return found


def portions(work: Iterable[Task], settings: SlurmSettings) -> dict[str, list[list[str]]]:
    """For each class of cell the ids that one array element does in turn, longest cells first so that late elements are short ones.

    An element holds `cells_per_job` cells, or as many as `job_seconds` of expected work holds, and never less than one.
    """
    classes: dict[str, list[Task]] = {}
    for one in work:
        classes.setdefault(one.cell_class, []).append(one)
    result: dict[str, list[list[str]]] = {}
    for name in sorted(classes):
        parts: list[list[str]] = []
        load = 0.0
        for one in sorted(classes[name], key=lambda one: (-one.seconds, one.id)):
            fits = (
                len(parts[-1]) < settings.cells_per_job
                if parts and settings.cells_per_job
                else load + one.seconds <= settings.job_seconds
            )
            if not parts or not fits:
                parts.append([])
                load = 0.0
            parts[-1].append(one.id)
            load += one.seconds
        result[name] = parts
    return result


def _submit(
    folder: Path,
    place: Path,
    prefix: str,
    text: str,
    work: list[Task],
    room: int,
    settings: SlurmSettings,
) -> Submission:
    jobs: list[dict[str, object]] = []
    note, failure, submitted = "", None, 0
    try:
        largest = slurm_queue.max_array()
        pieces: list[tuple[str, list[list[str]]]] = []
        for name, parts in portions(work, settings).items():
            pieces += [(name, parts[at : at + largest]) for at in range(0, len(parts), largest)]
        count = 0
        while pieces:
            name, parts = pieces.pop(0)
            if not room:
                note = f"max_queued = {settings.max_queued} elements are in the queue"
                break
            if len(parts) > room:
                pieces.insert(0, (name, parts[room:]))
                parts = parts[:room]
            try:
                job = _array(folder, place, prefix, f"{name}-{count}", text, name, parts, settings)
            except SlurmError as error:
                if not FULL.search(str(error)):
                    failure = error
                    break
                if len(parts) == 1:
                    note = str(error)
                    break
                half = len(parts) // 2  # the limit may have room for fewer
                pieces[:0] = [(name, parts[:half]), (name, parts[half:])]
                continue
            count += 1
            room -= len(parts)
            submitted += sum(len(part) for part in parts)
            jobs.append({"job": job, "script": f"{name}-{count - 1}.sh", "elements": len(parts)})
    finally:
        # Also after an error: others wait for this file.
        with replacing(place / RECORD) as temporary:
            temporary.write_text(json.dumps({"jobs": jobs, "note": note or str(failure or "")}, indent=1) + "\n")
    later = len(work) - submitted
    if failure is not None:
        raise SlurmError(
            f"{failure} ({submitted} cells were submitted, {later} were not; script in {place})"
        ) from failure
    return Submission(tuple(str(one["job"]) for one in jobs), submitted, later=later, note=note)


def _array(
    folder: Path,
    place: Path,
    prefix: str,
    stem: str,
    text: str,
    cell_class: str,
    parts: list[list[str]],
    settings: SlurmSettings,
) -> str:
    """Write the list of cells and the script of one array and submit it; returns the job's number."""
    for word in (stem, *(key for part in parts for key in part)):
        if not WORD.fullmatch(word):
            raise InputError(f"{word!r}: not the id of a cell, nor the name of a class of cells")
    cells, script = place / f"{stem}.cells", place / f"{stem}.sh"
    cells.write_text("".join(" ".join(part) + "\n" for part in parts), encoding="utf-8")
    throttle = f"%{settings.at_once}" if settings.at_once else ""
    # Paths are relative to the campaign's folder, where sbatch starts the script: no odd character of them reaches a script.
    # -P: the folder, which is data, must not be searched for modules.
    portion = f"{FOLDER}/{place.name}/{stem}.cells"
    worker = [sys.executable, "-P", "-m", "sampling.campaign.worker", ".", "--list", portion, "--chunk"]
    values = {
        "job_name": f"{prefix}{place.name}-{stem}",
        "array": f"0-{len(parts) - 1}{throttle}",
        "resources": "\n".join(settings.resources(cell_class).directives()) or "# (the site's default resources)",
        "log": "logs/%x-%A_%a.log",
        "grace_seconds": str(settings.grace_seconds),
        "max_requeues": str(settings.max_requeues),
        "try_again": str(TRY_AGAIN),
        "worker": slurm_script.command(worker),
    }
    script.write_text(slurm_script.render(text, values), encoding="utf-8")
    script.chmod(0o755)
    try:
        return slurm_queue.submit(script.absolute(), folder=folder.absolute())
    except SlurmError:
        cells.unlink()
        script.rename(script.with_suffix(".refused"))
        raise


def _settled(folder: Path) -> int:
    """The number of the last submission, once that is complete or broken off."""
    numbers = [int(one.name) for one in (folder / FOLDER).iterdir() if one.is_dir() and one.name.isdigit()]
    last = max(numbers, default=0)
    place = folder / FOLDER / f"{last:04d}"
    if not last:
        return 0
    seen: list[str] = []
    since = time.monotonic()
    while not (place / RECORD).exists():
        now = sorted(one.name for one in place.iterdir())
        if now != seen:
            seen, since = now, time.monotonic()
        elif time.monotonic() - since > BROKEN_OFF:
            # Its jobs, if it had any, are in the queue under their names and are found there.
            write_once(place / RECORD, json.dumps({"jobs": [], "note": "broken off"}) + "\n")
            break
        time.sleep(POLL)
    return last
