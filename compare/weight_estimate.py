"""<w_h w_k> of a run by control variates: two estimators of one mean, combined with coefficients fitted on other chains."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import t as student

if TYPE_CHECKING:
    from sampling.run import Run

FOLDS = 4  # of chains: the coefficients used on one fold come from the others
CLASH = 1e-3  # level, over all components, at which the combination is dropped because the two estimators disagree
OWN = 6  # chains to fit on from which every component has a coefficient of its own; with fewer, one is common to all


@dataclass(frozen=True, eq=False)
class WeightEstimate:
    """<w_h w_k> in the run's basis, chain by chain.

    chains      (C, k, k) estimates of each chain, independent but for the coefficients
    estimator   "ww + stein" where the control variate is used, else "ww": the plain average (or "ww_stein" where only that is there)
    reduction   standard error of the plain average over that of `chains`, geometric mean over components; 1 where it is used
    clash       largest |t| of <ww> - <ww_stein> over components, which has mean 0 in the posterior
    coefficient (k, k) of ww - ww_stein in the combination, mean over folds: 0 is the plain average, 1 is ww_stein
    """

    chains: np.ndarray
    estimator: str
    reduction: float = 1.0
    clash: float = 0.0
    coefficient: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)), repr=False)

    @property
    def reduced(self) -> bool:
        """Whether the control variate is used."""
        return self.estimator == "ww + stein"

    @classmethod
    def of(cls, run: Run) -> WeightEstimate | None:
        """Of the run's sums; None where it has none.

        <w_h w_k> = delta/lambda0 + <w_h dloglik/dw_k>/lambda0 (physics.md section 5.5), symmetrised, is the same mean: ww - ww_stein is
        the generator of the test function w_h w_k, a control variate of mean 0 for each component. The plain average carries the
        noise of the prior, ww_stein that of the likelihood's gradient, which grows as 1/T in stiff directions; the fitted
        coefficient weighs one against the other, component by component. A biased sampler has no Stein identity.
        """
        plain, other = run.sums.get("ww"), run.sums.get("ww_stein")
        if plain is None or other is None:
            only = other if plain is None else plain
            return None if only is None else cls(only, "ww_stein" if plain is None else "ww")
        if run.biased or len(plain) < FOLDS:
            return cls(plain, "ww")
        zero = plain - other
        explained, coefficient = combine(plain, zero)
        combined = plain - explained
        scores, limit = _clash(zero)
        before, after = (one.std(0, ddof=1)[np.triu_indices(one.shape[1])] for one in (plain, combined))
        use = (before > 0) & (after > 0)
        reduction = float(np.exp(np.mean(np.log(before[use] / after[use])))) if use.any() else 1.0
        if not np.isfinite(combined).all() or not scores <= limit or not reduction > 1.0:
            return cls(plain, "ww", clash=scores, coefficient=coefficient)
        return cls(combined, "ww + stein", reduction, scores, coefficient)


def combine(plain: np.ndarray, zero: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(C, k, k) part of `plain` that `zero`, of mean 0, explains, and the mean coefficient (k, k).

    Least squares between the n chains of the other folds, component by component; that the slope is fitted adds 1/n to the variance.
    """
    chains = len(plain)
    fold = np.arange(chains) % FOLDS
    explained, total = np.empty_like(plain), np.zeros(plain.shape[1:])
    for here in range(FOLDS):
        x, y = (one[fold != here] - one[fold != here].mean(0) for one in (zero, plain))
        covariance, variance = (x * y).sum(0), (x * x).sum(0)
        common = covariance.sum() / variance.sum() if variance.sum() > 0 else 0.0
        slope = np.full_like(variance, common)
        if len(x) >= OWN:
            np.divide(covariance, variance, out=slope, where=variance > 0)
        explained[fold == here] = slope * zero[fold == here]
        total += slope / FOLDS
    return explained, total


def _clash(zero: np.ndarray) -> tuple[float, float]:
    """Largest |t| of the mean of `zero` over independent components, and the level-CLASH limit for so many (Bonferroni)."""
    values = zero[:, *np.triu_indices(zero.shape[1])]
    se = values.std(0, ddof=1) / math.sqrt(len(values))
    if not np.isfinite(se).all():
        return math.inf, 0.0
    varies = se > 0
    if not varies.any():
        return 0.0, math.inf
    scores = abs(values.mean(0)[varies]) / se[varies]
    return float(scores.max()), float(student.isf(CLASH / (2 * varies.sum()), len(values) - 1))
