"""Tables that only commands print: predictions and measurements by themselves, data sets, checks of a sampler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from compare.report.shown import Cell, Shown, count, err, num
from compare.report.wording import LEVELS, label

if TYPE_CHECKING:
    from compare.measure import Measurement
    from data.problem import Problem
    from sampling.battery import CheckResult
    from theory import Prediction


def predicted(predictions: Sequence[Prediction]) -> Shown:
    """What `predict` prints: Qbar and every level, one row a cell."""
    names = [name for name in LEVELS if name in predictions[0].levels]
    columns = [("N₁", ""), ("α", ""), ("T", ""), ("Q̄", ""), ("Δ₁", ""), ("Δ₂", ""), ("a·f̄", "")]
    columns += [(label(name), "") for name in names]
    rows = []
    for p in predictions:
        row = [count(p.problem.N1), num(p.problem.alpha, 3), Cell(f"{p.problem.T:g}", p.problem.T, "num")]
        row += [num(value, 5) for value in (p.Qbar, p.delta1, p.delta2, p.fbar_a)]
        row += [err(p.levels[name].value, p.levels[name].se) if name in p.levels else num(None) for name in names]
        rows.append(row)
    return Shown("predicted", "Predictions of ⟨D²⟩", columns, rows)


def predicted_held_out(predictions: Sequence[Prediction]) -> Shown:
    """What `predict` prints of test patterns: generalisation error and <D^2> by level, one row a cell."""
    columns = [("N₁", ""), ("T", "")]
    rows: list[list[Cell]] = []
    for p in predictions:
        one = p.generalisation
        assert one is not None
        values = {f"loss, {label(name)}": value for name, value in one.losses.items()}
        values |= {f"⟨D²⟩, {label(name)}": level.value for name, level in one.d2.items()}
        columns = [("N₁", ""), ("T", ""), *[(name, "") for name in values]]
        cells = [num(value, 5) for value in values.values()]
        rows.append([count(p.problem.N1), Cell(f"{p.problem.T:g}", p.problem.T, "num"), *cells])
    return Shown("held_out", "Predictions on test patterns", columns, rows)


def measured(problems: Sequence[Problem], measurements: Sequence[Measurement]) -> Shown:
    """What `sample` prints: the measured quantities, one row a cell."""
    names = ("d2", "Q", "fbar_a", "residual")
    columns = [("N₁", ""), ("T", ""), *[(label(name), "") for name in names], ("ESS", ""), ("R̂", ""), ("status", "")]
    rows = []
    for problem, one in zip(problems, measurements, strict=True):
        status = "biased" if one.biased else one.diagnosis.status
        row = [count(problem.N1), Cell(f"{problem.T:g}", problem.T, "num")]
        row += [err(one.quantities[name].mean, one.quantities[name].se) for name in names]
        row += [count(one.d2.ess), num(one.d2.rhat, 4)]
        rows.append([*row, Cell(status, None, "" if status == "ok" else "outcome inconclusive")])
    return Shown("measured", "Measured", columns, rows)


def data_sets(found: Sequence[dict[str, Any]]) -> Shown:
    """What `data` prints."""
    columns = [("name", ""), ("inputs", ""), ("offline", ""), ("licence", ""), ("what it is", "")]
    rows = [
        [
            Cell(one["name"]),
            Cell(str(one.get("N0") or one.get("parameters", {}).get("N0", "")), None, "num"),
            Cell("yes" if one["offline"] else "no"),
            Cell(one["licence"]),
            Cell(one["summary"]),
        ]
        for one in found
    ]
    return Shown("data", "Data sets", columns, rows)


def checks(results: Sequence[CheckResult]) -> Shown:
    """What `check-sampler` prints: one row a check."""
    columns = [
        ("check", ""),
        ("result", ""),
        ("statistic", ""),
        ("threshold", ""),
        ("false alarm", ""),
        ("seconds", ""),
        ("what", ""),
    ]
    rows = [
        [
            Cell(one.name),
            Cell("✓ passed" if one.passed else "✗ FAILED", None, f"outcome {'agrees' if one.passed else 'differs'}"),
            num(one.statistic, 3),
            num(one.threshold, 3),
            num(one.false_alarm, 1),
            num(one.seconds, 2),
            Cell(one.detail),
        ]
        for one in results
    ]
    return Shown("checks", "Checks of the sampler", columns, rows)
