"""What a campaign page says in numbers: its cells made regular, outcomes by level, shares of the error of Eq. (4), peaks by group."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from compare.budget import PARTS
from compare.report.wording import LEVELS, label, number
from data.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

NEEDED = ("data", "N1", "T")
TEXTS = {
    "id": "",
    "group": "",
    "page": "",
    "classes": "",
    "labels": "true",
    "sampler": "",
    "state": "",
    "status": "",
    "note": "",
    "left_out": "",
}
NUMBERS = (
    "P",
    "alpha",
    "subset_seed",
    "measured",
    "measured_se",
    "prior_theory",
    "d2_ess_bulk",
    "d2_rhat",
    "seconds",
)
TESTED = tuple(name for name in LEVELS if name != "infinite_width")
OUTCOMES = ("agrees", "differs", "inconclusive")
TOLD = 3.0  # a total or an effect counts as told from 0 beyond this many standard errors


def prepared(table: pd.DataFrame) -> pd.DataFrame:
    """The table of `compare.campaign.table` (or of `compare.report.collect`) with every column that the page reads.

    One row a cell; added are `effect` = measured - prior, `share_PART` = part of the budget over the effect (PARTS of
    compare.budget and "total") with `share_PART_se`, `curve` (group and width) and `why` (why there is no verdict). Absent numbers
    are NaN, absent texts "". Raises InputError where the table has no cells or lacks one of NEEDED.
    """
    import pandas as pd

    missing = [name for name in NEEDED if name not in table]
    if missing:
        raise InputError(f"the table of cells lacks {', '.join(missing)}: give what compare.campaign.table returns")
    if table.empty:
        raise InputError("the table of cells is empty: run the campaign first")
    cells = table.reset_index(drop=True).copy()
    for name, default in TEXTS.items():
        kept = cells[name] if name in cells else pd.Series(default, index=cells.index)
        cells[name] = kept.astype(object).where(kept.notna(), default).astype(str)
    more = [f"{name}{end}" for name in TESTED for end in ("", "_se", "_z", "_relative_to_effect", "_relative_se")]
    parts = [f"budget_{name}{end}" for name in (*PARTS, "total") for end in ("", "_se")]
    for name in (*NUMBERS, *more, *parts, "N1", "T"):
        cells[name] = pd.to_numeric(cells[name], errors="coerce") if name in cells else math.nan
    for name in TESTED:
        column = f"{name}_outcome"
        cells[column] = cells[column].where(cells[column].isin(OUTCOMES), "") if column in cells else ""
    cells["alpha"] = cells["alpha"].fillna(cells["P"] / cells["N1"])
    cells["effect"] = cells["measured"] - cells["prior_theory"]
    for name in (*PARTS, "total"):
        share, se = _share(cells, name)
        cells[f"share_{name}"], cells[f"share_{name}_se"] = share, se
    shared = [cells["data"], cells["labels"], cells["P"].astype(str), cells["subset_seed"].astype(str)]
    cells["group"] = cells["group"].where(cells["group"] != "", shared[0].str.cat(shared[1:], sep=" "))
    cells["curve"] = cells["group"] + " N1=" + cells["N1"].astype(int).astype(str)
    cells["why"] = cells["left_out"].where(cells["left_out"] != "", cells["note"])
    return cells


def _share(cells: pd.DataFrame, name: str) -> tuple[pd.Series, pd.Series]:
    """A part over the effect, with its standard error (the delta method of compare.budget.Budget.share)."""
    effect, effect_se = cells["effect"], cells["measured_se"].fillna(0.0)
    value, se = cells[f"budget_{name}"], cells[f"budget_{name}_se"].fillna(0.0)
    ratio = (value / effect).where(effect != 0)
    moves = 1.0 if name in ("remainder", "total") else 0.0
    own = np.sqrt(np.maximum(se**2 - moves * effect_se**2, 0.0))
    return ratio, np.hypot((moves - ratio) * effect_se, own) / effect.abs()


def outcomes(cells: pd.DataFrame) -> pd.DataFrame:
    """How often each level agrees, differs and is inconclusive; one row a level that was computed anywhere."""
    import pandas as pd

    rows = []
    for name in TESTED:
        found = cells[f"{name}_outcome"]
        judged = cells[found.isin(("agrees", "differs"))]
        if not (found != "").any():
            continue
        off = judged[f"{name}_relative_to_effect"].abs()
        rows.append(
            {"level": name}
            | {word: int((found == word).sum()) for word in OUTCOMES}
            | {
                "no_verdict": int((found == "").sum()),
                "cells": len(cells),
                "median_off": off.median(),
                "largest_off": off.max(),
                "largest_z": judged[f"{name}_z"].abs().max(),
            }
        )
    return pd.DataFrame(
        rows,
        columns=["level", *OUTCOMES, "no_verdict", "cells", "median_off", "largest_off", "largest_z"],
    )


def usable(cells: pd.DataFrame) -> pd.DataFrame:
    """Cells whose run converged and that have a budget."""
    return cells[(cells["status"] == "ok") & cells["budget_total"].notna()]


def shares(cells: pd.DataFrame) -> pd.DataFrame:
    """The error of Eq. (4), part by part, for each data set and kind of labels, from converged cells.

    of_effect_PART  sum of the part over the cells / sum of |effect|;  of_error_PART  the same over the sum of the totals, NaN
    where the total is not told from 0 (TOLD standard errors);  largest_PART  in how many cells the part is the largest.
    Errors: measurements of different cells are independent; the first-order-exact level shares its draws between the cells of a
    group, so its errors add up linearly there and in quadrature between groups.
    """
    import pandas as pd

    columns = ["data", "labels", "cells", "total", "total_se", "of_effect", "of_effect_se"]
    columns += [f"{kind}_{name}{end}" for name in PARTS for kind in ("of_effect", "of_error") for end in ("", "_se")]
    columns += [f"largest_{name}" for name in PARTS]
    rows = [
        {"data": data, "labels": kind, **_pooled(some)}
        for (data, kind), some in usable(cells).groupby(["data", "labels"], sort=False)
    ]
    return pd.DataFrame(rows, columns=columns)


def _pooled(some: pd.DataFrame) -> dict[str, Any]:
    """The sums of `shares` over some cells."""
    sign, se = np.sign(some["effect"].to_numpy()), some["measured_se"].to_numpy()
    size, total = float(some["effect"].abs().sum()), float(some["budget_total"].sum())
    noise = math.sqrt(float((se**2).sum()))
    closure_se = some.groupby("group")["budget_gaussian_closure_se"].sum()
    theory = math.sqrt(float((closure_se**2).sum()))

    def over(value: float, by: float, moves: float, turns: Any, own: float = 0.0) -> tuple[float, float]:
        """value/by and its error: with each cell's noise value moves by `moves` and by by `turns`; `own` is an error of value alone."""
        if by == 0 or not math.isfinite(value):
            return math.nan, math.nan
        ratio = value / by
        return ratio, math.hypot(math.sqrt(float((((moves - ratio * turns) * se) ** 2).sum())), own) / abs(by)

    row: dict[str, Any] = {"cells": len(some), "total": total, "total_se": noise}
    row["of_effect"], row["of_effect_se"] = over(total, size, 1.0, sign)
    for name in PARTS:
        part = some[f"budget_{name}"]
        value = float(part.sum() if name == "remainder" else part.sum(min_count=len(part)))
        own = theory if name in ("gaussian_closure", "remainder") else 0.0
        moves = 1.0 if name == "remainder" else 0.0
        row[f"of_effect_{name}"], row[f"of_effect_{name}_se"] = over(value, size, moves, sign, own)
        told = abs(total) > TOLD * noise
        share = over(value, total, moves, 1.0, own) if told else (math.nan, math.nan)
        row[f"of_error_{name}"], row[f"of_error_{name}_se"] = share
    sizes = some[[f"budget_{name}" for name in PARTS]].abs()
    first = sizes.fillna(-1.0).to_numpy().argmax(1)
    return row | {f"largest_{name}": int((first == at).sum()) for at, name in enumerate(PARTS)}


