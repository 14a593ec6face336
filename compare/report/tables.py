"""The tables of a report: as files (CSV, Parquet) and as what the page shows, each number written with its error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from compare.report.wording import LEVELS, label, number, percent, with_error
from compare.store import part_of

if TYPE_CHECKING:
    import pandas as pd

    from compare.measure import Measurement
    from compare.result import Report
    from data.problem import Problem
    from sampling.battery import CheckResult
    from theory import Prediction

NAMES = (
    "levels",
    "budget",
    "decomposition",
    "generalisation",
    "weights_fit",
    "weights",
    "peak",
    "convergence",
    "runs",
    "chains",
    "curves",
)
MARKS = {"agrees": "✓", "differs": "✗", "inconclusive": "?"}


class Cell(NamedTuple):
    """One entry of a shown table: its text, the number it sorts by (None: by text), a style class, a second line, a link."""

    text: str
    sort: float | None = None
    kind: str = ""
    note: str = ""
    href: str = ""


class Shown(NamedTuple):
    """A table as the page shows it: anchor, caption, column titles with explanations, rows, columns to filter by.

    `judged` are columns of outcomes, level by level: the page offers to filter by a level and an outcome together.
    """

    name: str
    caption: str
    columns: list[tuple[str, str]]
    rows: list[list[Cell]]
    filter_by: int | None = None
    quiet: bool = False  # the section's heading says what the caption says
    filters: tuple[int, ...] = ()
    judged: tuple[int, ...] = ()


def write_tables(report: Report, folder: Path) -> list[Path]:
    """Each table that has rows as `NAME.csv` and `NAME.parquet` in `folder`; full precision, one row an entry."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in NAMES:
        table: pd.DataFrame = getattr(report, name)
        for suffix in ("csv", "parquet"):
            path = folder / f"{name}.{suffix}"
            if table.empty:
                path.unlink(missing_ok=True)  # a leftover of an earlier report in this folder would mislead
                continue
            with part_of(path) as part:
                if suffix == "csv":
                    table.to_csv(part, index=False)
                else:
                    table.to_parquet(part, index=False)
            written.append(path)
    return written


def shown(report: Report) -> dict[str, Shown]:
    """What the page shows, by name; a table without rows is left out."""
    made = [
        levels(report.levels),
        budget(report.budget),
        decomposition(report.decomposition),
        generalisation(report.generalisation),
        weights(report.weights_fit),
        peak(report.peak),
        convergence(report.convergence),
        runs(report.runs),
    ]
    return {table.name: _without_constant_width(table) for table in made if table.rows}


def _without_constant_width(table: Shown) -> Shown:
    """The table without its first column, N1, where all rows have the same (the facts of the page state it)."""
    if len({row[0].text for row in table.rows}) > 1:
        return table
    shift = None if table.filter_by is None else table.filter_by - 1
    return table._replace(columns=table.columns[1:], rows=[row[1:] for row in table.rows], filter_by=shift)


def _num(value: Any, digits: int = 4) -> Cell:
    real = _real(value)
    return Cell(number(real, digits), real, "num")


def _int(value: Any) -> Cell:
    real = _real(value)
    return Cell("–" if real is None else f"{real:.0f}", real, "num")


def _err(value: Any, se: Any, *, sign: bool = False) -> Cell:
    real = _real(value)
    return Cell(with_error(real, _real(se), sign=sign), real, "num")


def _share(value: Any, se: Any = None) -> Cell:
    real = _real(value)
    return Cell(percent(real, _real(se), sign=True), real, "num")


def _real(value: Any) -> float | None:
    if value is None:
        return None
    real = float(value)
    return real if math.isfinite(real) else None


def outcome(word: str) -> Cell:
    """An outcome by mark, word and colour, so that none of them is needed alone."""
    return Cell(f"{MARKS.get(word, '')} {word}".strip(), None, f"outcome {word}")


