"""Lambda2: 25 components against the load, and heat maps at one load, in the data's own directions and in inputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from compare.paper.points import Point
from compare.paper.settings import Settings
from compare.report.figures import Figure, drawn
from data.problem import Dataset

if TYPE_CHECKING:
    import pandas as pd

COMPONENTS, DIRECTIONS, INPUTS = 25, 16, 64
LOADS = 25
# Kinds of components: colour, line style and mark, so that they are told apart without colour too.
KINDS = {
    "class direction with itself": ("#D55E00", "-", "s"),
    "class direction with another": ("#0072B2", (0, (5, 2)), "^"),
    "two other directions": ("#767676", (0, (1, 1.5)), "o"),
}


def directions(dataset: Dataset, count: int = DIRECTIONS) -> np.ndarray:
    """(N0, k) orthonormal: the class direction X^T a, then principal directions of X made orthogonal to it; data only."""
    X, a = dataset.X, dataset.a
    _, size, V = np.linalg.svd(X, full_matrices=False)
    rank = int((size > size[0] * 1e-10).sum())
    Q, _ = np.linalg.qr(np.column_stack([X.T @ a, V[: min(count, rank)].T]))
    Q = Q[:, : min(count, rank)]
    # QR leaves the signs open: the class direction points from - to +, and the largest entry of any other one is positive.
    signs = np.sign(Q[abs(Q).argmax(0), np.arange(Q.shape[1])])
    signs[0] = np.sign(Q[:, 0] @ (X.T @ a))
    return Q * signs


def pairs(k: int) -> list[tuple[int, int]]:
    """The first 25 pairs (h, k), h <= k, of the leading directions (fewer where there are not so many)."""
    listed = [(h, j) for j in range(k) for h in range(j + 1)]
    return listed[:COMPONENTS]


def kind(h: int, k: int) -> str:
    """Which of KINDS a component is."""
    return list(KINDS)[0 if h == k == 0 else 1 if h == 0 else 2]


def table(dataset: Dataset, basis: np.ndarray, widths: Sequence[int], settings: Settings, T: float) -> pd.DataFrame:
    """Rows alpha, N1, h, k, lambda1, lambda2 (at Qbar), total (their sum), averaged (the sum averaged over p(Q|y))."""
    import pandas as pd

    from theory import predict_grid

    rows = []
    found = predict_grid(
        dataset,
        N1=widths,
        T=[T],
        lambda1=[settings.lambda1],
        lambda0=settings.lambda0,
        activation=settings.activation,
    )
    for one in found:
        p, make = one.problem, one.weight_theory
        at = make.at(one.Qbar, p.N1, p.T, p.lambda1, basis)
        mean = make.averaged(one.order, p.N1, p.T, p.lambda1, basis)
        for h, k in pairs(basis.shape[1]):
            first, second = at.Lambda1[h, k], at.Lambda2[h, k]
            averaged = mean.Lambda1[h, k] + mean.Lambda2[h, k]
            rows.append((p.alpha, p.N1, h, k, kind(h, k), first, second, first + second, averaged))
    return pd.DataFrame(rows, columns=["alpha", "N1", "h", "k", "kind", "lambda1", "lambda2", "total", "averaged"])


def heat(dataset: Dataset, basis: np.ndarray, N1: int, settings: Settings, T: float) -> pd.DataFrame:
    """Rows space, h, k, lambda1, lambda2: the matrices in `basis`, and in the inputs where the class means differ most."""
    import pandas as pd

    from data.problem import Problem
    from theory import predict

    problem = Problem(dataset, N1, T, settings.lambda0, settings.lambda1, settings.activation)
    one = predict(problem)
    # Chosen by the data alone, then in the order of the inputs, so that the eye finds neighbours together.
    chosen = np.sort(np.argsort(-abs(dataset.X.T @ dataset.a), kind="stable")[:INPUTS])
    rows = []
    for space, axes, names in (
        ("directions", basis, np.arange(basis.shape[1])),
        ("inputs", one.weight_theory.columns(chosen), chosen),
    ):
        at = one.weight_theory.at(one.Qbar, N1, T, settings.lambda1, axes)
        for i, h in enumerate(names):
            rows += [(space, h, k, at.Lambda1[i, j], at.Lambda2[i, j]) for j, k in enumerate(names)]
    return pd.DataFrame(rows, columns=["space", "h", "k", "lambda1", "lambda2"])


def measured(points: Sequence[Point], size: int) -> pd.DataFrame:
    """Rows alpha, N1, h, k, mean, se, status: lambda0 <w_h w_k> - delta_hk of every run, in the run's own directions."""
    import pandas as pd

    from compare.weight_estimate import WeightEstimate

    rows = []
    for point in points:
        found = WeightEstimate.of(point.run)
        if found is None:
            continue
        p = point.problem
        chains = p.lambda0 * found.chains - np.eye(found.chains.shape[1])
        mean, se = chains.mean(0), chains.std(0, ddof=1) / math.sqrt(len(chains))
        k = min(size, len(mean))
        rows += [(p.alpha, p.N1, h, j, mean[h, j], se[h, j], point.status) for j in range(k) for h in range(j + 1)]
    return pd.DataFrame(rows, columns=["alpha", "N1", "h", "k", "mean", "se", "status"])