def without_verdict(cells: pd.DataFrame) -> pd.DataFrame:
    """Cells that carry no verdict: not there, failed, of another version, or not converged."""
    converged = cells["status"] == "ok"
    return cells[~converged]


def sentence(cells: pd.DataFrame, counts: pd.DataFrame) -> str:
    """The campaign in one sentence: what was tested, then Eq. (4), then the level that agrees most often."""
    ok = int((cells["status"] == "ok").sum())
    sets = cells["data"].nunique()
    lead = f"{len(cells)} cells on {sets} data set{'s' if sets > 1 else ''}, {ok} with converged chains."
    if counts.empty or not ok:
        return f"{lead} No level was tested."
    said = []
    ranked = counts.sort_values("agrees", ascending=False, kind="stable")
    for name in dict.fromkeys(["eq4", ranked["level"].iloc[0]]):
        row = counts[counts["level"] == name]
        if row.empty:
            continue
        one = row.iloc[0]
        subject = label(name) if name != "first_order" else "the first-order-exact level"
        text = f"{subject} agrees with the measured ⟨D²⟩ in {one['agrees']}, differs in {one['differs']}"
        text += f" and is undecided in {one['inconclusive']}"
        if math.isfinite(one["median_off"]):
            text += f" (median deviation {number(100 * one['median_off'], 2)} % of the effect)"
        said.append(text)
    body = "; ".join(said) + "."
    return f"{lead} {body[0].upper()}{body[1:]}"


def largest(table: pd.DataFrame) -> str:
    """Which part of the error of Eq. (4) is the largest, data set by data set."""
    from compare.report.sentences import listed

    said = []
    for row in table.itertuples():
        counts = {name: getattr(row, f"largest_{name}") for name in PARTS}
        top = sorted((name for name in PARTS if counts[name]), key=lambda name: -counts[name])
        where = f"{row.data}, {row.labels} labels"
        said.append(f"{where}: " + listed([f"{label(name)} in {counts[name]}" for name in top]) + f" of {row.cells}")
    return "The largest part by cells, as computed, noise included. " + "; ".join(said) + "." if said else ""


def peak_counts(peaks: pd.DataFrame) -> pd.DataFrame:
    """How many curves have an interior maximum, by kind of labels and curve: measured, and each level."""
    import pandas as pd

    columns = ["labels", "curve", "yes", "no", "undecided", "curves"]
    if peaks.empty:
        return pd.DataFrame(columns=columns)
    rows = []
    for (kind, curve), some in peaks.groupby(["labels", "curve"], sort=False):
        yes, no = (int((some["outcome"] == word).sum()) for word in ("yes", "no"))
        rows.append(
            {"labels": kind, "curve": curve, "yes": yes, "no": no, "undecided": len(some) - yes - no}
            | {"curves": len(some)}
        )
    return pd.DataFrame(rows, columns=columns)


def peak_sentence(counts: pd.DataFrame) -> str:
    """The measured curves with a maximum, with true labels and with the control."""
    said = []
    for row in counts[counts["curve"] == "measured"].itertuples():
        control = "" if row.labels == "true" else " (the control)" if row.labels == "random" else ""
        said.append(
            f"with {row.labels} labels{control}, {row.yes} of {row.curves} measured curves have an interior maximum, "
            f"{row.no} have none, {row.undecided} are undecided"
        )
    text = "; ".join(said) + "." if said else ""
    return text[:1].upper() + text[1:]
