"""What a table is, on the page and at the terminal: entries that know how they sort, and how a number is written with its error."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from compare.report.wording import number, percent, with_error
from compare.store import part_of

if TYPE_CHECKING:
    import pandas as pd

MARKS = {"agrees": "✓", "differs": "✗", "inconclusive": "?"}


class Cell(NamedTuple):
    """One entry of a shown table: its text, the number it sorts by (None: by text), a style class, a second line, a link."""

    text: str
    sort: float | None = None
    kind: str = ""
    note: str = ""
    href: str = ""


class Shown(NamedTuple):
    """A table as the page shows it: anchor, caption, column titles with explanations, rows, columns to filter by.

    `judged` are columns of outcomes, level by level: the page offers to filter by a level and an outcome together.
    """

    name: str
    caption: str
    columns: list[tuple[str, str]]
    rows: list[list[Cell]]
    filter_by: int | None = None
    quiet: bool = False  # the section's heading says what the caption says
    filters: tuple[int, ...] = ()
    judged: tuple[int, ...] = ()


def real(value: Any) -> float | None:
    """The value as a finite float, or None."""
    if value is None:
        return None
    found = float(value)
    return found if math.isfinite(found) else None


def num(value: Any, digits: int = 4) -> Cell:
    """A number without an error."""
    return Cell(number(real(value), digits), real(value), "num")


def count(value: Any) -> Cell:
    """A whole number."""
    found = real(value)
    return Cell("–" if found is None else f"{found:.0f}", found, "num")


def err(value: Any, se: Any, *, sign: bool = False) -> Cell:
    """A number with its standard error."""
    return Cell(with_error(real(value), real(se), sign=sign), real(value), "num")


def share(value: Any, se: Any = None, *, sign: bool = True) -> Cell:
    """A share in per cent, with its standard error."""
    return Cell(percent(real(value), real(se), sign=sign), real(value), "num")


def outcome(word: str) -> Cell:
    """An outcome by mark, word and colour, so that none of them is needed alone."""
    return Cell(f"{MARKS.get(word, '')} {word}".strip(), None, f"outcome {word}")


def write_frames(frames: Mapping[str, pd.DataFrame], folder: Path) -> list[Path]:
    """Each table that has rows as `NAME.csv` and `NAME.parquet` in `folder`; full precision, one row an entry."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, table in frames.items():
        for suffix in ("csv", "parquet"):
            path = folder / f"{name}.{suffix}"
            if table.empty:
                path.unlink(missing_ok=True)  # a leftover of an earlier report in this folder would mislead
                continue
            with part_of(path) as part:
                if suffix == "csv":
                    table.to_csv(part, index=False)
                else:
                    table.to_parquet(part, index=False)
            written.append(path)
    return written
