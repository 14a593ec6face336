"""D^2 against T: every level of the theory at several loads, true and random labels, and what chains measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from compare.paper.points import Point
from compare.paper.settings import Settings
from compare.report.figures import LINES, MARKS, Figure, drawn
from compare.report.wording import COLOURS, label, number
from data.problem import Dataset

if TYPE_CHECKING:
    import pandas as pd


# Of level 4: with random labels the effect is so small that no relative error is reached; the band says what was.
BUDGET = 300_000


def table(
    datasets: dict[str, Dataset], widths: Sequence[int], T: Sequence[float], settings: Settings, progress: Any = None
) -> pd.DataFrame:
    """Rows labels, alpha, N1, T, level, value, se, on the data sets of each kind of labels."""
    import pandas as pd

    from theory import predict_grid
    from theory.first_order import Settings as Draws

    rows = []
    spectrum = None
    for kind, dataset in datasets.items():
        fourth = Draws(seed=settings.draw_seed, rel_error=settings.rel_error, budget=BUDGET, progress=progress)
        found = predict_grid(
            dataset,
            N1=widths,
            T=T,
            lambda1=[settings.lambda1],
            lambda0=settings.lambda0,
            activation=settings.activation,
            first_order=fourth if settings.first_order else None,
            spectrum=None if spectrum is None else spectrum.relabel(dataset),
        )
        spectrum = found[0].spectrum
        for one in found:
            p = one.problem
            for name, level in one.levels.items():
                rows.append((kind, p.alpha, p.N1, p.T, name, level.value, level.se))
    return pd.DataFrame(rows, columns=["labels", "alpha", "N1", "T", "level", "value", "se"])


def measured(points: dict[str, list[Point]]) -> pd.DataFrame:
    """Rows labels, alpha, N1, T, mean, se, ess, rhat, status of the runs."""
    import pandas as pd

    rows = []
    for kind, listed in points.items():
        for point in sorted(listed, key=lambda one: (one.problem.N1, one.problem.T)):
            p, d2 = point.problem, point.measured.d2
            rows.append((kind, p.alpha, p.N1, p.T, d2.mean, d2.se, d2.ess, d2.rhat, point.status))
    return pd.DataFrame(rows, columns=["labels", "alpha", "N1", "T", "mean", "se", "ess", "rhat", "status"])


def draw(theory: pd.DataFrame, points: pd.DataFrame, subject: str) -> Figure:
    """One row of panels for each kind of labels, one column for each load."""
    kinds = list(dict.fromkeys(theory["labels"]))
    widths = sorted(set(theory["N1"]), reverse=True)
    size = (1.1 + 3.0 * len(widths), 0.9 + 2.9 * len(kinds))

    def paint(figure: Any) -> None:
        axes = figure.subplots(len(kinds), len(widths), squeeze=False, sharex=True)
        for row, kind in zip(axes, kinds, strict=True):
            for ax, width in zip(row, widths, strict=True):
                part = theory[(theory["labels"] == kind) & (theory["N1"] == width)]
                levels(ax, part)
                dots(ax, points[(points["labels"] == kind) & (points["N1"] == width)])
                ax.set_xscale("log")
                ax.set_title(f"α = {number(float(part['alpha'].iloc[0]), 3)}, N₁ = {width}, {kind} labels")
            row[0].set_ylabel("distance ⟨D²⟩")
        for ax in axes[-1]:
            ax.set_xlabel("temperature T (of the loss Σ(y − f)²/2)")
        handles: dict[str, Any] = {}
        for ax in axes.ravel():
            handles |= {name: handle for handle, name in zip(*ax.get_legend_handles_labels(), strict=True)}
        figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=len(handles))

    shown = " Points: chains, with their standard errors; hollow where they did not converge." if len(points) else ""
    caption = (
        f"⟨D²⟩ between the true classes against T on {subject}, by load α = P/N₁, trained on true and on random "
        f"labels. "
        f"The infinite-width line is the prior term.{shown}"
    )
    top = theory[(theory["level"] == "eq4") & (theory["labels"] == kinds[0])]
    peak = top.loc[top.groupby("N1")["value"].idxmax()]
    told = "; ".join(
        f"{v:.3g} at T = {t:g} for N1 = {n}" for v, t, n in zip(peak["value"], peak["T"], peak["N1"], strict=True)
    )
    return drawn(
        "d2-against-T",
        "D² against T",
        size,
        paint,
        caption,
        f"Curves of D^2. Largest Eq. (4), {kinds[0]} labels: {told}.",
        True,
    )


def levels(ax: Any, part: pd.DataFrame) -> None:
    """A line a level, with a band of one standard error where it has one."""
    for at, (name, one) in enumerate(part.groupby("level", sort=False)):
        one = one.sort_values("T")
        colour, every = COLOURS[str(name)], max(1, len(one) // 4)
        style: dict[str, Any] = {"color": colour, "linestyle": LINES[str(name)], "marker": MARKS[str(name)]}
        width = {"eq4": 2.6, "eq3": 1.8}.get(str(name), 1.2)  # levels that lie on each other are seen beside each other
        ax.plot(
            one["T"],
            one["value"],
            linewidth=width,
            label=label(str(name)),
            markevery=(at % every, every),
            markersize=4,
            **style,
        )
        if (one["se"] > 0).any():
            low, high = one["value"] - one["se"], one["value"] + one["se"]
            ax.fill_between(one["T"], low, high, color=colour, alpha=0.25, linewidth=0)


def dots(ax: Any, part: pd.DataFrame) -> None:
    """Measured points with error bars: filled where the run may be relied on."""
    for ok, name in ((True, "measured"), (False, "measured, not converged")):
        one = part[(part["status"] == "ok") == ok]
        if len(one):
            face = COLOURS["measured"] if ok else "white"
            style: dict[str, Any] = {"color": COLOURS["measured"], "markerfacecolor": face, "zorder": 5}
            ax.errorbar(one["T"], one["mean"], yerr=one["se"], fmt="o", markersize=4.5, label=name, **style)
