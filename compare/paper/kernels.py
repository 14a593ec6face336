"""The kernels ordered by class: the prior's K, and what Eq. (1), level 4 and the chains add to it, on a block of patterns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from compare.paper.points import Point
from compare.paper.settings import Settings
from compare.paper.weights import image
from compare.report.figures import Figure, drawn
from data.problem import Problem

if TYPE_CHECKING:
    import pandas as pd

BLOCK = 60  # patterns, half of each class, where no run says which
NAMES = {
    "prior": "K of the prior",
    "eq1": "Eq. (1), minus K",
    "eq1_q_averaged": "Eq. (1), Q averaged, minus K",
    "first_order": "first order, exact, minus K",
    "measured": "chains, minus K",
}


def block_of(classes: np.ndarray, most: int = BLOCK) -> np.ndarray:
    """Indices of the first most/2 patterns of class +, then of class -."""
    plus, minus = np.flatnonzero(classes > 0), np.flatnonzero(classes < 0)
    return np.concatenate([plus[: most // 2], minus[: most // 2]])


def table(problem: Problem, settings: Settings, point: Point | None = None, progress: Any = None) -> pd.DataFrame:
    """Rows matrix, mu, nu, class_mu, class_nu, value, se for mu <= nu: K, and <s s^T> - K of each level and of the run."""
    import pandas as pd

    from theory import predict
    from theory.first_order_similarity import first_order_similarity
    from theory.similarity import averaged, similarity

    classes = problem.dataset.classes
    block = block_of(classes) if point is None else _sorted(point.run.block, classes)
    one = predict(problem)
    at = (problem.N1, problem.T, problem.lambda1)
    K = one.spectrum.K[np.ix_(block, block)]
    none = np.zeros_like(K)
    found = {
        "prior": (K, none),
        "eq1": (similarity(one.spectrum, one.Qbar, *at, block=block) - K, none),
        "eq1_q_averaged": (averaged(one.spectrum, one.order, *at, block=block) - K, none),
    }
    if settings.first_order:
        draws: dict[str, Any] = {"seed": settings.draw_seed, "rel_error": 0.1, "budget": 100_000, "progress": progress}
        exact = first_order_similarity(one.spectrum, [one.saddle], block, **draws)[0]
        found["first_order"] = (exact.value - K, exact.se)
    if point is not None and "ss" in point.run.sums:
        order = np.array([list(point.run.block).index(mu) for mu in block])
        chains = point.run.sums["ss"][:, order[:, None], order[None, :]] - K
        found["measured"] = (chains.mean(0), chains.std(0, ddof=1) / np.sqrt(len(chains)))
    rows = []
    for name, (value, se) in found.items():
        for i, mu in enumerate(block):
            rows += [
                (name, int(mu), int(block[j]), int(classes[mu]), int(classes[block[j]]), value[i, j], se[i, j])
                for j in range(i, len(block))
            ]
    return pd.DataFrame(rows, columns=["matrix", "mu", "nu", "class_mu", "class_nu", "value", "se"])


def _sorted(block: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Class + first, file order within."""
    return block[np.argsort(-classes[block], kind="stable")]


def matrix(rows: pd.DataFrame, name: str) -> np.ndarray:
    """(m, m) of one matrix of the table."""
    one = rows[rows["matrix"] == name]
    order = {mu: i for i, mu in enumerate(dict.fromkeys(one["mu"]))}
    out = np.empty((len(order), len(order)))
    i, j = (one[axis].map(order).to_numpy() for axis in ("mu", "nu"))
    out[i, j] = out[j, i] = one["value"]
    return out


def draw(rows: pd.DataFrame, problem: Problem, subject: str) -> Figure:
    """One heat map a matrix; all but the prior's on one scale. The diagonal, far larger, is left out of the scale."""
    names = list(dict.fromkeys(rows["matrix"]))
    across = 3 if len(names) > 4 else 2
    down = -(-len(names) // across)

    def paint(figure: Any) -> None:
        matrices = {name: matrix(rows, name) for name in names}
        off = ~np.eye(len(matrices["prior"]), dtype=bool)
        learnt = np.concatenate([matrices[name][off] for name in names if name != "prior"])
        limits = (float(np.quantile(learnt, 0.002)), float(np.quantile(learnt, 0.998)))
        axes = figure.subplots(down, across, squeeze=False).ravel()
        edge = int((rows[rows["matrix"] == "prior"].drop_duplicates("mu")["class_mu"] > 0).sum()) - 0.5
        for ax, name in zip(axes, names, strict=False):
            own = matrices[name][off]
            scale = (float(own.min()), float(own.max())) if name == "prior" else limits
            image(figure, ax, matrices[name], NAMES[name], "pattern (class + first)", scale)
            ax.axhline(edge, color="white", linewidth=1.0)
            ax.axvline(edge, color="white", linewidth=1.0)
        for ax in axes[len(names) :]:
            ax.set_visible(False)

    where = f"N₁ = {problem.N1}, α = {problem.alpha:.3g}, T = {problem.T:g}"
    caption = (
        f"Similarities of the hidden features on patterns of {subject} in order of class (white lines: class + above "
        f"and left), {where}: K of the prior, and ⟨s s⊤⟩ − K "
        "by each level and, where there is a run, by the chains, all on one scale (entries off the diagonal)."
    )
    eq1, classes = rows[(rows["matrix"] == "eq1") & (rows["mu"] != rows["nu"])], ("class_mu", "class_nu")
    same = eq1[classes[0]] == eq1[classes[1]]
    alt = f"Eq. (1) minus K: mean {eq1[same]['value'].mean():.3g} within a class, {eq1[~same]['value'].mean():.3g} between classes."
    return drawn(
        "kernels-by-class", "Kernels ordered by class", (4.3 * across, 0.3 + 3.7 * down), paint, caption, alt, True
    )
