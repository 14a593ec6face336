"""Predictions against measurements: budget, verdicts, reports and the command line.

    import compare
    from data.problem import Problem
    from data.registry import load

    dataset = load("digits", P=100)
    report = compare.verify([Problem(dataset, N1=100, T=T) for T in (0.01, 0.1, 1.0)], out="report")
    report.sentence, report.levels, report.budget          # the verdict in a sentence; pandas tables
    report.cells[0].run.inference_data()                    # the chains, for ArviZ's own plots

Names are imported when first used, so that `saddlecheck --help` is instant.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from compare.budget import Budget, error_budget
    from compare.cell import Cell
    from compare.measure import Measurement
    from compare.result import Report
    from compare.study import Study
    from compare.verdict import Verdict, equivalence
    from compare.verify import reread, sample, verify
    from compare.verify_subsets import reread_subsets, verify_subsets

_HOME = {
    "Budget": "budget",
    "Cell": "cell",
    "Measurement": "measure",
    "Report": "result",
    "Study": "study",
    "Verdict": "verdict",
    "equivalence": "verdict",
    "error_budget": "budget",
    "reread": "verify",
    "reread_subsets": "verify_subsets",
    "sample": "verify",
    "verify": "verify",
    "verify_subsets": "verify_subsets",
}
__all__ = [
    "Budget",
    "Cell",
    "Measurement",
    "Report",
    "Study",
    "Verdict",
    "equivalence",
    "error_budget",
    "reread",
    "reread_subsets",
    "sample",
    "verify",
    "verify_subsets",
]


class _Package(ModuleType):
    """Keeps `compare.verify` the function: importing the submodule of that name would put the module in its place."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOME and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
