"""What survives as the network grows: a quantity at fixed alpha as c0 + c1/N1, each width with its own error."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from data.errors import InputError


@dataclass(frozen=True)
class Extrapolation:
    """Weighted least-squares fit value = c0 + c1/N1.

    c0, c0_se  limit of infinite width at fixed alpha;  c1, c1_se  first correction;  covariance of the two
    chi2, dof, p  of the fit: a small p says that higher orders in 1/N1 matter, and then c0_se is too small
    """

    c0: float
    c0_se: float
    c1: float
    c1_se: float
    covariance: float
    chi2: float
    dof: int
    p: float


def extrapolate(N1: np.ndarray, values: np.ndarray, errors: np.ndarray) -> Extrapolation:
    """Fit (n,) values with standard errors (n,) at widths N1 (n,). Two widths give the limit, but no test of the form (p = NaN).

    Raises InputError for fewer than two different widths or a zero error.
    """
    x = 1.0 / np.asarray(N1, dtype=np.float64)
    y, s = np.asarray(values, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    if len(np.unique(x)) < 2:
        raise InputError("an extrapolation in 1/N1 needs at least two different widths")
    if not (s > 0).all() or not np.isfinite(y).all():
        raise InputError("each width needs a finite value and a standard error > 0")
    design = np.column_stack([np.ones_like(x), x]) / s[:, None]
    covariance = np.linalg.inv(design.T @ design)
    c0, c1 = covariance @ design.T @ (y / s)
    statistic = float((((y - c0 - c1 * x) / s) ** 2).sum())
    dof = len(x) - 2
    return Extrapolation(
        c0=float(c0),
        c0_se=math.sqrt(covariance[0, 0]),
        c1=float(c1),
        c1_se=math.sqrt(covariance[1, 1]),
        covariance=float(covariance[0, 1]),
        chi2=statistic,
        dof=dof,
        p=float(chi2.sf(statistic, dof)) if dof else math.nan,
    )
