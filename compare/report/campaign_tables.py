"""The tables of a campaign page: outcomes by level, shares of the error, peaks by group, all cells, cells without a verdict."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np

from compare.budget import PARTS
from compare.report.campaign_data import TESTED, TOLD, without_verdict
from compare.report.shown import MARKS, Cell, Shown, count, err, real, share
from compare.report.wording import LEVELS, label, number, percent, with_error

if TYPE_CHECKING:
    import pandas as pd

MOST = 2_000  # rows of a table on the page; the files hold all
OUTCOME_COUNTS = {"agrees": "✓ agrees", "differs": "✗ differs", "inconclusive": "? inconclusive"}


def _plain(value: float, digits: int = 4) -> Cell:
    return Cell(f"{value:.{digits}g}" if math.isfinite(value) else "–", value if math.isfinite(value) else None, "num")


def link(page: str) -> str:
    """A relative address as it may stand in the page: quoted, so that no name can be another scheme or leave the attribute."""
    return quote(page, safe="/") if page and not page.startswith("/") else ""


def outcomes(table: pd.DataFrame) -> Shown:
    """Counts of outcomes by level."""
    columns = [
        ("level", "which formula; all are explained under Equations and symbols"),
        *(
            (text, f"cells where the level {word}")
            for word, text in zip(OUTCOME_COUNTS, OUTCOME_COUNTS.values(), strict=True)
        ),
        ("no verdict", "cells without theory or without a run"),
        ("median deviation", "of |measured − predicted| over the effect, in cells with a verdict"),
        ("largest deviation", "the same, largest"),
        ("largest |z|", "measured − predicted in standard errors, largest"),
        ("what it is", ""),
    ]
    rows = [
        [
            Cell(label(row.level), float(list(LEVELS).index(row.level))),
            *(count(getattr(row, word)) for word in OUTCOME_COUNTS),
            count(row.no_verdict),
            share(row.median_off, sign=False),
            share(row.largest_off, sign=False),
            Cell(f"{row.largest_z:.1f}" if math.isfinite(row.largest_z) else "–", real(row.largest_z), "num"),
            Cell(LEVELS[row.level][1], None, "prose"),
        ]
        for row in table.itertuples()
    ]
    return Shown("outcomes", "Outcomes by level", columns, rows, quiet=True)


def shares(table: pd.DataFrame) -> Shown:
    """What the error of Eq. (4) consists of, by data set."""
    columns = [
        ("data set", ""),
        ("labels", "true; random: a seeded permutation, the control; zero"),
        ("cells", "converged ones"),
        ("measured − Eq. (4)", "sum over the cells, relative to the sum of the sizes of the effects"),
    ]
    columns += [
        (label(name), "% of the size of the effect; below it the share of the error of Eq. (4)") for name in PARTS
    ]
    columns += [("largest in", "cells in which each part is the largest")]
    rows = []
    for _, row in table.iterrows():
        shown = [Cell(str(row["data"])), Cell(str(row["labels"])), count(row["cells"])]
        shown.append(share(row["of_effect"], row["of_effect_se"]))
        for name in PARTS:
            cell = share(row[f"of_effect_{name}"], row[f"of_effect_{name}_se"])
            of_error = percent(row[f"of_error_{name}"], row[f"of_error_{name}_se"])
            shown.append(cell._replace(note="" if of_error == "–" else f"{of_error} of the error"))
        most = sorted(PARTS, key=lambda name: -row[f"largest_{name}"])
        told = ", ".join(f"{label(name)} {row[f'largest_{name}']:.0f}" for name in most if row[f"largest_{name}"])
        rows.append([*shown, Cell(told, None, "prose")])
    return Shown("shares", "The error of Eq. (4) by data set", columns, rows, quiet=True)


def widths(table: pd.DataFrame) -> Shown:
    """What is left of each level's deviation at infinite width, alpha held fixed."""
    columns = [
        ("data set", ""),
        ("labels", "true; random: a seeded permutation, the control; zero"),
        ("α", "P/N₁, the same at every width"),
        ("T", "temperature"),
        ("level", ""),
        ("N₁", "widths fitted"),
        ("at infinite width", "c₀ of (measured − predicted)/effect = c₀ + c₁/N₁"),
        ("c₁", "first correction"),
        ("p", "of the fit; a small one says that higher orders in 1/N₁ matter"),
        ("outcome", "the deviation survives: c₀ is outside the margin; vanishes: it is inside"),
    ]
    rows = [
        [
            Cell(str(row.data)),
            Cell(str(row.labels)),
            _plain(row.alpha),
            _plain(row.T, 6),
            Cell(label(row.level), float(list(LEVELS).index(row.level))),
            Cell(f"{row.N1_min} to {row.N1_max}, {row.widths} of them", float(row.widths)),
            share(row.c0, row.c0_se),
            err(row.c1, row.c1_se, sign=True),
            _plain(row.p, 2),
            Cell(row.outcome, None, "", row.reason if row.outcome == "inconclusive" else ""),
        ]
        for row in table.itertuples()
    ]
    return Shown("widths", "What survives as the network grows", columns, rows, quiet=True, filters=(0, 1, 2, 3, 4, 9))