def levels(table: pd.DataFrame) -> Shown:
    """Every level of the theory against the measurement."""
    columns = [
        ("N₁", "hidden units"),
        ("T", "temperature"),
        ("level", "which formula"),
        ("outcome", "equivalence test with the margin stated above the table"),
        (
            "predicted ⟨D²⟩",
            "closed forms carry no statistical error; the first-order-exact level is an average and has one",
        ),
        ("measured ⟨D²⟩", "posterior average with its standard error"),
        ("measured − predicted", "with the joint standard error"),
        ("z", "the difference in standard errors"),
        ("of the effect", "the difference relative to measured ⟨D²⟩ minus the prior's"),
        ("power", "chance that this run had to find agreement if the level were exact"),
    ]
    rows = [
        [
            _int(row.N1),
            Cell(f"{row.T:g}", row.T, "num"),
            Cell(label(row.level), float(list(LEVELS).index(row.level))),
            outcome(row.outcome),
            _err(row.value, row.se),
            _err(row.measured, row.measured_se),
            _err(row.difference, row.difference_se, sign=True),
            Cell(_signed(row.z), _real(row.z), "num"),
            _share(row.relative_to_effect, row.relative_se),
            Cell(f"{row.power:.2f}" if _real(row.power) is not None else "–", _real(row.power), "num"),
        ]
        for row in table.itertuples()
    ]
    return Shown("levels", "Levels of the theory against the measurement", columns, rows, filter_by=3, quiet=True)


def _signed(value: Any) -> str:
    real = _real(value)
    return "–" if real is None else f"{real:+.1f}".replace("-", "−")


def budget(table: pd.DataFrame) -> Shown:
    """The parts of measured - Eq. (4)."""
    columns = [
        ("N₁", "hidden units"),
        ("T", "temperature"),
        ("part", "a part of measured − Eq. (4)"),
        ("contribution to ⟨D²⟩", "with its standard error"),
        ("of the effect", "relative to measured ⟨D²⟩ minus the prior's"),
    ]
    rows = [
        [
            _int(row.N1),
            Cell(f"{row.T:g}", row.T, "num"),
            Cell(label(row.part), None, "strong" if row.part == "total" else ""),
            _err(row.value, row.se, sign=True),
            _share(row.share, row.share_se),
        ]
        for row in table.itertuples()
    ]
    return Shown("budget", "Error budget of Eq. (4)", columns, rows, filter_by=2, quiet=True)


def decomposition(table: pd.DataFrame) -> Shown:
    """Q, the class difference of the output, Delta1 and Delta2: predicted and measured."""
    columns = [
        ("N₁", "hidden units"),
        ("T", "temperature"),
        ("quantity", ""),
        ("saddle point", "closed form at Q̄"),
        ("averaged over p(Q|y)", "the same at this finite width"),
        (
            "first order, exact",
            "without the Gaussian closure: the counterparts of Δ₁ and Δ₂, with their standard errors",
        ),
        ("measured", "from the chains, with its standard error"),
        ("measured − averaged", "with the standard error of the measurement"),
        ("z", "the difference in standard errors"),
    ]
    rows = []
    for row in table.itertuples():
        reference = row.q_averaged if _real(row.q_averaged) is not None else row.saddle
        difference = row.measured - reference
        z = difference / row.measured_se if row.measured_se > 0 else math.nan
        rows.append(
            [
                _int(row.N1),
                Cell(f"{row.T:g}", row.T, "num"),
                Cell(label(row.quantity)),
                _num(row.saddle, 5),
                _num(row.q_averaged, 5),
                _err(row.first_order, row.first_order_se),
                _err(row.measured, row.measured_se),
                _err(difference, row.measured_se, sign=True),
                Cell(_signed(z), _real(z), "num"),
            ]
        )
    return Shown("decomposition", "Order parameter, output and the two terms", columns, rows, filter_by=2, quiet=True)


def generalisation(table: pd.DataFrame) -> Shown:
    """Generalisation error and <D^2> on test patterns: every level against the measurement."""
    columns = [
        ("N₁", "hidden units"),
        ("T", "temperature"),
        ("quantity", "on patterns that were not trained on"),
        ("level", "which formula"),
        ("outcome", "equivalence test, the margin a share of measured minus the prior's value"),
        ("before training", "the prior's value"),
        ("predicted", "closed form"),
        ("measured", "posterior average with its standard error"),
        ("measured − predicted", "with the joint standard error"),
        ("z", "the difference in standard errors"),
        ("of the effect", "the difference relative to measured minus the prior's value"),
    ]
    rows = [
        [
            _int(row.N1),
            Cell(f"{row.T:g}", row.T, "num"),
            Cell(label(row.quantity)),
            Cell(label(row.level)),
            outcome(row.outcome),
            _num(row.prior, 5),
            _err(row.value, row.se),
            _err(row.measured, row.measured_se),
            _err(row.difference, row.difference_se, sign=True),
            Cell(_signed(row.z), _real(row.z), "num"),
            _share(row.relative_to_effect, row.relative_se),
        ]
        for row in table.itertuples()
    ]
    return Shown("generalisation", "Patterns not trained on", columns, rows, filter_by=4, quiet=True)


