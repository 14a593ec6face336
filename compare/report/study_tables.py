"""The tables of a study as its page shows them: the answer per data set, levels, budget and weights over subsets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compare.report.shown import Cell, Shown, err, outcome, real, share
from compare.report.wording import LEVELS, label, number

if TYPE_CHECKING:
    import pandas as pd

    from compare.study import Study

OVER = "over the subsets: random-effects mean with its standard error"
SPREAD = "how much it varies between subsets beyond the error of each (random-effects τ)"
NEXT = "where it will lie on one more subset, with 95 % probability"


def shown(study: Study) -> dict[str, Shown]:
    """What the page shows, by name; a table without rows is left out."""
    several = study.subsets > 1
    made = [
        answers(study.answers),
        levels(study.levels, several),
        budget(study.budget, several),
        weights(study.weights, several),
        peaks(study.peaks),
        cells(study.cells),
    ]
    return {table.name: table for table in made if table.rows}


def _num(text: str, sort: Any) -> Cell:
    return Cell(text, real(sort), "num")


def _range(low: Any, high: Any, scale: float = 1.0, unit: str = "") -> Cell:
    if real(low) is None or real(high) is None:
        return _num("–", None)
    return _num(f"{number(scale * low, 3)} to {number(scale * high, 3)}{unit}", low)


def _votes(row: Any) -> Cell:
    return Cell(f"{row.agree} agree, {row.differ} differ, {row.undecided} undecided", float(row.agree))


def _head(row: Any) -> list[Cell]:
    return [Cell(row.series), _num(str(row.N1), row.N1), _num(f"{row.T:g}", row.T)]


HEAD = [("data set", "the data, or a control"), ("N₁", "hidden units"), ("T", "temperature")]


def answers(table: pd.DataFrame) -> Shown:
    """Is there an interior maximum, over which T, is it where Eq. (4) puts it, does Delta2 make it: one row a data set."""
    columns = [
        ("data set", "the data, or a control"),
        ("N₁", "hidden units"),
        ("interior maximum", "of the mean ⟨D²⟩ over subsets: rise and fall both tested on paired differences"),
        ("subsets alone", "how many answer yes, how many no, how many cannot tell"),
        ("looked for in T", "nothing is said of other temperatures"),
        (
            "T of the maximum",
            "random-effects mean of log T with its 95 % interval; ×/÷ how much it varies between subsets",
        ),
        ("Eq. (4) puts it at", "geometric mean over the subsets; a dash where Eq. (4) has none"),
        ("same place", "within a factor of 2 in T, paired over the subsets; where neither has a maximum it agrees"),
        ("made by Δ₂", "Δ₂ makes more than half of both the rise and the fall"),
        ("Δ₂ of the rise", "share of the rise from the lowest T that Δ₂ makes"),
        ("Δ₂ of the fall", "share of the fall to the highest T that Δ₂ makes"),
    ]
    rows = []
    for row in table.itertuples():
        where = number(real(row.T_peak), 3)
        if real(row.T_low) is not None:
            where += f" [{row.T_low:.3g}, {row.T_high:.3g}]"
        if real(row.factor) is not None and row.factor > 1:
            where += f" ×/÷ {row.factor:.2f}"
        reason = row.reason if row.has_maximum == "inconclusive" else ""
        rows.append(
            [
                Cell(row.series, None, "strong"),
                _num(str(row.N1), row.N1),
                Cell(row.has_maximum, None, "strong", reason),
                Cell(f"{row.yes} yes, {row.no} no, {row.open} open", float(row.yes)),
                Cell(f"{row.T_min:g} to {row.T_max:g}", real(row.T_min)),
                _num(where, row.T_peak),
                _num(number(real(row.T_eq4), 3), row.T_eq4),
                outcome(row.place),
                Cell(row.delta2 or "–", None, "strong"),
                share(row.rise_share, row.rise_share_se),
                share(row.fall_share, row.fall_share_se),
            ]
        )
    return Shown("answers", "The answer per data set", columns, rows, quiet=True)


def levels(table: pd.DataFrame, several: bool) -> Shown:
    """Every level against the measurement, over the subsets."""
    columns = [
        *HEAD,
        ("level", "which formula"),
        ("outcome", "equivalence over the population of subsets, the margin a share of the mean effect"),
        ("measured − predicted", OVER if several else "with the joint standard error"),
        ("of the effect", "subset by subset, relative to measured minus the prior's ⟨D²⟩"),
        ("spread", SPREAD),
        ("one more subset", NEXT),
        ("subsets alone", "verdicts of the subsets one by one"),
    ]
    rows = [
        [
            *_head(row),
            Cell(label(row.level), float(list(LEVELS).index(row.level))),
            outcome(row.outcome),
            err(row.difference, row.se, sign=True),
            share(row.relative_to_effect, row.relative_se),
            share(row.relative_tau),
            _range(row.relative_predicted_low, row.relative_predicted_high, 100.0, " %"),
            _votes(row),
        ]
        for row in table.itertuples()
    ]
    return Shown("levels", "Levels over the subsets", columns, rows, filters=(0, 3, 4), quiet=True)


def budget(table: pd.DataFrame, several: bool) -> Shown:
    """The parts of measured - Eq. (4), over the subsets."""
    columns = [
        *HEAD,
        ("part", "a part of measured − Eq. (4)"),
        ("contribution to ⟨D²⟩", OVER if several else "with its standard error"),
        ("spread", SPREAD),
        ("one more subset", NEXT),
        ("of the effect", "relative to measured minus the prior's ⟨D²⟩"),
    ]
    rows = [
        [
            *_head(row),
            Cell(label(row.part), None, "strong" if row.part == "total" else ""),
            err(row.value, row.se, sign=True),
            _num(number(real(row.tau), 2), row.tau),
            _range(row.predicted_low, row.predicted_high),
            share(row.share, row.share_se),
        ]
        for row in table.itertuples()
    ]
    return Shown("budget", "Error budget of Eq. (4) over the subsets", columns, rows, filters=(0, 3), quiet=True)


def weights(table: pd.DataFrame, several: bool) -> Shown:
    """Slope of measured on predicted covariance of the weights, over the subsets."""
    columns = [
        *HEAD,
        ("slope", (OVER if several else "with its standard error") + "; 1 is agreement"),
        ("spread", SPREAD),
        ("subsets alone", "verdicts of the subsets one by one"),
    ]
    rows = [
        [*_head(row), err(row.slope, row.se), _num(number(real(row.tau), 2), row.tau), _votes(row)]
        for row in table.itertuples()
    ]
    return Shown("weights", "Covariance of the weights: measured on predicted", columns, rows, filters=(0,), quiet=True)


def _report(row: Any) -> Cell:
    """The subset's number, linked to its own report where it has one."""
    return Cell(str(row.subset), float(row.subset), "", "", f"{row.folder}/report.html" if row.folder else "")


