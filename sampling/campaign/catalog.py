"""Catalogues: the cells of a spec, one a line, in a file named by its content, where workers find what an id means."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import InputError
from sampling.atomic import replacing
from sampling.campaign.cell import ID, Cell
from sampling.campaign.small import read_json

if TYPE_CHECKING:
    from sampling.campaign.spec import Spec

FOLDER, SPEC = "catalogue", "campaign.json"
FORMAT = 1


def write(folder: Path, spec: Spec) -> Path:
    """Write the catalogue of a spec, and `campaign.json`, which names it as the one that is wanted now. Returns its path.

    Two specs in one folder share cells and have a catalogue each; the last one written is what `status` and `report` speak of.
    Raises InputError for a data file that is not there or leaves the folder; OSError where nothing can be written.
    """
    from sampling.campaign.spec import cells

    told = spec.model_dump(mode="json", by_alias=True)
    folder.mkdir(parents=True, exist_ok=True)
    # Its name must follow from what is in it, data files included: written under a name of our own, and named after.
    count, place = 0, folder / FOLDER
    content, new = hashlib.sha256(), place / f"new-{secrets.token_hex(8)}"
    with replacing(new) as temporary, temporary.open("w", encoding="utf-8") as out:
        for cell in cells(spec, folder):
            line = cell.line()
            content.update(line.encode())
            out.write(line)
            count += 1
    path = place / f"{content.hexdigest()[:16]}.jsonl"
    new.replace(path)
    with replacing(folder / SPEC) as temporary:
        about = {"format": FORMAT, "catalogue": path.name, "cells": count, "spec": told}
        temporary.write_text(json.dumps(about, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    return path


def current(folder: Path) -> tuple[Path, int, dict[str, Any]]:
    """The catalogue wanted now, its number of cells, and the spec as plain values. Raises InputError where there is none."""
    told = read_json(folder / SPEC)
    if told is None:
        raise InputError(
            f"{folder} holds no campaign: there is no readable {SPEC}; give the folder of `campaign run --out`"
        )
    try:
        name, count, spec = told["catalogue"], told["cells"], told["spec"]
        good = told["format"] == FORMAT and isinstance(count, int) and isinstance(spec, dict) and _named(name)
    except (KeyError, TypeError):
        good = False
    if not good or not (folder / FOLDER / name).is_file():
        raise InputError(f"{folder / SPEC} is damaged or of another version: run `campaign run` with the spec again")
    return folder / FOLDER / name, count, spec


def spec_of(folder: Path) -> Spec:
    """The spec of the campaign in a folder. Raises InputError as `current`, and where it does not validate."""
    from sampling.campaign.source import Source
    from sampling.campaign.spec import validate

    return validate(Source(current(folder)[2], {}), SPEC)


def read(path: Path) -> Iterator[Cell]:
    """The cells of a catalogue, in the spec's order. Raises InputError for a line that is not a cell."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield Cell.of_line(line)


def ids(path: Path) -> Iterator[str]:
    """The ids alone, which need no parsing."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield line[:32]


def find(folder: Path, ids: Iterable[str]) -> dict[str, Cell]:
    """The cells of these ids, in the order given, from the catalogues of a folder, the current one first.

    Raises InputError for an id that stands in none.
    """
    order: Sequence[str] = list(dict.fromkeys(ids))
    for one in order:
        if not ID.fullmatch(one):
            raise InputError(f"cell {one[:80]!r}: an id is 32 hexadecimal digits")
    found: dict[str, Cell] = {}
    first = current(folder)[0]
    for path in (first, *sorted(set((folder / FOLDER).glob("*.jsonl")) - {first})):
        left = set(order) - set(found)
        if not left:
            break
        with path.open(encoding="utf-8") as lines:
            for line in lines:
                if line[:32] in left:  # parsing is what costs
                    found[line[:32]] = Cell.of_line(line)
    lacking = [one for one in order if one not in found]
    if lacking:
        raise InputError(f"cell {lacking[0]} stands in no catalogue of {folder}: run the campaign again")
    return {one: found[one] for one in order}


def _named(name: Any) -> bool:
    return isinstance(name, str) and name.endswith(".jsonl") and len(name) == 22 and name[:16].isalnum()
