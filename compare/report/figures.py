"""The figures of a report, each a pure function from tables to an SVG with its caption and its text alternative."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from compare.report.svg import draw, pdf
from compare.report.wording import COLOURS, label, number, with_error

if TYPE_CHECKING:
    import pandas as pd

    from compare.result import Report

LINES = {
    "infinite_width": (0, (1, 1.5)),
    "eq4": "-",
    "eq3": (0, (5, 2)),
    "eq3_q_averaged": (0, (4, 1.5, 1, 1.5)),
    "first_order": "-",
}
MARKS = {"eq4": "v", "eq3": "^", "eq3_q_averaged": "d", "first_order": "s", "infinite_width": None}
SCATTER = 400  # components drawn in one panel of the weights figure; a third of it where there are many panels
PANELS = 9  # of a figure that has one for each cell


def standalone(figure: Figure) -> str:
    """A figure as an SVG file of its own, with its title and its text alternative inside."""
    import html

    head, _, body = figure.svg.partition(">")
    about = f"<title>{html.escape(figure.title)}</title><desc>{html.escape(figure.alt)}</desc>"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}>{about}{body}\n'


class Figure(NamedTuple):
    """One figure: file stem, SVG, caption, and what a reader who cannot see it is told."""

    name: str
    title: str
    svg: str
    caption: str
    alt: str
    wide: bool = False  # several panels side by side: scrolls on a narrow screen instead of shrinking
    pdf: Callable[[], bytes] = bytes  # the same figure as a PDF file, made when asked for


def drawn(
    name: str,
    title: str,
    size: tuple[float, float],
    paint: Callable[[Any], None],
    caption: str,
    alt: str,
    wide: bool = False,
) -> Figure:
    """The Figure that `paint` fills, `size` in inches."""
    return Figure(name, title, draw(name, size, paint), caption, alt, wide, lambda: pdf(size, paint))


def write_figures(figures: Sequence[Figure], folder: Path) -> list[Path]:
    """Each figure as `NAME.svg` and `NAME.pdf` in `folder`, where figures of an earlier report are removed."""
    from compare.store import replace

    for suffix in ("svg", "pdf"):
        for old in folder.glob(f"*.{suffix}"):
            old.unlink()
    written = []
    for figure in figures:
        written.append(replace(folder / f"{figure.name}.svg", standalone(figure)))
        written.append(replace(folder / f"{figure.name}.pdf", figure.pdf()))
    return written


def figures(report: Report) -> list[Figure]:
    """Every figure that the report's tables allow, in the order of the page."""
    made = [
        distance(report.levels, report.curves),
        budget(report.budget),
        weights(report.weights, report.weights_fit),
        chains(report.chains),
    ]
    return [figure for figure in made if figure is not None]


def _panels(count: int, width: float = 3.5, height: float = 3.1, most: int = 3) -> tuple[int, int, tuple[float, float]]:
    columns = 2 if count == 4 else min(count, most)
    rows = math.ceil(count / columns)
    return rows, columns, (max(columns * width, 4.6), rows * height + 0.7)


def _cells(table: pd.DataFrame) -> tuple[list[tuple[Any, pd.DataFrame]], str]:
    """The cells to draw, at most PANELS, and what the caption says of those left out: widths and temperatures evenly chosen."""
    cells = [(key, group) for key, group in table.groupby(["N1", "T"], sort=True)]
    if len(cells) <= PANELS:
        return cells, ""
    some = {
        N1: _spread(sorted({T for n, T in (key for key, _ in cells) if n == N1}))
        for N1 in _spread(sorted(set(table["N1"])))
    }
    kept = [(key, group) for key, group in cells if key[1] in some.get(key[0], ())]
    return kept, f" {len(kept)} of {len(cells)} cells are drawn; the table has all."


def _spread(values: list[Any], most: int = 3) -> list[Any]:
    """At most `most` of the values, ends included."""
    if len(values) <= most:
        return values
    return [values[round(i * (len(values) - 1) / (most - 1))] for i in range(most)]


def _widths(table: pd.DataFrame) -> list[tuple[Any, pd.DataFrame]]:
    return [(key, group) for key, group in table.groupby("N1", sort=True)]


def _panel_title(N1: int, group: pd.DataFrame) -> str:
    return f"N₁ = {N1}, α = {number(float(group['alpha'].iloc[0]), 3)}"


def _cell_title(key: tuple[Any, Any], many: bool) -> str:
    return f"N₁ = {key[0]}, T = {key[1]:g}" if many else f"T = {key[1]:g}"


