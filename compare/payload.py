"""The JSON that the commands print: plain values, no NaN, the same shape for one cell and for many."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from data.problem import Problem
    from theory import Prediction


def plain(value: Any) -> Any:
    """`value` as JSON types: arrays as lists, dataclasses as objects, a number that is not finite as null."""
    if isinstance(value, (bool, str, int)) or value is None:
        return value
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(one) for one in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    raise TypeError(f"{type(value).__name__} has no place in a JSON object")


def dumps(value: Any) -> str:
    """One JSON object as text; floats keep all their digits."""
    return json.dumps(plain(value), indent=1, allow_nan=False, ensure_ascii=False)


def common_problem(problems: Sequence[Problem]) -> dict[str, Any]:
    """What all cells share, with the lists of N1 and T over which they range, and the provenance of the data."""
    shared = problems[0].describe()
    for key in ("fingerprint", "alpha"):
        shared.pop(key)
    shared["N1"] = list(dict.fromkeys(p.N1 for p in problems))
    shared["T"] = list(dict.fromkeys(p.T for p in problems))
    return shared


def cell_problem(problem: Problem) -> dict[str, Any]:
    """The problem of one cell; the provenance of the data stands once, in the common problem."""
    described = problem.describe()
    described.pop("provenance")
    return described


def prediction_cell(prediction: Prediction) -> dict[str, Any]:
    """One cell of `predict --json`."""
    return {"problem": cell_problem(prediction.problem), **prediction.to_dict()}