def peaks(table: pd.DataFrame) -> Shown:
    """The answer on each subset alone."""
    columns = [
        ("data set", "the data, or a control"),
        ("subset", "its own report"),
        ("N₁", "hidden units"),
        ("interior maximum", "of measured ⟨D²⟩ on this subset"),
        ("T of the maximum", "with its 95 % interval"),
        ("Eq. (4) puts it at", ""),
        ("same place", "within a factor of 2 in T"),
        ("made by Δ₂", ""),
        ("derivative", "independent witness: sign change of the covariance of D² with Σ(y − f)²"),
    ]
    rows = []
    for row in table.itertuples():
        where = number(real(row.T_peak), 3)
        if real(row.T_low) is not None:
            where += f" [{row.T_low:.3g}, {row.T_high:.3g}]"
        reason = row.reason if row.has_maximum == "inconclusive" else ""
        rows.append(
            [
                Cell(row.series),
                _report(row),
                _num(str(row.N1), row.N1),
                Cell(row.has_maximum, None, "strong", reason),
                _num(where, row.T_peak),
                _num(number(real(row.T_eq4), 3), row.T_eq4),
                outcome(row.place),
                Cell(row.delta2 or "–"),
                Cell(row.witness or "–"),
            ]
        )
    return Shown("peaks", "The maximum on each subset", columns, rows, filters=(0, 3))


def cells(table: pd.DataFrame) -> Shown:
    """Every run: what it measured and whether it may be used."""
    columns = [
        ("data set", "the data, or a control"),
        ("subset", "its own report"),
        ("N₁", "hidden units"),
        ("T", "temperature"),
        ("run", "converged, or why it carries no verdict"),
        ("measured ⟨D²⟩", "with its standard error"),
        ("Eq. (4)", ""),
        ("measured − Eq. (4), of the effect", ""),
        ("R̂", ""),
        ("effective draws", "of D²"),
        ("seconds", "of sampling"),
    ]
    rows = [
        [
            Cell(row.series),
            _report(row),
            _num(str(row.N1), row.N1),
            _num(f"{row.T:g}", row.T),
            Cell("ok" if row.status == "ok" else row.status, None, "" if row.status == "ok" else "strong", row.reasons),
            err(row.measured, row.measured_se),
            _num(number(real(row.eq4), 4), row.eq4),
            share(row.relative_to_effect, row.relative_se),
            _num(f"{row.rhat:.3f}" if real(row.rhat) is not None else "–", row.rhat),
            _num(f"{row.ess:.0f}" if real(row.ess) is not None else "–", row.ess),
            _num(f"{row.wall_seconds:.0f}", row.wall_seconds),
        ]
        for row in table.itertuples()
    ]
    return Shown("cells", "Every run", columns, rows, filters=(0, 3, 4))