def distance(levels: pd.DataFrame, curves: pd.DataFrame) -> Figure | None:
    """<D^2> against T: every level's curve, the measured points with their errors, one panel a width."""
    if levels.empty:
        return None
    groups = _widths(levels)
    rows, columns, size = _panels(len(groups), width=5.6 if len(groups) == 1 else 3.6, height=3.4)

    def paint(figure: Any) -> None:
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for ax, (N1, group) in zip(axes, groups, strict=False):
            for level, points in group.groupby("level", sort=False):
                points = points.sort_values("T")
                curve = (
                    curves[(curves["N1"] == N1) & (curves["level"] == level)].sort_values("T")
                    if len(curves)
                    else curves
                )
                style = {"color": COLOURS[level], "label": label(level), "zorder": 2}
                if len(curve) > 1:
                    ax.plot(curve["T"], curve["value"], linestyle=LINES[level], **style)
                elif len(points) > 1 or level == "infinite_width":
                    ax.plot(points["T"], points["value"], linestyle=LINES[level], **style)
                else:
                    style["label"] = label(level)
                    ax.plot(
                        points["T"], points["value"], marker=MARKS[level] or "_", markersize=5, linestyle="", **style
                    )
                errors = points["se"].fillna(0).to_numpy()
                if (errors > 0).any():
                    ax.errorbar(
                        points["T"],
                        points["value"],
                        errors,
                        fmt=MARKS[level] or "",
                        color=COLOURS[level],
                        markersize=4,
                        zorder=3,
                    )
            measured = group.drop_duplicates("T").sort_values("T")
            measured = measured[measured["measured"].notna()]
            for usable, face, words in (
                (True, COLOURS["measured"], "measured"),
                (False, "white", "measured, inconclusive"),
            ):
                some = measured[(measured["status"] == "ok") == usable]
                if len(some):
                    ax.errorbar(
                        some["T"], some["measured"], some["measured_se"], fmt="o", color=COLOURS["measured"],
                        markerfacecolor=face, markersize=5, label=words, zorder=5,
                    )  # fmt: skip
            if group["T"].nunique() > 1 or len(curves):
                ax.set_xscale("log")
            ax.set_xlabel("temperature T")
            ax.set_ylabel("⟨D²⟩")
            ax.set_title(_panel_title(N1, group), loc="left")
        for ax in axes[len(groups) :]:
            ax.set_visible(False)
        handles, names = axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=3)

    told = "; ".join(
        f"N1 = {row.N1}, T = {row.T:g}: measured {with_error(row.measured, row.measured_se)}, Eq. (4) "
        f"{number(row.value)}"
        for row in levels[levels["level"] == "eq4"].itertuples()
    )
    caption = (
        "Squared distance between the class means in feature space, against temperature. Lines: the levels of the "
        "theory. "
        "Black points: the posterior, sampled; bars are one standard error (often smaller than the point). Squares "
        "with "
        "bars: the first-order-exact level, itself an average with an error. Levels that differ by less than a line's "
        "width lie on one another; the table has the numbers."
    )
    return drawn(
        "distance",
        "Distance against temperature",
        size,
        paint,
        caption,
        f"⟨D²⟩ against T. {told}.",
        columns > 1,
    )


def budget(table: pd.DataFrame) -> Figure | None:
    """Forest of the parts of measured - Eq. (4), with error bars, for each temperature and width."""
    if table.empty:
        return None
    groups = _widths(table)
    parts = list(dict.fromkeys(table["part"]))
    temperatures = sorted(table["T"].unique())
    rows, columns, _ = _panels(len(groups))
    height = 0.17 * (len(parts) + 1.2) * len(temperatures) + 0.8
    size = (6.4 if len(groups) == 1 else max(3.6 * columns, 4.6), rows * height + 0.6)

    def paint(figure: Any) -> None:
        axes = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
        step = len(parts) + 1.2
        for ax, (N1, group) in zip(axes, groups, strict=False):
            for p, part in enumerate(parts):
                some = group[group["part"] == part].sort_values("T")
                where = np.array([temperatures.index(T) * step + p for T in some["T"]])
                ax.barh(where, some["value"], height=0.72, color=COLOURS[part], alpha=0.28, zorder=1)
                ax.errorbar(
                    some["value"], where, xerr=some["se"].fillna(0), fmt="D" if part == "total" else "o",
                    color=COLOURS[part], markersize=4, label=label(part), zorder=3,
                )  # fmt: skip
            ax.axvline(0, color="#555555", linewidth=0.8, zorder=2)
            ax.set_yticks([t * step + (len(parts) - 1) / 2 for t in range(len(temperatures))])
            ax.set_yticklabels([f"T = {T:g}" for T in temperatures])
            ax.tick_params(axis="y", length=0)
            ax.grid(axis="y", visible=False)
            ax.set_xlabel("contribution to measured − Eq. (4)")
            ax.set_title(_panel_title(N1, group), loc="left")
        axes[0].invert_yaxis()
        for ax in axes[len(groups) :]:
            ax.set_visible(False)
        handles, names = axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=3)

    told = "; ".join(
        f"N1 = {key[0]}, T = {key[1]:g}: "
        + ", ".join(f"{label(row.part)} {with_error(row.value, row.se)}" for row in group.itertuples())
        for key, group in table.groupby(["N1", "T"])
    )
    caption = (
        "Where the error of Eq. (4) comes from. Each bar is one part, with one standard error; the parts add up to the "
        "black diamond, measured minus Eq. (4)."
    )
    return drawn("budget", "Error budget of Eq. (4)", size, paint, caption, f"Error budget. {told}.", columns > 1)


