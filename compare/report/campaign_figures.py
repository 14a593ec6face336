"""The figures of a campaign: D^2 against T curve by curve, parts of the error by data set, Delta1's share against T, alpha and data."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from compare.budget import PARTS
from compare.report.campaign_data import TESTED, TOLD, usable
from compare.report.figures import LINES, Figure, drawn
from compare.report.wording import COLOURS, label, number, percent

if TYPE_CHECKING:
    import pandas as pd

PANELS = 12  # curves drawn; the page of each group has its own figure
POINTS = 400  # points drawn in one panel
KINDS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#B87A00", "#2B93CC", "#767676", "#111111"]
SHAPES = "os^Dv<>P"


def campaign_figures(cells: pd.DataFrame, shares: pd.DataFrame) -> list[Figure]:
    """Every figure that the cells allow, in the order of the page."""
    made = [error_parts(shares), delta1(cells), curves(cells)]
    return [figure for figure in made if figure is not None]


def chosen(cells: pd.DataFrame, most: int = PANELS) -> tuple[list[str], int]:
    """The curves to draw, at most `most`, of all that have two temperatures: each kind of problem before its further subsets."""
    some = cells[cells["measured"].notna()]
    counts = some.groupby("curve", sort=False)["T"].nunique()
    names = list(counts[counts > 1].index)
    if len(names) <= most:
        return names, len(names)
    first = some.drop_duplicates("curve").set_index("curve").loc[names]
    kind = first[["data", "classes", "labels", "sampler"]].agg("|".join, axis=1)
    nth = kind.groupby(kind, sort=False).cumcount()  # the first curve of every kind, then the second of every kind, ...
    kept = set(nth.sort_values(kind="stable").index[:most])
    return [name for name in names if name in kept], len(names)


def curves(cells: pd.DataFrame) -> Figure | None:
    """<D^2> against T, a panel for each group and width: levels as lines, measured points with their errors."""
    names, of = chosen(cells)
    if not names:
        return None
    columns = min(4, len(names))
    rows = math.ceil(len(names) / columns)
    groups = [cells[cells["curve"] == name].sort_values("T") for name in names]

    def paint(figure: Any) -> None:
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for ax, group in zip(axes, groups, strict=False):
            _curve(ax, group)
        for ax in axes[len(groups) :]:
            ax.set_visible(False)
        for ax in axes[max(0, len(groups) - columns) : len(groups)]:
            ax.set_xlabel("temperature T")
        for ax in axes[: len(groups) : columns]:
            ax.set_ylabel("⟨D²⟩")
        found = {name: one for ax in axes for one, name in zip(*ax.get_legend_handles_labels(), strict=True)}
        figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=4)

    left_out = "" if len(names) == of else f" {len(names)} of {of} curves are drawn; the pages of the groups have all."
    told = "; ".join(
        f"{title(group)}: measured from {number(group['measured'].min())} to {number(group['measured'].max())}"
        for group in groups
    )
    return drawn(
        "curves",
        "Distance against temperature",
        (2.75 * columns if columns > 1 else 4.6, 2.25 * rows + 0.7),
        paint,
        "One panel a data set and width. Lines join the levels of the theory at the temperatures of the cells; black points: measured, "
        "with one standard error, hollow where the chains have not converged. Scales differ from panel to panel."
        + left_out,
        f"⟨D²⟩ against T, {len(names)} panels. {told}.",
        wide=True,
    )


def title(group: pd.DataFrame) -> str:
    """What sets a curve apart, in two lines that fit a panel."""
    one = group.iloc[0]
    what = short(", ".join(str(text) for text in (one["data"], one["classes"]) if text))
    more = [f"α = {number(one['alpha'], 3)}"]
    if one["labels"] != "true":
        more.append(f"{one['labels']} labels")
    if math.isfinite(one["subset_seed"]):
        more.append(f"subset {one['subset_seed']:.0f}")
    return f"{what}\n{short(', '.join(more), 36)}"


def short(text: str, most: int = 30) -> str:
    """At most `most` characters, for a panel's title; $ would start matplotlib's mathematics."""
    text = text.replace("$", "＄").replace("\\", "＼")
    return text if len(text) <= most else text[: most - 1] + "…"


def _curve(ax: Any, group: pd.DataFrame) -> None:
    for name, column in (("infinite_width", "prior_theory"), *((name, name) for name in TESTED)):
        known = group[group[column].notna()]  # a cell that is missing does not break the line
        if len(known):
            line = {"color": COLOURS[name], "linestyle": LINES[name], "label": label(name)}
            ax.plot(known["T"], known[column], **line)
    for usable_, face, words in ((True, COLOURS["measured"], "measured"), (False, "white", "measured, inconclusive")):
        some = group[((group["status"] == "ok") == usable_) & group["measured"].notna()]
        if len(some):
            ax.errorbar(
                some["T"], some["measured"], some["measured_se"], fmt="o", markersize=3.5, color=COLOURS["measured"],
                markerfacecolor=face, label=words, zorder=5,
            )  # fmt: skip
    ax.set_xscale("log")
    ax.xaxis.set_minor_locator(_no_ticks())  # with many panels they cost more than all the rest
    ax.set_title(title(group), loc="left", fontsize=8)


def _no_ticks() -> Any:
    from matplotlib.ticker import NullLocator

    return NullLocator()


def error_parts(shares: pd.DataFrame) -> Figure | None:
    """Forest of the parts of the error of Eq. (4), as shares of the effect, a block for each data set and kind of labels."""
    if shares.empty:
        return None
    step = len(PARTS) + 2.2
    names = [f"{short(str(row.data))}, {row.labels} labels\n{row.cells} cells" for row in shares.itertuples()]

    def paint(figure: Any) -> None:
        ax = figure.subplots()
        for at, part in enumerate((*PARTS, "total")):
            column = "of_effect" if part == "total" else f"of_effect_{part}"
            where = np.arange(len(shares)) * step + at
            value, error = 100 * shares[column], 100 * shares[f"{column}_se"].fillna(0.0)
            ax.barh(where, value, height=0.72, color=COLOURS[part], alpha=0.28, zorder=1)
            ax.errorbar(
                value, where, xerr=error, fmt="D" if part == "total" else MARKS_OF_PARTS[at], color=COLOURS[part],
                markersize=4.5, label=label(part), zorder=3,
            )  # fmt: skip
        ax.axvline(0, color="#555555", linewidth=0.8, zorder=2)
        ax.set_yticks(np.arange(len(shares)) * step + len(PARTS) / 2, names)
        ax.tick_params(axis="y", length=0)
        ax.grid(axis="y", visible=False)
        ax.invert_yaxis()
        ax.set_xlabel("contribution to measured − Eq. (4), % of the size of the effect")
        figure.legend(loc="outside lower center", ncols=3)

    told = "; ".join(
        f"{row.data}, {row.labels} labels: "
        + ", ".join(
            f"{label(part)} {percent(getattr(row, f'of_effect_{part}'), getattr(row, f'of_effect_{part}_se'), sign=True)}"
            for part in PARTS
        )
        for row in shares.itertuples()
    )
    return drawn(
        "error_parts",
        "Where the error of Eq. (4) comes from",
        (6.8, 0.165 * step * len(shares) + 1.3),
        paint,
        "Each part summed over the converged cells of a data set, over the sum of the sizes of their effects, with one "
        "standard error; the parts add up to the black diamond, the whole error.",
        f"Parts of the error of Eq. (4), relative to the effect. {told}.",
    )


MARKS_OF_PARTS = "os^v"


def delta1(cells: pd.DataFrame) -> Figure | None:
    """Delta1 over the effect against T, alpha and data set: a mark for each cell, lines through the medians."""
    converged = usable(cells)
    some = converged[converged["effect"].abs() > TOLD * converged["measured_se"]]
    if some.empty:
        return None
    share = (
        100 * some["share_delta1_dropped"].abs()
    )  # Delta1 is positive; with random labels the effect can have either sign
    error = 100 * some["share_delta1_dropped_se"]
    sets = list(dict.fromkeys(zip(some["data"], some["labels"], strict=True)))
    if len(sets) > len(KINDS):
        sets = sets[: len(KINDS)]
    drawn_sets = [(some["data"] == data) & (some["labels"] == kind) for data, kind in sets]
    names = [f"{short(data, 22)}, {kind}" for data, kind in sets]
    rng = np.random.default_rng(0)

    def paint(figure: Any) -> None:
        axes = figure.subplots(1, 3, sharey=True)
        for at, (mask, name) in enumerate(zip(drawn_sets, names, strict=True)):
            here = some.index[mask]
            shown = here[np.unique(np.linspace(0, len(here) - 1, min(len(here), POINTS // len(sets))).astype(int))]
            look: dict[str, Any] = {
                "fmt": SHAPES[at],
                "color": KINDS[at],
                "markersize": 3,
                "elinewidth": 0.5,
                "alpha": 0.6,
            }
            aside = 1.06 ** (at - (len(sets) - 1) / 2)  # data sets side by side at each T and alpha
            for ax, column in ((axes[0], "T"), (axes[1], "alpha")):
                ax.errorbar(aside * some.loc[shown, column], share[shown], error[shown], capsize=0, label=name, **look)
                middle = share[here].groupby(some.loc[here, column]).median()
                if len(middle) > 1:
                    ax.plot(aside * middle.index, middle, color=KINDS[at], linewidth=1.2, zorder=4)
            jitter = at + rng.uniform(-0.22, 0.22, len(shown))
            axes[2].errorbar(jitter, share[shown], error[shown], capsize=0, **look)
            axes[2].plot([at - 0.32, at + 0.32], [share[here].median()] * 2, color="#111111", linewidth=1.4, zorder=4)
        for ax, words in ((axes[0], "temperature T"), (axes[1], "load α = P/N₁")):
            ax.set_xscale("log")
            ax.set_xlabel(words)
        for ax in axes:
            ax.set_yscale("log")
        axes[0].yaxis.set_major_formatter(lambda value, _at: f"{value:g}")
        loads = sorted(some["alpha"].unique())
        if len(loads) <= 8:
            axes[1].set_xticks(loads, [f"{value:.3g}" for value in loads])
        axes[1].xaxis.set_minor_locator(_no_ticks())
        axes[2].set_xticks(range(len(sets)), names, rotation=30, ha="right", fontsize=7.5)
        axes[2].set_xlabel("data set, labels")
        axes[0].set_ylabel("Δ₁, % of the size of the effect")
        handles, words_ = axes[0].get_legend_handles_labels()
        figure.legend(handles, words_, loc="outside lower center", ncols=3)

    left_out = len(converged) - len(some)
    more = (
        f" Left out, as their effect is not told from 0 by {TOLD:g} standard errors: {left_out} of {len(converged)} cells."
        if left_out
        else ""
    )
    hidden = some["data"].str.cat(some["labels"], "|").nunique() - len(sets)
    if hidden > 0:
        more += f" {hidden} further data sets are not drawn; the table has them."
    told = "; ".join(
        f"{name}: median {number(share[mask].median(), 3)} %, from {number(share[mask].min(), 3)} to {number(share[mask].max(), 3)} %"
        for mask, name in zip(drawn_sets, names, strict=True)
    )
    return drawn(
        "delta1_share",
        "Δ₁, relative to the effect",
        (10.4, 4.1),
        paint,
        "The term that Eq. (4) drops, at the saddle point, over |measured ⟨D²⟩ − the prior's|; one mark a cell with the error that the "
        f"measured effect brings, lines and bars through the medians; data sets stand side by "
        f"side at each T and α. At most {POINTS} marks are drawn.{more}",
        f"Δ₁ as a share of the effect, against T, α and data set. {told}.",
        wide=True,
    )