def draw(lines: pd.DataFrame, maps: pd.DataFrame, points: pd.DataFrame, alpha: float, N1: int, subject: str) -> Figure:
    """Two panels against alpha (Lambda2, and Lambda1 + Lambda2 with points), two heat maps."""

    def paint(figure: Any) -> None:
        axes = figure.subplots(2, 2)
        everything = np.concatenate([lines["lambda2"], lines["total"]])
        threshold = float(f"{np.median(abs(everything)):.1g}") or 1e-6
        for ax, column, title in (
            (axes[0, 0], "lambda2", "Λ₂, 25 components"),
            (axes[0, 1], "total", "Λ₁ + Λ₂, the same components"),
        ):
            for (h, k), one in lines.groupby(["h", "k"], sort=False):
                colour, style, mark = KINDS[kind(int(h), int(k))]
                shade: dict[str, Any] = {"color": colour, "linestyle": style, "marker": mark, "linewidth": 1.0}
                ax.plot(one["alpha"], one[column], markevery=6, markersize=3, label=kind(int(h), int(k)), **shade)
                if column == "total":
                    _dots(ax, points[(points["h"] == h) & (points["k"] == k)], mark)
            ax.set(xscale="log", title=title, xlabel="load α = P/N₁")
            ax.set_yscale("symlog", linthresh=threshold)
            ax.axvline(alpha, color="#999999", linewidth=0.8)
        axes[0, 0].set_ylabel("component (in units of 1/λ₀)")
        handles: dict[str, Any] = {}
        for ax in axes[0]:
            handles |= {name: handle for handle, name in zip(*ax.get_legend_handles_labels(), strict=True)}
        figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=4)
        inputs = maps[maps["space"] == "inputs"]
        image(
            figure,
            axes[1, 0],
            square(inputs, "lambda2"),
            f"Λ₂ at α = {alpha:g}: {len(set(inputs['h']))} inputs",
            "place among them",
        )
        both = square(maps[maps["space"] == "directions"].assign(total=lambda t: t["lambda1"] + t["lambda2"]), "total")
        here = points[points["N1"] == N1]
        name = f"Λ₁ + Λ₂ at α = {alpha:g}"
        if len(here):  # above the diagonal the theory, below it the chains: a symmetric picture is agreement
            for row in here.itertuples():
                if int(row.h) < int(row.k) < len(both):
                    both[int(row.k), int(row.h)] = float(row.mean)
            name += ": theory above, chains below the diagonal"
        both[0, 0] = np.nan  # far larger than the others, and read off the panel above
        image(figure, axes[1, 1], both, name, "direction (0: class)")

    told = " Points with standard errors are chains." if len(points) else ""
    caption = (
        f"What learning adds to λ₀⟨w w⊤⟩ on {subject}. Above: 25 components in orthonormal directions of the data "
        f"(the class direction first, then principal "
        f"directions) against α; the scale is linear near 0.{told} No Gaussian closure enters here, so there is no "
        f"level 4 for the weights; the average "
        "over p(Q|y) stands in the table. Below: heat maps, of the inputs in which the class means differ most and "
        "of the directions; grey marks the class direction with itself, left out there."
    )
    top = lines.loc[lines["lambda2"].abs().idxmax()]
    alt = f"Largest component of Lambda2: {top['lambda2']:.3g} at alpha = {top['alpha']:.3g}, directions {top['h']}, {top['k']}."
    return drawn("lambda2-against-alpha", "Λ₂ against α", (10.4, 8.6), paint, caption, alt, True)


def _dots(ax: Any, part: pd.DataFrame, mark: str) -> None:
    for ok, name in ((True, "measured"), (False, "measured, not converged")):
        one = part[(part["status"] == "ok") == ok]
        if len(one):
            style: dict[str, Any] = {"color": "#111111", "markerfacecolor": "#111111" if ok else "white", "zorder": 5}
            ax.errorbar(one["alpha"], one["mean"], yerr=one["se"], fmt=mark, markersize=3.5, label=name, **style)


def square(rows: pd.DataFrame, column: str) -> np.ndarray:
    """(n, n) from rows h, k."""
    return rows.pivot(index="h", columns="k", values=column).to_numpy(copy=True)


def image(
    figure: Any, ax: Any, values: np.ndarray, title: str, axis: str, limits: tuple[float, float] | None = None
) -> None:
    """A heat map with its scale; the palette grows in lightness, so it reads in grey as well."""
    import matplotlib

    shown = np.ma.masked_invalid(values)
    palette = matplotlib.colormaps["cividis"].with_extremes(bad="#bbbbbb")
    low, high = limits or (float(shown.min()), float(shown.max()))
    drawn_image = ax.imshow(shown, cmap=palette, vmin=low, vmax=high, interpolation="nearest")
    ax.set(title=title, xlabel=axis, ylabel=axis)
    ax.grid(False)
    bar = figure.colorbar(drawn_image, ax=ax, shrink=0.85)
    bar.outline.set_linewidth(0.5)
