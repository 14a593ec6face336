"""Command-line values into numbers and problems: lists, ranges, load or width, data; every mistake is an InputError."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from data.errors import InputError

if TYPE_CHECKING:
    from data.problem import Dataset, Problem

DEFAULT_P = 100
DEFAULT_POINTS = 7


def numbers(flag: str, text: str) -> list[float]:
    """`"0.01,0.1,1"` as floats, in the order given, each once."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise InputError(f"{flag} is empty: give numbers separated by commas, as in {flag} 0.01,0.1,1")
    found = []
    for part in parts:
        try:
            value = float(part)
        except ValueError:
            raise InputError(
                f"{flag}: {part!r} is not a number; give numbers separated by commas, as in {flag} 0.01,0.1,1"
            ) from None
        if not math.isfinite(value):
            raise InputError(f"{flag}: {part!r} is not a finite number")
        found.append(value)
    return list(dict.fromkeys(found))


def temperatures(text: str, points: int | None = None) -> list[float]:
    """Temperatures, ascending: a list, `"0.01,0.1,1"`, or a range, `"0.001..10"`, of `points` values even in log T."""
    if ".." not in text:
        if points is not None:
            raise InputError(
                "--T-points belongs to a range: give --T as LOW..HIGH, for example --T 0.001..10 --T-points 7"
            )
        return sorted(numbers("--T", text))
    ends = text.split("..")
    if len(ends) != 2 or not all(end.strip() for end in ends) or "," in text:
        raise InputError(f"--T {text}: give a list, 0.01,0.1,1, or one range, LOW..HIGH, for example 0.001..10")
    low, high = (numbers("--T", end)[0] for end in ends)
    if not 0 < low < high:
        raise InputError(f"--T {text}: a range is LOW..HIGH with 0 < LOW < HIGH, for example 0.001..10")
    count = DEFAULT_POINTS if points is None else points
    if count < 2:
        raise InputError(f"--T-points {count}: a range needs at least 2 temperatures")
    step = math.log(high / low) / (count - 1)
    # Rounded to 3 figures, so that the values printed are the values used; the ends are exact.
    inner = [float(f"{low * math.exp(step * i):.3g}") for i in range(1, count - 1)]
    return [low, *inner, high]


def widths(N1: str | None, alpha: str | None, P: int, default: int = 100) -> list[int]:
    """Numbers of hidden units from `--N1`, or from `--alpha` (N1 = P/alpha to the nearest whole number)."""
    if N1 is not None and alpha is not None:
        raise InputError("--N1 and --alpha say the same thing: give one of them (alpha = P/N1)")
    if alpha is not None:
        loads = numbers("--alpha", alpha)
        if min(loads) <= 0:
            raise InputError(f"--alpha {alpha}: a load must be > 0 (alpha = P/N1)")
        return list(dict.fromkeys(max(1, round(P / load)) for load in loads))
    if N1 is None:
        return [default]
    found = numbers("--N1", N1)
    for value in found:
        if value != int(value) or value < 1:
            raise InputError(f"--N1 {N1}: the number of hidden units must be a whole number >= 1")
    return [int(value) for value in found]


def load_dataset(
    data: str,
    *,
    classes: str | None = None,
    P: int | None = None,
    labels: str = "true",
    label_seed: int = 0,
    subset_seed: int | None = None,
    balanced: bool | None = None,
    standardise: str | None = None,
    P_test: int = 0,
) -> Dataset:
    """The data set that the flags name; a registry name without `--P` takes 100 patterns, a file takes all its rows."""
    from data.registry import load

    if P is not None and P < 2:
        raise InputError(f"--P {P}: at least 2 patterns, one of each class, are needed")
    if P is None and not is_file(data):
        P = DEFAULT_P
    return load(
        data,
        classes=classes,
        P=P,
        seed=subset_seed,
        balanced=balanced,
        labels=labels,
        label_seed=label_seed,
        standardise=standardise,
        P_test=P_test,
    )


def is_file(data: str) -> bool:
    """Whether `--data` is a path rather than a registry name."""
    return data.endswith(".npz") or "/" in data or Path(data).is_file()


def problems(
    dataset: Dataset, N1: list[int], T: list[float], *, lambda0: float, lambda1: float, activation: str
) -> list[Problem]:
    """One Problem for each width and temperature: N1 outer, T inner, as the cells of the output are ordered."""
    from data.problem import Problem

    return [
        Problem(dataset, N1=width, T=t, lambda0=lambda0, lambda1=lambda1, activation=activation)
        for width in N1
        for t in T
    ]
