"""What survives as the network grows: deviations of each level at fixed alpha, over the widths of a table of cells."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import brentq

from compare.finite_size import Extrapolation, Survival, extrapolate, survival
from compare.verdict import MARGIN

if TYPE_CHECKING:
    import pandas as pd

KEYS = ("data", "labels", "activation", "lambda0", "lambda1", "alpha", "T")
WIDTHS = 3  # that differ: with two the form c0 + c1/N1 could not be tested
COLUMNS = (
    *KEYS, "level", "cells", "widths", "N1_min", "N1_max", "c0", "c0_se", "c1", "c1_se", "tau", "chi2", "dof", "p", "outcome", "reason",
)  # fmt: skip


def surviving(cells: pd.DataFrame, levels: tuple[str, ...], margin: float = MARGIN) -> pd.DataFrame:
    """(measured - level)/effect at fixed alpha as c0 + c1/N1 (compare.finite_size), for each level, T and kind of data.

    cells   as `compare.report.campaign_data.prepared` makes them: converged ones count. Cells that differ in N1, with P = alpha N1, and
            in the subset belong together; the spread between subsets of one width is in every error
    margin  c0 is judged against, as a share of the effect

    One row for each level of each set of cells with WIDTHS widths or more; COLUMNS.
    """
    import pandas as pd

    keys = [name for name in KEYS if name in cells]
    converged = cells[cells["status"] == "ok"]
    rows: list[dict[str, Any]] = []
    # alpha = P/N1 is a quotient of whole numbers: equal to rounding is equal.
    for at, some in converged.assign(alpha=converged["alpha"].round(9)).groupby(keys, sort=False):
        for level in levels:
            found = _row(some, level, margin)
            if found is not None:
                rows.append(dict(zip(keys, at, strict=True)) | {"level": level} | found)
    return pd.DataFrame(rows, columns=[name for name in COLUMNS if name in keys or name not in KEYS])


def spread(N1: np.ndarray, values: np.ndarray, errors: np.ndarray) -> tuple[float, float]:
    """(tau, dof): how much cells (n,) of one width differ beyond their errors, common to all widths, and how well that is known.

    Paule & Mandel (1982) within widths: sum (v - m)^2/(s^2 + tau^2) = n - widths, m the weighted mean of a width; tau = 0 where less is
    seen. dof = n - widths, infinite where no width has two cells: then nothing is known of a spread, and tau is 0.
    """
    groups = [one == N1 for one in np.unique(N1)]
    dof = len(N1) - len(groups)
    if dof == 0:
        return 0.0, math.inf

    def excess(tau: float) -> float:
        weight = 1.0 / (errors**2 + tau**2)
        means = [float(np.average(values[one], weights=weight[one])) for one in groups]
        return (
            sum(float((weight[one] * (values[one] - m) ** 2).sum()) for one, m in zip(groups, means, strict=True)) - dof
        )

    widest = float(np.ptp(values)) * math.sqrt(len(values))  # there the sum is below 1
    return (0.0, float(dof)) if excess(0.0) <= 0 else (float(brentq(excess, 0.0, widest)), float(dof))


def fitted(
    N1: np.ndarray, values: np.ndarray, errors: np.ndarray, margin: float = MARGIN
) -> tuple[Extrapolation, Survival, float]:
    """(fit, verdict, tau) of deviations (n,) with standard errors (n,) at widths N1 (n,), one entry a cell."""
    tau, dof = spread(N1, values, errors)
    fit = extrapolate(N1, values, np.hypot(errors, tau))
    return fit, survival(fit, margin, dof=dof), tau


def _row(some: pd.DataFrame, level: str, margin: float) -> dict[str, Any] | None:
    """The fit and verdict of one level, or None where there are too few widths."""
    share, error = f"{level}_relative_to_effect", f"{level}_relative_se"
    usable = some[np.isfinite(some[share]) & (some[error] > 0)]
    if usable["N1"].nunique() < WIDTHS:
        return None
    N1, values, errors = (usable[name].to_numpy(dtype=np.float64) for name in ("N1", share, error))
    fit, verdict, tau = fitted(N1, values, errors, margin)
    row = {"cells": len(usable), "widths": usable["N1"].nunique(), "N1_min": int(N1.min()), "N1_max": int(N1.max())}
    row |= {name: getattr(fit, name) for name in ("c0", "c0_se", "c1", "c1_se", "chi2", "dof", "p")}
    return row | {"tau": tau, "outcome": verdict.outcome, "reason": verdict.reason}
