"""The sentences of a report, made from its tables: verdict, source of the error, measurement, cautions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from compare.peak_answer import FACTOR
from compare.report.wording import LEVELS, PARTS, label, number, percent, with_error

if TYPE_CHECKING:
    import pandas as pd

    from compare.peak_answer import PeakAnswer
    from compare.result import Report


def _where(group: pd.DataFrame, table: pd.DataFrame) -> str:
    """Which cells of `table` the rows of `group` are, in as few words as say it."""
    cells = table.drop_duplicates(["N1", "T"])
    some = group.drop_duplicates(["N1", "T"])
    if len(cells) == 1:
        row = cells.iloc[0]
        return f"at T = {row['T']:g}"
    if len(some) == len(cells):
        temperatures = cells["T"].nunique()
        if len(cells) > temperatures:
            return f"in all {len(cells)} cells"
        return "at both temperatures" if temperatures == 2 else f"at all {temperatures} temperatures"
    if cells["N1"].nunique() == 1:
        return "at T = " + listed([f"{T:g}" for T in some["T"]])
    if len(some) > 3:
        return f"in {len(some)} of {len(cells)} cells"
    return "at " + listed([f"N₁ = {row.N1}, T = {row.T:g}" for row in some.itertuples()])


def listed(words: list[str]) -> str:
    """`a, b and c`."""
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]


def _distance(values: Any, errors: Any) -> str:
    """How far the measurement lies from a level, as shares of the effect: `above it by (19 ± 1) % to (36 ± 1) %`."""
    pairs = sorted(zip(values, errors, strict=True), key=lambda pair: abs(pair[0]))
    ends = [pairs[0]] if len(pairs) == 1 else [pairs[0], pairs[-1]]
    signs = {value > 0 for value, _ in pairs}
    if len(signs) == 2:
        return "off it by " + " to ".join(percent(*pair, sign=True) for pair in sorted(ends))
    side = "above" if signs == {True} else "below"
    return f"{side} it by " + " to ".join(percent(abs(value), error) for value, error in ends)


def _name(level: str) -> str:
    """A level as the subject of a sentence."""
    return "the first-order-exact level" if level == "first_order" else label(level)


def level_sentence(levels: pd.DataFrame, level: str) -> str:
    """What happened to one level: where it differs and by how much, where it agrees, where nothing can be said."""
    rows = levels[levels["level"] == level]
    parts = []
    for outcome, verb in (
        ("differs", "differs from the measured ⟨D²⟩"),
        ("agrees", "agrees with it"),
        ("inconclusive", "is undecided"),
    ):
        some = rows[rows["outcome"] == outcome]
        if some.empty:
            continue
        text = f"{verb} {_where(some, levels)}"
        if outcome == "differs":
            text += f", which lies {_distance(some['relative_to_effect'], some['relative_se'])} of the effect"
        parts.append(text)
    if not parts:
        return ""
    return f"{_name(level)} " + "; it ".join(parts)


def overall(levels: pd.DataFrame, level: str = "eq4") -> str:
    """One word for a level over all cells: `differs` if anywhere, else `inconclusive` if anywhere, else `agrees`."""
    found = set(levels[levels["level"] == level]["outcome"])
    return next((word for word in ("differs", "inconclusive", "agrees") if word in found), "inconclusive")


def verdict(report: Report) -> str:
    """The report in one sentence: Eq. (4) first, then the best level that agrees everywhere, if there is one."""
    levels = report.levels
    lead = level_sentence(levels, "eq4")
    if not lead:
        return "No level was tested."
    better = [
        name
        for name in LEVELS
        if name not in ("eq4", "infinite_width")
        and len(rows := levels[levels["level"] == name])
        and set(rows["outcome"]) == {"agrees"}
    ]
    if overall(levels) == "agrees":
        return lead.replace("agrees with it", "agrees with the measured ⟨D²⟩") + "."
    if better:
        return f"{lead}; {listed([_name(name) for name in better])} agree{'s' if len(better) == 1 else ''} throughout."
    best = "first_order" if (levels["level"] == "first_order").any() else "eq3"
    tail = level_sentence(levels, best)
    if set(levels["outcome"]) == {"inconclusive"}:
        return "No verdict: nowhere do the chains allow one."
    return f"{lead}; {tail}."


def largest_part(budget: pd.DataFrame) -> str:
    """Which part dominates the error of Eq. (4), cell by cell, with its size."""
    if budget.empty:
        return ""
    said = []
    for (N1, T), group in budget.groupby(["N1", "T"], sort=True):
        parts = group[group["part"] != "total"]
        top = parts.loc[parts["value"].abs().idxmax()]
        total = group[group["part"] == "total"].iloc[0]
        where = f"T = {T:g}" if budget["N1"].nunique() == 1 else f"N₁ = {N1}, T = {T:g}"
        said.append(
            f"at {where}, measured − Eq. (4) is {with_error(total['value'], total['se'], sign=True)}, and the "
            "largest part of it is "
            f"{PARTS[top['part']][0]} ({with_error(top['value'], top['se'], sign=True)})"
        )
    if len(said) > 6:
        tops = budget[budget["part"] != "total"].assign(size=lambda t: t["value"].abs())
        winners = tops.loc[tops.groupby(["N1", "T"])["size"].idxmax()]["part"].value_counts()
        return (
            "The largest part of the error of Eq. (4) is "
            + listed([f"{PARTS[part][0]} in {count} of {len(said)} cells" for part, count in winners.items()])
            + "."
        )
    text = "; ".join(said) + "."
    return _capital(text)


def _range(values: pd.Series, spec: str) -> str:
    low, high = format(values.min(), spec), format(values.max(), spec)
    return low if low == high else f"{low} to {high}"


def _many(values: list[Any]) -> str:
    """`0.01, 0.1, 1`, or the ends where there are many."""
    texts = [f"{value:g}" for value in values]
    return ", ".join(texts) if len(texts) <= 4 else f"{texts[0]} … {texts[-1]} ({len(texts)} values)"


def subject(problem: dict[str, Any]) -> str:
    """A report's title: data, P, widths and temperatures."""
    return f"{problem['data']}: P = {problem['P']}, N₁ = {_many(problem['N1'])}, T = {_many(problem['T'])}"