def peak_counts(table: pd.DataFrame) -> Shown:
    """How many curves have an interior maximum."""
    columns = [
        ("labels", ""),
        ("curve", "measured, or a level of the theory"),
        ("curves", "groups and widths"),
    ]
    columns += [
        ("yes", "an inner T lies above both ends"),
        ("no", "any bump is smaller than the one that counts"),
        ("undecided", ""),
    ]
    rows = [
        [
            Cell(str(row.labels)),
            Cell(label(row.curve)),
            *(count(one) for one in (row.curves, row.yes, row.no, row.undecided)),
        ]
        for row in table.itertuples()
    ]
    return Shown("peak_counts", "Interior maxima of ⟨D²⟩ against T, counted", columns, rows)


def peaks(table: pd.DataFrame) -> Shown:
    """The measured curve of each group and width: has it an interior maximum, where, and what the levels say."""
    columns = [
        ("data set", ""),
        ("labels", "random labels are the control"),
        ("P", "patterns"),
        ("N₁", "hidden units"),
        ("measured", "has the measured curve an interior maximum over the temperatures sampled"),
        ("p", "of rises and then falls, over all inner temperatures"),
        ("range of T", "where it was looked for; nothing is said of other T"),
        ("T of the maximum", "with a 95 % interval"),
        ("rise", "height minus the value at the lowest T"),
        ("fall", "height minus the value at the highest T"),
        ("levels with one", "levels of the theory that have an interior maximum, with its T"),
        ("page", "the report of the group"),
    ]
    rows = []
    for (_, N1), some in table.groupby(["group", "N1"], sort=False):
        found = some[some["curve"] == "measured"]
        if found.empty:
            continue
        one = found.iloc[0]
        levels = [
            f"{label(row.curve)} ({row.T_peak:.3g})"
            for row in some[some["curve"].isin(TESTED)].itertuples()
            if row.outcome == "yes"
        ]
        interval = f" [{one['T_low']:.3g}, {one['T_high']:.3g}]" if math.isfinite(_float(one["T_low"])) else ""
        at = _float(one["T_peak"])
        p = _float(one["p"])
        rows.append(
            [
                Cell(str(one["data"])),
                Cell(str(one["labels"])),
                count(_float(one["P"])),
                count(float(N1)),
                Cell(str(one["outcome"]), None, "strong"),
                Cell("< 10⁻⁴" if p < 1e-4 else number(p, 2), real(p), "num"),
                Cell(f"{one['T_min']:g} to {one['T_max']:g}"),
                Cell(f"{at:.3g}{interval}" if math.isfinite(at) else "–", real(at), "num"),
                err(_float(one["rise"]), _float(one["rise_se"]), sign=True),
                err(_float(one["fall"]), _float(one["fall_se"]), sign=True),
                Cell(", ".join(levels) or "none", None, "prose"),
                Cell("report", None, "", "", link(str(one["page"]))) if link(str(one["page"])) else Cell("–"),
            ]
        )
    return Shown("peaks", "Measured curves, one a group and width", columns, rows, filters=(0, 1, 3, 4))


def _float(value: Any) -> float:
    return math.nan if value is None else float(value)


def some_rows(cells: pd.DataFrame, most: int = MOST) -> pd.DataFrame:
    """At most `most` rows, evenly chosen in the order of the grid."""
    if len(cells) <= most:
        return cells
    return cells.iloc[np.linspace(0, len(cells) - 1, most).round().astype(int)]


