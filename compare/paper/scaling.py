"""y^T K y / P against P, and the dropped term Delta1 beside it, for Gaussian inputs, CIFAR-10 and MNIST 0/1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from compare.paper.points import Point
from compare.paper.sets import Chosen
from compare.paper.settings import Settings
from compare.report.figures import Figure, drawn

if TYPE_CHECKING:
    import pandas as pd

STYLES = (("#D55E00", "s"), ("#0072B2", "^"), ("#009E73", "o"), ("#CC79A7", "d"))
COLUMNS = [
    *("data", "P", "N1", "alpha", "T", "yKy_over_P", "prior"),
    *("delta1", "delta1_q_averaged", "delta1_first_order", "delta1_first_order_se", "delta2"),
    *("infinite_width", "eq4", "eq3", "eq3_q_averaged", "first_order", "first_order_se"),
]


def table(series: dict[str, list[Chosen]], settings: Settings, stage: Callable[..., Any] | None = None) -> pd.DataFrame:
    """A row for each data set and size, COLUMNS; N1 = P/alpha. delta1_first_order is minus level 4's exact counterpart of -Delta1."""
    import pandas as pd

    from data.problem import Problem
    from theory import predict
    from theory.first_order import Settings as Draws

    rows: list[list[object]] = []
    of = sum(len(listed) for listed in series.values())
    for name, listed in series.items():
        for chosen in listed:
            dataset = chosen.dataset
            problem = Problem(
                dataset,
                settings.width(dataset.P, settings.alpha),
                settings.T,
                settings.lambda0,
                settings.lambda1,
                settings.activation,
            )
            told = stage(f"y^T K y / P: {name}, P = {dataset.P}", len(rows) + 1, of) if stage else None
            draws = Draws(seed=settings.draw_seed, rel_error=settings.rel_error, budget=200_000, progress=told)
            one = predict(problem, draws if settings.first_order else None)
            if told is not None:
                told({"phase": "", "done": 1, "total": 1})
            fourth = one.first_order
            levels = [one.levels[level].value for level in ("infinite_width", "eq4", "eq3", "eq3_q_averaged")]
            exact = (np.nan, np.nan) if fourth is None else (-fourth.minus_delta1, fourth.minus_delta1_se)
            whole = (np.nan, np.nan) if fourth is None else (fourth.value, fourth.se)
            about = [
                name,
                dataset.P,
                problem.N1,
                problem.alpha,
                problem.T,
                one.y_K_y_over_P,
                one.prior,
                one.delta1,
                one.q.delta1,
            ]
            rows.append([*about, *exact, one.delta2, *levels, *whole])
    return pd.DataFrame(rows, columns=COLUMNS)


def measured(series: dict[str, list[Chosen]], points: Sequence[Point], settings: Settings) -> pd.DataFrame:
    """Rows data, P, N1, T, delta1, se, delta2, delta2_se, status of the runs on the data of the figure, at its load and temperature."""
    import pandas as pd

    from theory import predict

    names = {chosen.dataset.fingerprint: name for name, listed in series.items() for chosen in listed}
    rows = []
    for point in points:
        p = point.problem
        name = names.get(p.dataset.fingerprint)
        if name is None or p.T != settings.T or settings.width(p.P, settings.alpha) != p.N1:
            continue
        found, second = point.measured.delta1(predict(p).prior), point.measured.delta2
        rows.append((name, p.P, p.N1, p.T, found.value, found.se, second.value, second.se, point.status))
    return pd.DataFrame(rows, columns=["data", "P", "N1", "T", "delta1", "se", "delta2", "delta2_se", "status"])


