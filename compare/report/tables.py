"""The tables of one report as its page shows them, each number written with its error."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from compare.report.shown import Cell, Shown, count, err, num, outcome, real, share
from compare.report.wording import LEVELS, label, number, percent

if TYPE_CHECKING:
    import pandas as pd

    from compare.result import Report

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
            count(row.N1),
            Cell(f"{row.T:g}", row.T, "num"),
            Cell(label(row.level), float(list(LEVELS).index(row.level))),
            outcome(row.outcome),
            err(row.value, row.se),
            err(row.measured, row.measured_se),
            err(row.difference, row.difference_se, sign=True),
            Cell(_signed(row.z), real(row.z), "num"),
            share(row.relative_to_effect, row.relative_se),
            Cell(f"{row.power:.2f}" if real(row.power) is not None else "–", real(row.power), "num"),
        ]
        for row in table.itertuples()
    ]
    return Shown("levels", "Levels of the theory against the measurement", columns, rows, filter_by=3, quiet=True)


def _signed(value: Any) -> str:
    found = real(value)
    return "–" if found is None else f"{found:+.1f}".replace("-", "−")


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
            count(row.N1),
            Cell(f"{row.T:g}", row.T, "num"),
            Cell(label(row.part), None, "strong" if row.part == "total" else ""),
            err(row.value, row.se, sign=True),
            share(row.share, row.share_se),
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
        reference = row.q_averaged if real(row.q_averaged) is not None else row.saddle
        difference = row.measured - reference
        z = difference / row.measured_se if row.measured_se > 0 else math.nan
        rows.append(
            [
                count(row.N1),
                Cell(f"{row.T:g}", row.T, "num"),
                Cell(label(row.quantity)),
                num(row.saddle, 5),
                num(row.q_averaged, 5),
                err(row.first_order, row.first_order_se),
                err(row.measured, row.measured_se),
                err(difference, row.measured_se, sign=True),
                Cell(_signed(z), real(z), "num"),
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
            count(row.N1),
            Cell(f"{row.T:g}", row.T, "num"),
            Cell(label(row.quantity)),
            Cell(label(row.level)),
            outcome(row.outcome),
            num(row.prior, 5),
            err(row.value, row.se),
            err(row.measured, row.measured_se),
            err(row.difference, row.difference_se, sign=True),
            Cell(_signed(row.z), real(row.z), "num"),
            share(row.relative_to_effect, row.relative_se),
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
            count(row.N1),
            Cell(f"{row.T:g}", row.T, "num"),
            err(row.slope, row.slope_se),
            Cell(f"{row.r2:.4f}", real(row.r2), "num"),
            Cell(percent(real(row.misfit), real(row.misfit_se)), real(row.misfit), "num"),
            Cell(f"{row.reduction:.1f}" if real(row.reduction) is not None else "–", real(row.reduction), "num"),
            num(row.joint_p, 2),
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
        interval = f" [{row.T_low:.3g}, {row.T_high:.3g}]" if real(row.T_low) is not None else ""
        rows.append(
            [
                count(row.N1),
                Cell(label(row.curve)),
                Cell(row.outcome, None, "strong"),
                Cell("< 10⁻⁴" if row.p < 1e-4 else number(real(row.p), 2), real(row.p), "num"),
                Cell(f"{row.T_min:g} to {row.T_max:g}"),
                Cell(f"{row.T_peak:.3g}{interval}" if real(row.T_peak) is not None else "–", real(row.T_peak), "num"),
                err(row.height, row.height_se),
                err(row.rise, row.rise_se, sign=True),
                err(row.fall, row.fall_se, sign=True),
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
            count(row.N1),
            Cell(f"{row.T:g}", row.T, "num"),
            Cell(label(row.observable)),
            err(row.mean, row.mcse),
            Cell(f"{row.ess_bulk:.0f}" if real(row.ess_bulk) is not None else "–", real(row.ess_bulk), "num"),
            Cell(f"{row.ess_tail:.0f}" if real(row.ess_tail) is not None else "–", real(row.ess_tail), "num"),
            Cell(f"{row.rhat:.4f}" if real(row.rhat) is not None else "–", real(row.rhat), "num"),
            Cell(f"{row.reduction:.1f}" if real(row.reduction) is not None else "–", real(row.reduction), "num"),
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
            count(row.N1),
            Cell(f"{row.T:g}", row.T, "num"),
            Cell(f"{row.sampler}{' (biased)' if row.biased else ''}"),
            Cell(f"{row.chains} × {row.draws}", float(row.chains * row.draws), "num"),
            count(row.warmup),
            Cell(row.starts),
            Cell(f"{row.acceptance:.3f}", real(row.acceptance), "num"),
            Cell(percent(row.nan_share, digits=2), real(row.nan_share), "num"),
            Cell(percent(real(row.relative_se), digits=2), real(row.relative_se), "num"),
            Cell(f"{row.reduction:.1f}" if real(row.reduction) is not None else "–", real(row.reduction), "num"),
            num(row.ess_per_second, 3),
            num(row.wall_seconds, 3),
            Cell("ok") if row.status == "ok" else Cell(f"? {row.status}", None, "outcome inconclusive"),
        ]
        for row in table.itertuples()
    ]
    return Shown("runs", "Runs", columns, rows)
