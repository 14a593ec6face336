"""Random streams: one generator for each purpose of a seed, so that asking for test rows never changes training rows."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from data.errors import InputError

# The place in this list is the spawn key: append only, or every seeded data set changes.
PURPOSES = ("rows+", "rows-", "rows", "labels", "inputs", "teacher", "readout", "noise", "signs", "test", "test labels")


def check_seed(name: str, value: Any) -> int:
    """`value` as a whole number >= 0; raises InputError otherwise."""
    try:
        seed = operator.index(value)
    except TypeError:
        raise InputError(f"{name} = {value!r}: a seed is a whole number >= 0") from None
    if seed < 0:
        raise InputError(f"{name} = {seed}: a seed is a whole number >= 0")
    return seed


def stream(seed: int, purpose: str, *more: str) -> np.random.Generator:
    """The generator of one purpose: that child of `SeedSequence(seed)`; `more` names a child of the child."""
    key = tuple(PURPOSES.index(name) for name in (purpose, *more))
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))