def weights(table: pd.DataFrame) -> Shown:
    """The line of measured on predicted weight covariances."""
    columns = [
        ("N₁", "hidden units"),
        ("T", "temperature"),
        ("slope", "of measured on predicted; its error is a jackknife over chains; 1 is agreement"),
        ("R²", "share of the variance explained, noise of the measurement included"),
        (
            "misfit",
            "squared distance of measured from predicted, noise removed, over the squared size of the prediction",
        ),
        ("reduction", "factor by which control variates lowered the standard error, geometric mean over components"),
        ("p, largest together", "Hotelling's test of the largest predicted components with their measured covariance"),
        ("components", "how many, and how many of them differ after false-discovery control at 5 %"),
        (
            "outcome",
            "agrees: slope and misfit are both shown to be within the margin; differs: either is shown to be outside",
        ),
    ]
    rows = [
        [
            _int(row.N1),
            Cell(f"{row.T:g}", row.T, "num"),
            _err(row.slope, row.slope_se),
            Cell(f"{row.r2:.4f}", _real(row.r2), "num"),
            Cell(percent(_real(row.misfit), _real(row.misfit_se)), _real(row.misfit), "num"),
            Cell(f"{row.reduction:.1f}" if _real(row.reduction) is not None else "–", _real(row.reduction), "num"),
            _num(row.joint_p, 2),
            Cell(f"{row.components}, {row.differ} differ", float(row.components)),
            outcome(row.outcome),
        ]
        for row in table.itertuples()
    ]
    return Shown(
        "weights_fit", "Covariance of the weights, measured on predicted", columns, rows, filter_by=8, quiet=True
    )


def peak(table: pd.DataFrame) -> Shown:
    """Is there an interior maximum of <D^2>(T), for the measurement and for each level."""
    columns = [
        ("N₁", "hidden units"),
        ("curve", "measured, or a level of the theory"),
        ("interior maximum", "yes: an inner T lies above both ends; no: any bump is smaller than the one that counts"),
        ("p", "of rises and then falls, over all inner temperatures"),
        ("range of T", "where it was looked for; nothing is said of other T"),
        ("T of the maximum", "of the curve through values and derivatives, with a 95 % interval for the measured one"),
        ("height", "⟨D²⟩ at the maximum"),
        ("rise", "height minus the value at the lowest T"),
        ("fall", "height minus the value at the highest T"),
        ("derivative", "independent witness: sign change of the covariance of D² with Σ(y − f)²"),
    ]
    rows = []
    for row in table.itertuples():
        interval = f" [{row.T_low:.3g}, {row.T_high:.3g}]" if _real(row.T_low) is not None else ""
        rows.append(
            [
                _int(row.N1),
                Cell(label(row.curve)),
                Cell(row.outcome, None, "strong"),
                Cell("< 10⁻⁴" if row.p < 1e-4 else number(_real(row.p), 2), _real(row.p), "num"),
                Cell(f"{row.T_min:g} to {row.T_max:g}"),
                Cell(f"{row.T_peak:.3g}{interval}" if _real(row.T_peak) is not None else "–", _real(row.T_peak), "num"),
                _err(row.height, row.height_se),
                _err(row.rise, row.rise_se, sign=True),
                _err(row.fall, row.fall_se, sign=True),
                Cell(row.witness or "–"),
            ]
        )
    return Shown("peak", "Is ⟨D²⟩ nonmonotonic in T", columns, rows, quiet=True)


def convergence(table: pd.DataFrame) -> Shown:
    """Mean, error, effective draws and R-hat of each observable."""
    columns = [
        ("N₁", "hidden units"),
        ("T", "temperature"),
        ("observable", ""),
        ("mean ± MCSE", "Monte Carlo standard error, autocorrelation included"),
        ("ESS bulk", "effective number of draws, bulk"),
        ("ESS tail", "effective number of draws, tails"),
        ("R̂", "between-chain over within-chain spread; 1 is agreement"),
        ("reduction", "factor by which control variates lowered the standard error; 1 where they are not used"),
    ]
    rows = [
        [
            _int(row.N1),
            Cell(f"{row.T:g}", row.T, "num"),
            Cell(label(row.observable)),
            _err(row.mean, row.mcse),
            Cell(f"{row.ess_bulk:.0f}" if _real(row.ess_bulk) is not None else "–", _real(row.ess_bulk), "num"),
            Cell(f"{row.ess_tail:.0f}" if _real(row.ess_tail) is not None else "–", _real(row.ess_tail), "num"),
            Cell(f"{row.rhat:.4f}" if _real(row.rhat) is not None else "–", _real(row.rhat), "num"),
            Cell(f"{row.reduction:.1f}" if _real(row.reduction) is not None else "–", _real(row.reduction), "num"),
        ]
        for row in table.itertuples()
    ]
    return Shown("convergence", "Convergence of the chains", columns, rows, filter_by=2)


