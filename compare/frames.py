"""Cells as pandas tables: one row an entry, full precision; what files, page and terminal are made from."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from compare.budget import PARTS
from compare.cell import MEASURED

if TYPE_CHECKING:
    import pandas as pd

    from compare.cell import Cell
    from theory import Prediction

JUDGED = [
    "difference",
    "difference_se",
    "z",
    "relative_to_effect",
    "relative_se",
    "outcome",
    "power",
    "detectable",
    "reason",
]
COLUMNS = {
    "levels": "N1 T alpha level value se measured measured_se " + " ".join(JUDGED) + " status",
    "budget": "N1 T alpha part value se share share_se",
    "decomposition": "N1 T alpha quantity saddle q_averaged first_order first_order_se measured measured_se",
    "generalisation": "N1 T alpha quantity level value se prior measured measured_se " + " ".join(JUDGED) + " status",
    "weights": "N1 T h k predicted measured se differs",
    "weights_fit": "N1 T slope slope_se intercept intercept_se r2 misfit misfit_se components differ joint_components joint_f "
    "joint_p estimator reduction outcome",
    "convergence": "N1 T observable mean sd mcse mcse_between ess_bulk ess_tail rhat reduction",
    "runs": "N1 T sampler biased chains draws warmup starts acceptance nan_share relative_se reduction ess_per_second "
    "wall_seconds gradients seed device dtype status reasons",
    "chains": "N1 T chain start mean se cell_mean cell_se",
    "peak": "N1 curve outcome reason T_min T_max p T_peak T_low T_high height height_se rise rise_se fall fall_se witness "
    "interpolation flat method note",
    "curves": "N1 T alpha level value se",
}


def frame(name: str, rows: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """A table with the columns of COLUMNS[name], in that order, also when there are no rows."""
    import pandas as pd

    return pd.DataFrame(list(rows), columns=COLUMNS[name].split())


def _key(cell: Cell) -> dict[str, Any]:
    return {"N1": cell.problem.N1, "T": cell.problem.T}


def levels(cells: Sequence[Cell]) -> Iterator[dict[str, Any]]:
    """Every level of every cell against the measurement."""
    for cell in cells:
        d2 = cell.measurement.d2
        for name, level in cell.prediction.levels.items():
            verdict = vars(cell.verdicts[name])
            yield _key(cell) | {
                "alpha": cell.problem.alpha,
                "level": name,
                "value": level.value,
                "se": level.se,
                "measured": d2.mean,
                "measured_se": d2.se,
                "status": cell.status,
                **{key: verdict[key] for key in JUDGED},
            }


def budget(cells: Sequence[Cell]) -> Iterator[dict[str, Any]]:
    """The parts of measured - Eq. (4), and the total; a part that was not computed is left out."""
    for cell in cells:
        for name in (*PARTS, "total"):
            part = cell.budget.total if name == "total" else cell.budget.parts[name]
            if math.isnan(part.value):
                continue
            share, share_se = cell.budget.share(name)
            yield _key(cell) | {
                "alpha": cell.problem.alpha,
                "part": name,
                "value": part.value,
                "se": part.se,
                "share": share,
                "share_se": share_se,
            }


def decomposition(cells: Sequence[Cell]) -> Iterator[dict[str, Any]]:
    """Q, a.fbar, Delta1 and Delta2: at the saddle point, averaged over p(Q|y), first order exact, and measured."""
    for cell in cells:
        p, m, nan = cell.prediction, cell.measurement, math.nan
        delta1, delta2 = m.delta1(p.prior), m.delta2
        fourth: dict[str, tuple[float, float]] = {}
        if p.first_order is not None:
            f = p.first_order
            fourth = {"delta1": (-f.minus_delta1, f.minus_delta1_se), "delta2": (f.delta2, f.delta2_se)}
        averaged = (nan,) * 4 if p.q is None else (p.q.mean, p.q.fbar_a, p.q.delta1, p.q.delta2)
        measured = (
            (m.Q.mean, m.Q.se),
            (m.fbar_a.mean, m.fbar_a.se),
            (delta1.value, delta1.se),
            (delta2.value, delta2.se),
        )
        at_saddle = (p.Qbar, p.fbar_a, p.delta1, p.delta2)
        for i, quantity in enumerate(("Q", "fbar_a", "delta1", "delta2")):
            value, se = fourth.get(quantity, (nan, nan))
            yield _key(cell) | {
                "alpha": cell.problem.alpha,
                "quantity": quantity,
                "saddle": at_saddle[i],
                "q_averaged": averaged[i],
                "first_order": value,
                "first_order_se": se,
                "measured": measured[i][0],
                "measured_se": measured[i][1],
            }


def generalisation(cells: Sequence[Cell]) -> Iterator[dict[str, Any]]:
    """Test patterns: their square loss and <D^2> at every level against the measurement; no rows where there are none."""
    for cell in cells:
        if cell.held_out is None:
            continue
        for (quantity, level), judged in cell.held_out.verdicts.items():
            one, verdict = cell.held_out.measured[quantity], vars(judged)
            value, se = cell.held_out.predicted[quantity][level]
            yield _key(cell) | {
                "alpha": cell.problem.alpha,
                "quantity": quantity,
                "level": level,
                "value": value,
                "se": se,
                "prior": cell.held_out.prior[quantity],
                "measured": one.mean,
                "measured_se": one.se,
                "status": cell.status,
                **{key: verdict[key] for key in JUDGED},
            }


def weights(cells: Sequence[Cell]) -> Iterator[dict[str, Any]]:
    """Components of lambda0 <w w> - 1 in the leading directions of the data."""
    for cell in cells:
        if cell.weights is None:
            continue
        w = cell.weights
        columns = (w.pairs, w.fit.predicted, w.fit.measured, w.fit.measured_se, w.differ)
        for pair, predicted, measured, se, differs in zip(*columns, strict=True):
            yield _key(cell) | {
                "h": int(pair[0]),
                "k": int(pair[1]),
                "predicted": float(predicted),
                "measured": float(measured),
                "se": float(se),
                "differs": bool(differs),
            }


def weights_fit(cells: Sequence[Cell]) -> Iterator[dict[str, Any]]:
    """The line of measured on predicted components, one row a cell."""
    for cell in cells:
        if cell.weights is None:
            continue
        w = cell.weights
        yield _key(cell) | {
            "slope": w.fit.slope,
            "slope_se": w.fit.slope_se,
            "intercept": w.fit.intercept,
            "intercept_se": w.fit.intercept_se,
            "r2": w.fit.r2,
            "misfit": w.misfit,
            "misfit_se": w.misfit_se,
            "components": w.fit.n,
            "differ": int(w.differ.sum()),
            "joint_components": 0 if w.joint is None else w.joint.components,
            "joint_f": math.nan if w.joint is None else w.joint.f,
            "joint_p": math.nan if w.joint is None else w.joint.p,
            "estimator": w.estimator,
            "reduction": w.reduction,
            "outcome": w.outcome,
        }


def convergence(cells: Sequence[Cell]) -> Iterator[dict[str, Any]]:
    """Mean, error, effective draws and R-hat of each observable, without control variates; and the factor by which they lower
    its error, 1 where they are not used."""
    for cell in cells:
        table, quantities = cell.measurement.diagnosis.table, cell.measurement.quantities
        for name in MEASURED:
            if name in table:
                reduction = quantities[name].reduction if name in quantities else 1.0
                yield _key(cell) | {"observable": name} | vars(table[name]) | {"reduction": reduction}


def runs(cells: Sequence[Cell]) -> Iterator[dict[str, Any]]:
    """One row a run: what ran, how it mixed, what it cost, whether it may be used."""
    for cell in cells:
        manifest, d2 = cell.run.manifest, cell.measurement.d2
        seconds = float(sum(manifest["seconds"].values()))
        yield _key(cell) | {
            "sampler": manifest["sampler"],
            "biased": cell.run.biased,
            "chains": cell.run.chains,
            "draws": int(manifest["draws"]),
            "warmup": int(manifest["warmup"]),
            "starts": ", ".join(dict.fromkeys(cell.run.starts)),
            "acceptance": float(np.mean(manifest["acceptance"])),
            "nan_share": float(manifest["nan_share"]),
            "relative_se": d2.se / abs(d2.mean) if d2.mean else math.nan,
            "reduction": d2.reduction,
            "ess_per_second": d2.ess / seconds if seconds > 0 else math.nan,
            "wall_seconds": seconds,
            "gradients": int(manifest["gradients_per_chain"]) * cell.run.chains,
            "seed": int(manifest["seed"]),
            "device": manifest["device"],
            "dtype": manifest["dtype"],
            "status": cell.status,
            "reasons": "; ".join(cell.measurement.diagnosis.reasons),
        }


def chains(cells: Sequence[Cell]) -> Iterator[dict[str, Any]]:
    """Mean of D^2 in each chain with its own error, and the mean of all with its error."""
    from sampling.diagnostics import estimate

    for cell in cells:
        values = cell.run.series["d2"]
        d2 = cell.measurement.d2
        for index, start in enumerate(cell.run.starts):
            one = estimate(values[index : index + 1])
            yield _key(cell) | {
                "chain": index,
                "start": start,
                "mean": one.mean,
                "se": one.mcse,
                "cell_mean": d2.raw_mean,
                "cell_se": d2.raw_se,
            }


def curves(predictions: Sequence[Prediction]) -> Iterator[dict[str, Any]]:
    """Every level on a grid of T."""
    for p in predictions:
        for name, level in p.levels.items():
            yield {
                "N1": p.problem.N1,
                "T": p.problem.T,
                "alpha": p.problem.alpha,
                "level": name,
                "value": level.value,
                "se": level.se,
            }
