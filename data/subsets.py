"""Several data subsets of one source: disjoint where it is large enough, else independent draws without replacement within each."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from data.errors import InputError
from data.problem import Dataset
from data.registry import describe, load
from data.seeds import check_seed
from data.selection import check_count

DISJOINT, OVERLAPPING, GENERATED = "disjoint", "overlapping", "generated"
HOW = {
    DISJOINT: "no pattern stands in two subsets",
    OVERLAPPING: "each is drawn without replacement, and two may share patterns: the data set is too small for disjoint ones, "
    "so the spread between subsets comes out too small",
    GENERATED: "each is generated anew, with a seed of its own",
}


def subsets(
    name: str | os.PathLike[str], count: int, *, seed: int | None = None, **options: Any
) -> tuple[list[Dataset], str]:
    """(`count` data sets of P patterns each, how they were chosen: a key of HOW).

    seed     of all of them (None is 0): disjoint ones are consecutive blocks of one seeded order, the others draw with the numbers
             of `seeds(seed, count)`
    options  of `data.registry.load`, the same for all: classes, P, balanced, labels, standardise, P_test
    Raises InputError as `load` does, without P, or for fewer than one.
    """
    count = check_count("subsets", count, 1)
    base = 0 if seed is None else check_seed("seed", seed)
    if options.get("P") is None:
        raise InputError("subsets need a number of patterns each: give P")
    if _generated(name):
        return [load(name, seed=one, **options) for one in seeds(base, count)], GENERATED
    try:
        # The last block first: it says at once whether there are enough patterns.
        last = load(name, seed=base, part=count - 1, **options)
    except InputError:
        if count == 1:
            raise
        return [load(name, seed=one, **options) for one in seeds(base, count)], OVERLAPPING
    return [*(load(name, seed=base, part=part, **options) for part in range(count - 1)), last], DISJOINT


def _generated(name: str | os.PathLike[str]) -> bool:
    try:
        return bool(describe(str(name).partition(":")[0])["kind"] == "synthetic")
    except InputError:  # a path, or a name that `load` will refuse
        return False


def seeds(base: int, count: int) -> list[int]:
    """Seeds that depend on (base, place) alone: more subsets leave the first ones as they were."""
    return [int(np.random.SeedSequence([base, k]).generate_state(1, np.uint32)[0]) for k in range(count)]