def draw(theory: pd.DataFrame, points: pd.DataFrame, settings: Settings) -> Figure:
    """Three panels: y^T K y / P, Delta1, and the share of Delta2 that Delta1 is."""
    where = f"α = {settings.alpha:g}, T = {settings.T:g}"

    def paint(figure: Any) -> None:
        axes = figure.subplots(1, 3)
        for (name, one), (colour, mark) in zip(theory.groupby("data", sort=False), STYLES, strict=False):
            here = points[points["data"] == name]
            base: dict[str, Any] = {"color": colour, "marker": mark, "markersize": 4.5}
            axes[0].plot(one["P"], one["yKy_over_P"], label=name, **base)
            for ax, scale in ((axes[1], 1.0), (axes[2], 100.0 / one["delta2"])):
                ax.plot(one["P"], scale * one["delta1"], label=f"{name}: Δ₁ of Eq. (3)", **base)
                ax.plot(one["P"], scale * one["delta1_q_averaged"], color=colour, linestyle=(0, (5, 2)), linewidth=1.1)
                if one["delta1_first_order"].notna().all():
                    value, se = scale * one["delta1_first_order"], scale * one["delta1_first_order_se"]
                    ax.plot(one["P"], value, color=colour, linestyle=(0, (1, 1.5)))
                    ax.fill_between(one["P"], value - se, value + se, color=colour, alpha=0.2, linewidth=0)
            for row in here.itertuples():
                face = colour if row.status == "ok" else "white"
                for ax, scale in ((axes[1], 1.0), (axes[2], 100.0 / float(row.delta2))):
                    style: dict[str, Any] = {
                        "markerfacecolor": face,
                        "markeredgecolor": "#111111",
                        "ecolor": "#111111",
                        "zorder": 5,
                    }
                    ax.errorbar(
                        [row.P], [scale * row.delta1], yerr=[abs(scale) * row.se], fmt=mark, markersize=7, **style
                    )
        for ax in axes:
            ax.set(xscale="log", xlabel="patterns P")
            shown = sorted(set(theory["P"]))
            ax.set_xticks(shown, [str(P) for P in shown])
            ax.minorticks_off()
        axes[0].set(yscale="log", ylabel="y⊤K y / P", title="The quantity assumed to be O(1)")
        axes[1].set(ylabel="Δ₁ (in units of D²)", title=f"The dropped term, {where}")
        axes[2].set(ylabel="Δ₁ / Δ₂ (%)", title=f"Its share of Δ₂, {where}")
        for ax in axes[1:]:
            ax.axhline(0, color="#555555", linewidth=0.7)
        from matplotlib.lines import Line2D

        keys = [*axes[0].get_legend_handles_labels()[0]]
        styles: tuple[tuple[str, Any], ...] = (
            ("Δ₁, Eq. (3)", "-"),
            ("averaged over p(Q|y)", (0, (5, 2))),
            ("first order, exact", (0, (1, 1.5))),
        )
        keys += [Line2D([], [], color="#333333", linestyle=style, label=text) for text, style in styles]
        if len(points):
            keys.append(
                Line2D(
                    [], [], color="#333333", linestyle="none", marker="o", markeredgecolor="#111111", label="measured"
                )
            )
        figure.legend(handles=keys, loc="outside upper center", ncols=len(keys))

    told = " Marks with a black edge and an error bar are chains, hollow where not converged." if len(points) else ""
    caption = (
        f"Left, y⊤K y/P against P. Middle, Δ₁, which Eq. (4) drops because the left stays O(1), at {where}: of Eq. "
        f"(3) at the saddle point (line), "
        f"averaged over p(Q|y) (dashes), and minus its exact counterpart to first order (dots, with a band of one "
        f"standard error). Right, Δ₁ as a share of Δ₂.{told}"
    )
    ends = theory.groupby("data", sort=False).agg(low=("yKy_over_P", "first"), high=("yKy_over_P", "last"))
    said = "; ".join(f"{name} from {row.low:.3g} to {row.high:.3g}" for name, row in ends.iterrows())
    return drawn("scaling-of-yKy", "y⊤K y / P against P", (12.6, 4.3), paint, caption, f"y^T K y / P: {said}.", True)
