"""What the commands share: exit statuses, the problems and settings that flags name, Ctrl-C, JSON. Imports nothing heavy."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import typer

from compare import options
from data.errors import InputError

FAILED = 1
BAD_INPUT = 2
NOT_CONVERGED = 3
INTERRUPTED = 130


def problems(values: dict[str, Any]) -> list[Any]:
    """The cells that the flags name: N1 outer, T inner. Cheap mistakes are found before the data are read."""
    temperatures = options.temperatures(values["T"], values.get("T_points"))
    options.widths(values["N1"], values["alpha"], 100)
    keys = ("data", "classes", "P", "labels", "label_seed", "subset_seed", "balanced", "standardise")
    dataset = options.load_dataset(**{key: values[key] for key in keys}, P_test=values.get("P_test", 0))
    widths = options.widths(values["N1"], values["alpha"], dataset.P)
    network = {key: values[key] for key in ("lambda0", "lambda1", "activation")}
    return options.problems(dataset, widths, temperatures, **network)


def one_problem(values: dict[str, Any], command: str) -> Any:
    """The one cell that the flags name. Raises InputError where they name several."""
    found = problems(values)
    if len(found) != 1:
        raise InputError(f"{command} takes one problem at a time: give one N1 and one T, not {len(found)} pairs")
    return found[0]


def sampling(values: dict[str, Any]) -> dict[str, Any]:
    """Flags of the chains, as `compare.verify` takes them."""
    keys = ("sampler", "chains", "draws", "warmup", "seed", "device", "dtype")
    found = {key: values[key] for key in keys}
    found["starts"] = [kind.strip() for kind in values["starts"].split(",") if kind.strip()]
    # An exact number of draws is kept to: neither precision nor clock ends the run before.
    found["target"] = None if values["draws"] else values["target"]
    found["budget_seconds"] = None if values["draws"] else values["budget"]
    return found


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Ctrl-C, or a scheduler's TERM: say where the run stopped and how it goes on, and exit 130."""
    from sampling import Interrupted

    try:
        yield
    except Interrupted as stopped:
        print(f"stopped: {stopped}", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None


def emit(payload: dict[str, Any]) -> None:
    """Print one JSON object."""
    from compare.payload import dumps

    print(dumps(payload))