def runs(table: pd.DataFrame) -> Shown:
    """One row a run: what ran, how well it mixed, what it cost, whether it may be used."""
    columns = [
        ("N₁", "hidden units"),
        ("T", "temperature"),
        ("sampler", ""),
        ("chains × draws", "after warm-up"),
        ("warm-up", "steps, not used"),
        ("starts", "where the chains began"),
        ("acceptance", "mean acceptance probability"),
        ("NaN", "share of proposals whose energy was not finite: rejected and counted"),
        ("relative error", "standard error of ⟨D²⟩ over ⟨D²⟩"),
        ("reduction", "factor by which control variates lowered the standard error of ⟨D²⟩"),
        ("ESS/s", "effective draws of D² (bulk, without control variates) per second of wall time"),
        ("wall time", "seconds, warm-up included"),
        ("status", "inconclusive runs carry no verdict"),
    ]
    rows = [
        [
            _int(row.N1),
            Cell(f"{row.T:g}", row.T, "num"),
            Cell(f"{row.sampler}{' (biased)' if row.biased else ''}"),
            Cell(f"{row.chains} × {row.draws}", float(row.chains * row.draws), "num"),
            _int(row.warmup),
            Cell(row.starts),
            Cell(f"{row.acceptance:.3f}", _real(row.acceptance), "num"),
            Cell(percent(row.nan_share, digits=2), _real(row.nan_share), "num"),
            Cell(percent(_real(row.relative_se), digits=2), _real(row.relative_se), "num"),
            Cell(f"{row.reduction:.1f}" if _real(row.reduction) is not None else "–", _real(row.reduction), "num"),
            _num(row.ess_per_second, 3),
            _num(row.wall_seconds, 3),
            Cell("ok") if row.status == "ok" else Cell(f"? {row.status}", None, "outcome inconclusive"),
        ]
        for row in table.itertuples()
    ]
    return Shown("runs", "Runs", columns, rows)


def predicted(predictions: Sequence[Prediction]) -> Shown:
    """What `predict` prints: Qbar and every level, one row a cell."""
    names = [name for name in LEVELS if name in predictions[0].levels]
    columns = [("N₁", ""), ("α", ""), ("T", ""), ("Q̄", ""), ("Δ₁", ""), ("Δ₂", ""), ("a·f̄", "")]
    columns += [(label(name), "") for name in names]
    rows = []
    for p in predictions:
        row = [_int(p.problem.N1), _num(p.problem.alpha, 3), Cell(f"{p.problem.T:g}", p.problem.T, "num")]
        row += [_num(value, 5) for value in (p.Qbar, p.delta1, p.delta2, p.fbar_a)]
        row += [_err(p.levels[name].value, p.levels[name].se) if name in p.levels else _num(None) for name in names]
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
        cells = [_num(value, 5) for value in values.values()]
        rows.append([_int(p.problem.N1), Cell(f"{p.problem.T:g}", p.problem.T, "num"), *cells])
    return Shown("held_out", "Predictions on test patterns", columns, rows)


def measured(problems: Sequence[Problem], measurements: Sequence[Measurement]) -> Shown:
    """What `sample` prints: the measured quantities, one row a cell."""
    names = ("d2", "Q", "fbar_a", "residual")
    columns = [("N₁", ""), ("T", ""), *[(label(name), "") for name in names], ("ESS", ""), ("R̂", ""), ("status", "")]
    rows = []
    for problem, one in zip(problems, measurements, strict=True):
        status = "biased" if one.biased else one.diagnosis.status
        row = [_int(problem.N1), Cell(f"{problem.T:g}", problem.T, "num")]
        row += [_err(one.quantities[name].mean, one.quantities[name].se) for name in names]
        row += [_int(one.d2.ess), _num(one.d2.rhat, 4)]
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
            _num(one.statistic, 3),
            _num(one.threshold, 3),
            _num(one.false_alarm, 1),
            _num(one.seconds, 2),
            Cell(one.detail),
        ]
        for one in results
    ]
    return Shown("checks", "Checks of the sampler", columns, rows)