def measurement(report: Report) -> str:
    """How the posterior was measured, in words."""
    runs = report.runs
    samplers = listed(sorted(set(runs["sampler"])))
    starts = sorted({kind for text in runs["starts"] for kind in text.split(", ")})
    ess = report.convergence[report.convergence["observable"] == "d2"]["ess_bulk"]
    text = (
        f"The exact posterior of the same network on the same data, sampled with {samplers}: "
        f"{_range(runs['chains'], 'd')} chains a cell from {listed(starts)} starts, "
        f"{_range(ess, '.0f')} effective draws of D², relative error of ⟨D²⟩ {_range(100 * runs['relative_se'], '.2f')} %. "
        "The sampler knows nothing of the prediction."
    )
    if bool((runs["reduction"] > 1).any()):
        text += (
            f" Control variates of exactly known mean lowered the error {_range(runs['reduction'], '.1f')}-fold, "
            "with coefficients fitted on other chains."
        )
    return text


def cautions(report: Report) -> list[str]:
    """What a reader must know before using the numbers."""
    out = []
    runs = report.runs
    if bool(runs["biased"].any()):
        out.append(
            "Unadjusted Langevin samples a density that differs from the posterior by an amount that grows with its step: "
            "its rows are no ground truth and carry no verdict."
        )
    bad = runs[runs["status"] == "inconclusive"]
    if len(bad):
        what = "run did" if len(bad) == 1 else "runs did"
        out.append(
            f"{len(bad)} of {len(runs)} {what} not converge and carry no verdict; the reasons stand under Convergence."
        )
    return out


def reasons(report: Report) -> list[str]:
    """Why a run is inconclusive, one sentence a run."""
    runs = report.runs
    one_width = runs["N1"].nunique() == 1
    return [
        f"{'' if one_width else f'N₁ = {row.N1}, '}T = {row.T:g}: {row.reasons}."
        for row in runs.itertuples()
        if row.status != "ok" and row.reasons
    ]


def peak(table: pd.DataFrame) -> str:
    """Whether the measured curve and each level have an interior maximum, over which T, and where."""
    said = []
    for N1, group in table.groupby("N1", sort=True):
        measured = group[group["curve"] == "measured"].iloc[0]
        where = "" if table["N1"].nunique() == 1 else f"At N₁ = {N1}: "
        span = f"between T = {measured['T_min']:g} and {measured['T_max']:g}"
        if measured["outcome"] == "yes":
            text = (
                f"{where}Measured ⟨D²⟩ rises and then falls {span}, with its maximum at T = {measured['T_peak']:.3g} "
                f"(95 % interval {measured['T_low']:.3g} to {measured['T_high']:.3g})"
            )
        elif measured["outcome"] == "no":
            text = (
                f"{where}Measured ⟨D²⟩ shows no interior maximum at the temperatures sampled {span}: none of them lies above the "
                f"higher end by more than {number(measured['flat'], 2)}, a tenth of the largest effect"
            )
        else:
            text = f"{where}Whether measured ⟨D²⟩ has an interior maximum {span} is undecided: {measured['reason']}"
        if measured["witness"] == "yes":
            text += "; its derivative, from the covariance of D² with Σ(y − f)², changes sign from + to −"
            if measured["outcome"] == "no":
                text += ", so there is a lower maximum than that counts, or one between these temperatures: sample more of them"
        elif measured["witness"] == "no":
            text += "; its derivative, from the covariance of D² with Σ(y − f)², keeps one sign"
        told = []
        for row in group[group["curve"] != "measured"].itertuples():
            if row.outcome == "yes":
                told.append(f"{_name(row.curve)} puts a maximum at T = {row.T_peak:.3g}")
            elif row.outcome == "no":
                told.append(f"{_name(row.curve)} has none")
            else:
                told.append(f"{_name(row.curve)} cannot tell")
        said.append(text + ". " + (_capital(listed(told)) + "." if told else ""))
    return " ".join(said).strip()


def peak_answers(answers: Sequence[PeakAnswer]) -> str:
    """Whether the maximum is where Eq. (4) puts it, and whether Delta2 makes it."""
    said = []
    for one in answers:
        where = "" if len(answers) == 1 else f"At N₁ = {one.N1}: "
        if one.has_maximum == "yes":
            place = {
                "agrees": f"the measured maximum is where Eq. (4) puts it, within a factor of {FACTOR:g} in T",
                "differs": "the measured maximum is not where Eq. (4) puts it",
            }.get(one.place, "whether the measured maximum is where Eq. (4) puts it is undecided")
            said.append(where + (place if where else _capital(place)) + ".")
            if one.delta2 is not None and math.isfinite(one.delta2.rise_share[0] + one.delta2.fall_share[0]):
                shares = " and ".join(
                    f"({with_error(100 * share, 100 * se)}) % of the {side}"
                    for side, (share, se) in (("rise", one.delta2.rise_share), ("fall", one.delta2.fall_share))
                )
                made = {"yes": "Δ₂ makes it", "no": "Δ₂ does not make it"}.get(
                    one.delta2.outcome, "Whether Δ₂ makes it is undecided"
                )
                said.append(f"{made}: its measured part is {shares}.")
    return " ".join(said)


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
