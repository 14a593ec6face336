"""Which rows: P patterns by file order or by seed, balanced or as they come, and test rows that training never sees."""

from __future__ import annotations

import hashlib
import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from data.errors import InputError
from data.seeds import stream

LISTED = 100  # up to so many indices are written out in provenance; beyond, their count and sha256


class TooFew(InputError):
    """More patterns were asked for than there are; a fuller copy of the same data set may have them."""


@dataclass(frozen=True, eq=False)
class Pool:
    """Patterns to choose from: X (n, N0), y (n,), sign (n,) +1/-1 or 0 for "not in `classes`", index (n,) in the file."""

    X: np.ndarray
    y: np.ndarray
    sign: np.ndarray
    index: np.ndarray


def check_count(name: str, value: Any, least: int) -> int:
    """`value` as a whole number >= least; raises InputError otherwise."""
    try:
        count = operator.index(value)
    except TypeError:
        raise InputError(f"{name} = {value!r}: it must be a whole number >= {least}") from None
    if count < least:
        raise InputError(f"{name} = {count}: it must be a whole number >= {least}")
    return count


def choose(
    sign: np.ndarray,
    P: int | None,
    *,
    seed: int | None,
    balanced: bool,
    P_test: int = 0,
    what: str,
    test: bool = False,
    part: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """Positions of P training rows and, after them in the same order, of P_test others.

    sign      (n,) +1, -1, or 0 for rows that are not to be chosen
    P         None takes every row that balance and P_test leave
    seed      None takes file order; a number a subset without replacement, in file order once chosen. Subsets of
              one seed are nested: P = 50 is part of P = 100
    balanced  P/2 of each class, all positives before all negatives; otherwise rows as they come
    part      0, 1, ...: that one of the disjoint blocks of P + P_test rows of the same seed; 0 is the first

    Raises TooFew when there are not that many, InputError for odd P with balanced, or rows of one class only.
    `what` names the rows in messages; `test` draws from the streams of the test split.
    """

    def order(side: np.ndarray, purpose: str) -> np.ndarray:
        rows = np.flatnonzero(side)
        if seed is None:
            return rows
        rng = stream(seed, "test", purpose) if test else stream(seed, purpose)
        return rows[rng.permutation(len(rows))]

    name = "P_test" if test else "P"
    if balanced:
        for label, count in ((name, P), ("P_test", P_test)):
            if count is not None and count % 2:
                raise InputError(
                    f"{label} = {count} is odd: with equal class sizes it must be even (or balanced=False)"
                )
        sides = [order(sign > 0, "rows+"), order(sign < 0, "rows-")]
    else:
        sides = [order(sign != 0, "rows")]
    n = len(sides)
    held = P_test // n
    scarce = min(sides, key=len)
    each = len(scarce) - held if P is None else P // n
    first = part * (each + held)
    if each < 1 or first + each + held > len(scarce):
        asked = f"{name} = {'all' if P is None else P}" + (f" with P_test = {P_test}" if P_test else "")
        asked = f"{part + 1} disjoint subsets of {asked}" if part else asked
        kind = "" if not balanced else " of class +1" if scarce is sides[0] else " of class -1"
        raise TooFew(
            f"{asked} needs {first + max(each, 1) + held} patterns{kind}, and {what} has {len(scarce)}: ask for fewer"
        )

    def join(start: int, stop: int) -> np.ndarray:
        parts = [side[start:stop] for side in sides]
        return np.concatenate([part if seed is None else np.sort(part) for part in parts])

    rows, held_out = join(first, first + each), join(first + each, first + each + held)
    for label, chosen in ((name, rows), ("P_test", held_out)):
        if len(chosen) and len(np.unique(sign[chosen])) < 2:
            raise InputError(
                f"{label} = {len(chosen)}: every row chosen from {what} is of class {int(sign[chosen[0]]):+d}, and <D^2> "
                "needs both; take more rows, another seed, other classes, or balanced=True"
            )
    return rows, held_out


def describe_rows(
    index: np.ndarray, sign: np.ndarray, *, seed: int | None, balanced: bool, part: int = 0
) -> dict[str, Any]:
    """Provenance of a choice: the rule, the counts, and the indices themselves or, when many, their sha256."""
    order = "in file order" if seed is None else f"seeded subset (seed {seed})"
    order += f", disjoint block {part} of it" if part else ""
    rule = f"P/2 of each class, positives first, {order}" if balanced else f"rows as they come, {order}"
    found: dict[str, Any] = {
        "rule": rule,
        "seed": seed,
        "count": len(index),
        "positives": int((sign > 0).sum()),
        "sha256": hashlib.sha256(np.ascontiguousarray(index, dtype="<i8").tobytes()).hexdigest(),
    }
    if len(index) <= LISTED:
        found["indices"] = [int(i) for i in index]
    return found