def all_cells(cells: pd.DataFrame) -> Shown:
    """One row a cell: the problem, what was measured, every level with its outcome, the budget, convergence, the group's page."""
    levels = [name for name in TESTED if cells[name].notna().any()]
    several = {name: cells[name].nunique() > 1 for name in ("classes", "subset_seed", "sampler", "labels")}
    columns = [("data set", ""), ("page", "the report of the cell's group, with its full provenance")]
    columns += [("classes", "which classes are told apart")] if several["classes"] else []
    columns += [("labels", "true; random: a seeded permutation, the control; zero")]
    columns += [("subset", "seed of the subset of patterns")] if several["subset_seed"] else []
    columns += [("sampler", "")] if several["sampler"] else []
    columns += [("P", "patterns"), ("N₁", "hidden units"), ("α", "load P/N₁"), ("T", "temperature")]
    columns += [
        ("measured ⟨D²⟩", "posterior average with its standard error"),
        ("effect", "measured ⟨D²⟩ minus the prior's"),
    ]
    at = len(columns)
    columns += [(label(name), "outcome; predicted ⟨D²⟩; measured − predicted, % of the effect") for name in levels]
    columns += [(label(name), "part of measured − Eq. (4), % of the effect") for name in PARTS]
    columns += [
        ("ESS", "effective draws of D², bulk"),
        ("R̂", "of D²; 1 is agreement of the chains"),
        ("state", ""),
    ]
    titles = [title for title, _ in columns]
    rows = []
    for row in cells.to_dict(orient="records"):
        address = link(row["page"])
        shown = [Cell(row["data"]), Cell("report", None, "", "", address) if address else Cell("–")]
        shown += [Cell(row["classes"] or "–")] if several["classes"] else []
        shown += [Cell(row["labels"])]
        shown += [count(row["subset_seed"])] if several["subset_seed"] else []
        shown += [Cell(row["sampler"] or "–")] if several["sampler"] else []
        shown += [count(row["P"]), count(row["N1"]), _plain(row["alpha"]), _plain(row["T"], 6)]
        shown += [err(row["measured"], row["measured_se"]), err(row["effect"], row["measured_se"], sign=True)]
        shown += [_judged(row, name) for name in levels]
        shown += [share(row[f"share_{name}"], row[f"share_{name}_se"]) for name in PARTS]
        rhat = row["d2_rhat"]
        shown += [
            count(row["d2_ess_bulk"]),
            Cell(f"{rhat:.4f}" if math.isfinite(rhat) else "–", real(rhat), "num"),
        ]
        shown.append(_state(row))
        rows.append(shown)
    filters = tuple(
        titles.index(one) for one in ("data set", "classes", "labels", "sampler", "T", "α", "state") if one in titles
    )
    return Shown(
        "cells", "All cells", columns, rows, filters=filters, judged=tuple(range(at, at + len(levels))), quiet=True
    )


def _judged(row: dict[str, Any], name: str) -> Cell:
    """A level in one cell: outcome, predicted value, deviation; sorts by the deviation."""
    word = row[f"{name}_outcome"]
    off = row[f"{name}_relative_to_effect"]
    if not math.isfinite(row[name]):
        return Cell("–", None, "outcome none")
    note = with_error(row[name], row[f"{name}_se"])
    if math.isfinite(off):
        note += f"; {percent(off, row[f'{name}_relative_se'], sign=True)}"
    text = f"{MARKS[word]} {word}" if word else "no verdict"
    return Cell(text, real(off), f"outcome {word or 'none'}", note)


def _state(row: dict[str, Any]) -> Cell:
    """ok, or why the cell carries no verdict in a word."""
    word = row["status"] or row["state"] or "missing"
    return Cell(word) if word == "ok" else Cell(f"? {word}", None, "outcome inconclusive")


def unresolved(cells: pd.DataFrame, most: int = 200) -> Shown:
    """Cells without a verdict and why."""
    some = without_verdict(cells)
    columns = [
        ("cell", "name in the store"),
        ("data set", ""),
        ("labels", ""),
        ("P", ""),
        ("N₁", ""),
        ("T", ""),
        ("state", ""),
        ("why", ""),
    ]
    rows = [
        [
            Cell(row["id"][:12] or "–"),
            Cell(row["data"]),
            Cell(row["labels"]),
            count(row["P"]),
            count(row["N1"]),
            _plain(row["T"], 6),
            _state(row),
            Cell(row["why"][:300] or "–", None, "prose"),
        ]
        for row in some.head(most).to_dict(orient="records")
    ]
    more = f", the first {most} of {len(some)}" if len(some) > most else ""
    return Shown("unresolved", f"Cells without a verdict{more}", columns, rows, filters=(6,))


def told_from_zero() -> str:
    """When a share of the error is stated."""
    return f"{TOLD:g}"
