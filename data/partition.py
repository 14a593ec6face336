"""Reading `classes`: which class indices are +1 and which are -1, from "even/odd", "0/1", "0,1,2/3,4", "first/second"."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from data.errors import InputError

FORMS = '"even/odd", "first/second" (halves), "0/1", "0,1,2/3,4" or "0-4/5-9"'


@dataclass(frozen=True)
class Partition:
    """Class indices on side + and on side -; patterns of other classes are left out."""

    text: str
    plus: tuple[int, ...]
    minus: tuple[int, ...]

    def sign(self, labels: np.ndarray) -> np.ndarray:
        """(n,) int8: +1, -1, or 0 for a pattern whose class is on neither side."""
        return np.isin(labels, self.plus).astype(np.int8) - np.isin(labels, self.minus).astype(np.int8)

    def describe(self) -> dict[str, Any]:
        """JSON-able form for provenance."""
        return {"text": self.text, "plus": list(self.plus), "minus": list(self.minus)}


def _members(text: str, known: Sequence[int], names: Sequence[str], whole: str) -> tuple[int, ...]:
    """Class indices that one side of the slash names: numbers, ranges a-b, class names, separated by commas."""
    found: list[int] = []
    for item in (part.strip() for part in text.split(",")):
        span = re.fullmatch(r"(-?\d+)-(-?\d+)", item)
        if re.fullmatch(r"[+-]?\d+", item):
            found.append(int(item))
        elif span and int(span[1]) <= int(span[2]):
            found.extend(range(int(span[1]), int(span[2]) + 1))
        elif item.lower() in names:
            found.append(list(names).index(item.lower()))
        else:
            near = difflib.get_close_matches(item.lower(), names, n=1)
            hint = f"did you mean {near[0]!r}? Otherwise give" if near else "give"
            raise InputError(f"classes = {whole!r}: cannot read {item!r}; {hint} {FORMS}")
    for index in found:
        if index not in known:
            raise InputError(f"classes = {whole!r}: there is no class {index}; the classes are {listing(known)}")
    return tuple(dict.fromkeys(found))


def listing(values: Sequence[int]) -> str:
    """Class indices in words, long lists cut in the middle."""
    shown = [str(value) for value in values]
    return ", ".join(shown if len(shown) <= 12 else [*shown[:8], "...", shown[-1]])


def parse(text: str, known: Sequence[int], names: Sequence[str] = ()) -> Partition:
    """The partition that `text` names among the class indices `known` (ascending); `names[i]` is the name of class i.

    even/odd          even class indices are +1, odd ones -1
    first/second      the first half of the class indices is +1, the second half -1 ("first/second half" is read too)
    A/B               class A is +1, class B is -1; either side may be a list "0,1,2", a range "0-4", or names ("cat/dog")

    Raises InputError, with the forms that are read, for anything else, an unknown class, or a class on both sides.
    """
    if not isinstance(text, str) or text.count("/") != 1:
        raise InputError(f"classes = {text!r}: give two sides with one slash between: {FORMS}")
    sides = [side.strip() for side in text.split("/")]
    words = tuple(side.lower().removesuffix("half").strip() for side in sides)
    if words == ("even", "odd"):
        plus = tuple(k for k in known if k % 2 == 0)
        minus = tuple(k for k in known if k % 2 == 1)
    elif words == ("first", "second"):
        if len(known) % 2:
            raise InputError(f"classes = {text!r}: {len(known)} classes have no halves; name the classes of each side")
        half = len(known) // 2
        plus, minus = tuple(known[:half]), tuple(known[half:])
    else:
        lowered = [name.lower() for name in names]
        plus, minus = (_members(side, known, lowered, text) for side in sides)
    both = sorted(set(plus) & set(minus))
    if both:
        raise InputError(f"classes = {text!r}: class {both[0]} is on both sides of the slash")
    if not plus or not minus:
        raise InputError(f"classes = {text!r}: one side is empty; the classes at hand are {listing(known)}")
    return Partition("/".join(sides), plus, minus)
