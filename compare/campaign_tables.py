"""Campaign tables for the terminal: cost of each class of cell, counts of states, the cells that need a look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compare.report.shown import Cell, Shown
from compare.terminal import duration

if TYPE_CHECKING:
    from sampling.campaign.runner import Status

WORDS = {
    "done": "have their result",
    "inconclusive": "ended without the wanted precision or convergence",
    "running": "are being worked on",
    "failed": "were given up after their tries",
    "missing": "wait",
    "damaged": "do not match their checksum and will be computed again",
    "other-version": "were made by another version of saddlecheck",
}


def classes(status: Status) -> Shown:
    """Cells, missing ones and their expected time, class by class."""
    titles = [("class", ""), ("sampler", ""), ("data", ""), ("P", ""), ("N1", ""), ("cells", ""), ("missing", ""),
              ("a cell", "expected"), ("all missing", "expected")]  # fmt: skip
    rows = []
    for name, one in status.classes.items():
        each = one.seconds / one.missing if one.missing else 0.0
        texts = [
            Cell("–" if part is None else str(part), None, "num" if at > 2 else "") for at, part in enumerate(name)
        ]
        counts = [Cell(str(value), value, "num") for value in (one.cells, one.missing)]
        times = [Cell(duration(value) if one.missing else "–", value, "num") for value in (each, one.seconds)]
        rows.append([*texts, *counts, *times])
    return Shown("classes", "Classes of cells", titles, rows)


def states(status: Status) -> Shown:
    """How many cells are in which state."""
    rows = [
        [Cell(name), Cell(str(count), count, "num"), Cell(WORDS[name])]
        for name, count in sorted(status.counts.items(), key=lambda one: list(WORDS).index(one[0]))
    ]
    return Shown("states", "Cells", [("state", ""), ("cells", ""), ("these", "")], rows)


def worst(status: Status) -> Shown:
    """The cells that need a look, the most urgent first."""
    titles = [("state", ""), ("cell", ""), ("data", ""), ("labels", ""), ("P", ""), ("N1", ""), ("T", ""), ("sampler", ""),
              ("error", "of <D^2>, relative to the effect"), ("why", "")]  # fmt: skip
    rows = [
        [_cell(row, name) for name in ("state", "id", "data", "labels", "P", "N1", "T", "sampler")]
        for row in status.worst
    ]
    for row, shown in zip(status.worst, rows, strict=True):
        error = row["relative_error"]
        shown += [Cell("–" if error is None else f"{100 * error:.3g} %", error, "num"), Cell(str(row["note"])[:200])]
    return Shown("worst", "Cells that need a look", titles, rows)


def _cell(row: dict[str, Any], name: str) -> Cell:
    value = row[name]
    if name == "id":
        return Cell(str(value)[:12])
    number = isinstance(value, int | float)
    return Cell(
        "–" if value is None else f"{value:g}" if number else str(value),
        value if number else None,
        "num" if number else "",
    )


def sentence(status: Status) -> str:
    """Where the campaign stands, in one line."""
    counts = ", ".join(f"{count} {name}" for name, count in status.counts.items() if name != "done")
    text = f"{status.counts['done']} of {status.cells} cells done" + (f"; {counts}" if counts else "")
    if status.seconds_left:
        text += f"; about {duration(status.seconds_left)} left"
    elif status.work_left:
        text += f"; about {duration(status.work_left)} of work left, and nobody works on it: `campaign run` goes on"
    if len(status.versions) > 1 or status.counts["other-version"]:
        text += "; versions: " + ", ".join(f"{name} ({count})" for name, count in status.versions.items())
    if status.unwanted:
        text += f"; {status.unwanted} cells in the store are not in the present grid"
    return text + "."