def weights(components: pd.DataFrame, fits: pd.DataFrame) -> Figure | None:
    """Measured against predicted components of lambda0 <w w> - 1, one panel a cell."""
    if components.empty:
        return None
    cells, left_out = _cells(components)
    most = SCATTER if len(cells) <= 3 else SCATTER // 3
    many = components["N1"].nunique() > 1
    rows, columns, size = _panels(len(cells), width=2.9, height=2.9)

    def paint(figure: Any) -> None:
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for ax, (key, group) in zip(axes, cells, strict=False):
            order = group["predicted"].abs().sort_values(ascending=False).index
            half = list(order[: most // 2])
            rest = list(order[most // 2 :])
            some = group.loc[half + rest[:: max(1, math.ceil(len(rest) / (most - len(half) or 1)))]]
            low = float(min(some["predicted"].min(), some["measured"].min()))
            high = float(max(some["predicted"].max(), some["measured"].max()))
            ax.axline(
                (low, low),
                (high, high) if high > low else (low + 1, low + 1),
                color="#999999",
                linewidth=0.9,
                linestyle=(0, (4, 2)),
            )
            ax.errorbar(
                some["predicted"], some["measured"], some["se"], fmt="o", markersize=2.4, elinewidth=0.5, capsize=0,
                color=COLOURS["eq3"], alpha=0.75,
            )  # fmt: skip
            title = _cell_title(key, many)
            fit = fits[(fits["N1"] == key[0]) & (fits["T"] == key[1])] if len(fits) else fits
            if len(fit):
                title += f"\nslope {with_error(float(fit['slope'].iloc[0]), float(fit['slope_se'].iloc[0]))}"
            ax.set_title(title, loc="left")
            ax.set_xlabel("predicted (Λ₁ + Λ₂)")
            ax.set_ylabel("measured λ₀⟨ww⟩ − 1")
        for ax in axes[len(cells) :]:
            ax.set_visible(False)

    told = "; ".join(
        f"N1 = {row.N1}, T = {row.T:g}: slope {with_error(row.slope, row.slope_se)}" for row in fits.itertuples()
    )
    caption = (
        "Components of λ₀⟨wₕwₖ⟩ − δₕₖ in the leading directions of the data: measured against predicted, one "
        "standard "
        f"error, with the line of equality. At most {most} components a panel are drawn, the largest first; the "
        "slope uses them all." + left_out
    )
    return drawn(
        "weights",
        "Covariance of the weights",
        size,
        paint,
        caption,
        f"Measured against predicted ⟨ww⟩. {told}.",
        columns > 1,
    )


def chains(table: pd.DataFrame) -> Figure | None:
    """Mean of D^2 in each chain with its error, by kind of start: chains that agree lie in one band."""
    if table.empty:
        return None
    cells, left_out = _cells(table)
    many = table["N1"].nunique() > 1
    rows, columns, size = _panels(len(cells), width=2.6, height=2.2)
    kinds = list(dict.fromkeys(table["start"]))
    looks = {kind: (colour, mark) for kind, colour, mark in zip(
        kinds, ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#2B93CC", "#B87A00"] * 4, "os^Dv<" * 4, strict=False
    )}  # fmt: skip

    def paint(figure: Any) -> None:
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for ax, (key, group) in zip(axes, cells, strict=False):
            centre, error = float(group["cell_mean"].iloc[0]), float(group["cell_se"].iloc[0])
            ax.axhspan(centre - error, centre + error, color="#dddddd", zorder=1, linewidth=0)
            for kind in kinds:
                some = group[group["start"] == kind]
                if len(some):
                    colour, mark = looks[kind]
                    ax.errorbar(
                        some["chain"],
                        some["mean"],
                        some["se"],
                        fmt=mark,
                        color=colour,
                        markersize=4,
                        label=f"{kind} start",
                        zorder=3,
                    )
            ax.set_title(_cell_title(key, many), loc="left")
            ax.set_xlabel("chain")
            ax.set_ylabel("mean of D²")
            ax.set_xticks(range(0, int(group["chain"].max()) + 1, max(1, len(group) // 8)))
        for ax in axes[len(cells) :]:
            ax.set_visible(False)
        handles, names = axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=3)

    caption = (
        "Mean of D² in each chain with its own standard error, marked by where the chain started; the grey band is "
        "the mean "
        "over all chains with its error. Chains that have met scatter about the band by their own errors." + left_out
    )
    spread = "; ".join(
        f"N1 = {key[0]}, T = {key[1]:g}: chain means from {number(group['mean'].min())} to "
        f"{number(group['mean'].max())}"
        for key, group in table.groupby(["N1", "T"])
    )
    return drawn(
        "chains",
        "Chains against one another",
        size,
        paint,
        caption,
        f"Mean of D² by chain. {spread}.",
        columns > 1,
    )
