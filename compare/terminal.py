"""What a person at a terminal sees: progress with time left on stderr, tables and the verdict on stdout."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.table import Table

    from compare.report.shown import Shown

PROSE = 40  # characters from which a column may wrap
EVERY = 10.0  # seconds between two lines of one phase where there is no terminal


def duration(seconds: float) -> str:
    """`45 s`, `3 min 20 s`, `2 h 05 min`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


class Progress:
    """Progress on stderr: bars with time left on a terminal, otherwise one line an event; nothing when quiet.

    Use as a context manager. `say` writes a line; `stage(name, at, of)` gives the callback for events of `sampling.run` or of
    level 4 (`phase`, `done`, `total`, `eta_s`, and whatever else it knows).
    """

    def __init__(self, *, quiet: bool = False, stream: TextIO | None = None):
        self.stream = sys.stderr if stream is None else stream
        self.quiet = quiet
        self.bars: Bars | None = None
        self.live = not quiet and self.stream.isatty()

    def __enter__(self) -> Progress:
        if self.live:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
            from rich.progress import Progress as Bars

            self.bars = Bars(
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TextColumn("{task.fields[left]}"),
                console=Console(file=self.stream),
            )
            self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.bars is not None:
            self.bars.stop()
            self.bars = None

    def say(self, text: str) -> None:
        """One line on stderr."""
        if self.quiet:
            return
        if self.bars is not None:
            self.bars.console.print(text, highlight=False, markup=False)
        else:
            print(text, file=self.stream, flush=True)

    def stage(self, name: str, at: int = 1, of: int = 1) -> Callable[[dict[str, Any]], None]:
        """The callback for one cell, number `at` of `of`."""
        if self.quiet:
            return lambda event: None
        prefix = f"[{at}/{of}] {name}" if of > 1 else name
        return self._on_bar(prefix) if self.bars is not None else self._on_lines(prefix)

    def _on_bar(self, prefix: str) -> Callable[[dict[str, Any]], None]:
        bars = self.bars
        assert bars is not None
        task = bars.add_task(prefix, total=None, left="")

        def show(event: dict[str, Any]) -> None:
            total = event.get("total")
            bars.update(
                task,
                description=f"{prefix}  {_phase(event)}",
                completed=event.get("done", 0),
                total=total if total else None,
                left=_left(event),
            )

        return show

    def _on_lines(self, prefix: str) -> Callable[[dict[str, Any]], None]:
        state: dict[str, Any] = {"phase": None, "at": -math.inf}

        def show(event: dict[str, Any]) -> None:
            now = time.monotonic()
            last = bool(event.get("total")) and event.get("done") == event.get("total")
            if event.get("phase") == state["phase"] and now - state["at"] < EVERY and not last:
                return
            state.update(phase=event.get("phase"), at=now)
            done = f" {event['done']}"
            if event.get("phase") != "first_order" and event.get("total"):  # there the total is a bound, not a goal
                done += f"/{event['total']}"
            print(f"{prefix}: {_phase(event)}{done}{_left(event)}", file=self.stream, flush=True)

        return show


PHASES = {"warmup": "warm-up", "sample": "sampling", "first_order": "level 4, draws of one unit"}


def _phase(event: dict[str, Any]) -> str:
    """The name of a phase, in words."""
    name = str(event.get("phase", "")) or "done"
    return PHASES.get(name, name)


def _left(event: dict[str, Any]) -> str:
    """What an event says about its error and the time left."""
    text = ""
    error = event.get("worst")
    if error is not None and math.isfinite(error):
        text += f", error {100 * error:.2g} % of the effect"
    left = event.get("eta_s")
    if left is not None and math.isfinite(left):
        text += f", about {duration(left)} left"
    return text


# Columns that a narrow terminal goes without, the least needed first; the report and its files have them all.
DISPENSABLE = ("power", "NaN", "warm-up", "reduction", "p, largest together", "measured − predicted", "starts", "ESS/s", "R²", "licence",
               "fall", "rise", "p", "derivative", "threshold", "false alarm", "infinite width", "a·f̄", "Δ₁", "Δ₂", "z", "α")  # fmt: skip


def print_table(table: Shown, stream: TextIO | None = None) -> None:
    """A report table on the terminal: boxes and colour where there is one, plain aligned columns in a log file."""
    from rich.console import Console

    out = sys.stdout if stream is None else stream
    console = Console(file=out, width=None if out.isatty() else 160, highlight=False)
    for name in DISPENSABLE:
        if _width(table) <= console.width:
            break
        titles = [title for title, _ in table.columns]
        if name in titles:
            at = titles.index(name)
            rows = [row[:at] + row[at + 1 :] for row in table.rows]
            table = table._replace(columns=table.columns[:at] + table.columns[at + 1 :], rows=rows)
    if _width(table) > console.width:  # a wrapped line can be read, a number that is cut off cannot
        console = Console(file=out, width=_width(table), highlight=False)
    console.print(_grid(table))


def _width(table: Shown) -> int:
    """Characters that the table takes, running text counted at PROSE."""
    columns = zip(
        *([title for title, _ in table.columns], *([cell.text for cell in row] for row in table.rows)), strict=True
    )
    return sum(min(max(map(len, column)), PROSE) + 3 for column in columns)


def _grid(table: Shown) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    grid = Table(title=table.caption, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for index, ((name, _), cell) in enumerate(zip(table.columns, table.rows[0], strict=True)):
        # Columns of numbers and names keep their width; running text takes what is left and wraps.
        prose = max(len(row[index].text) for row in table.rows) > PROSE
        grid.add_column(
            name, justify="right" if cell.kind.startswith("num") else "left", no_wrap=not prose, overflow="fold"
        )
    colours = {"outcome differs": "red", "outcome agrees": "green", "outcome inconclusive": "yellow", "strong": "bold"}
    for row in table.rows:
        grid.add_row(*[Text(cell.text, style=colours.get(cell.kind, "")) for cell in row])
    return grid
