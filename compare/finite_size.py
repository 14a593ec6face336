"""What survives as the network grows: a quantity at fixed alpha as c0 + c1/N1, each width with its own error."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2
from scipy.stats import t as student

from compare.verdict import ALPHA, MARGIN
from data.errors import InputError

FITS = 0.05  # level below which the form c0 + c1/N1 is rejected


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


@dataclass(frozen=True)
class Survival:
    """What is left of a deviation as N1 grows at fixed alpha.

    outcome  "survives": |c0| > margin, at level alpha two-sided: the theory is off by more than the margin in the proportional limit
             "vanishes": |c0| < margin, by two one-sided tests at level alpha: the deviation is a finite-size one
             "inconclusive": neither, or the form c0 + c1/N1 does not fit (then go to larger widths); `reason` says which
    """

    outcome: str
    reason: str
    c0: float
    c0_se: float
    margin: float


def survival(found: Extrapolation, margin: float = MARGIN, alpha: float = ALPHA, dof: float = math.inf) -> Survival:
    """The verdict on an extrapolated deviation, in the units of the margin: with the default, fit differences as shares of the effect.

    dof  degrees of freedom of the errors, for Student's t, where they were estimated from a spread; infinite where they are known
    Raises InputError unless margin > 0 and 0 < alpha < 1/2.
    """
    if not margin > 0 or not 0 < alpha < 0.5:
        raise InputError(f"margin = {margin} must be > 0, alpha = {alpha} lie between 0 and 1/2")
    told = (found.c0, found.c0_se, margin)
    if found.p < FITS:
        return Survival("inconclusive", f"c0 + c1/N1 does not fit (p = {found.p:.2g}): larger widths are needed", *told)
    if abs(found.c0) + student.isf(alpha, dof) * found.c0_se < margin:
        return Survival("vanishes", "what is left at infinite width lies inside the margin", *told)
    if abs(found.c0) - student.isf(alpha / 2, dof) * found.c0_se > margin:
        return Survival("survives", "what is left at infinite width lies outside the margin", *told)
    return Survival("inconclusive", "the error at infinite width is too large to tell", *told)
