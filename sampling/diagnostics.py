"""What makes a run acceptable: R-hat, effective sample size, honest error bars, and two kinds of start that meet."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sampling.agreement import Within, spread_p, starts_p, within

if TYPE_CHECKING:
    import pandas

    from sampling.run import Run

GATES = ("d2", "Q", "residual", "loglik")  # invariant scalars; never single weights, whose labels permute
RHAT_LIMIT = 1.01
MIN_ESS = 400.0
FALSE_ALARM = 1e-3  # of each family of tests below, split over its members (Bonferroni)


@dataclass(frozen=True)
class Estimate:
    """One scalar: mean, sd of its draws, mcse of the mean (autocorrelation-aware), the mcse that the spread of the chain means
    gives, bulk and tail effective sample size, and rank-normalised split R-hat (Vehtari et al., Bayesian Anal. 16, 667 (2021))."""

    mean: float
    sd: float
    mcse: float
    mcse_between: float
    ess_bulk: float
    ess_tail: float
    rhat: float


@dataclass(frozen=True)
class Diagnosis:
    """status "ok" or "inconclusive", the reasons, and the table name -> Estimate."""

    status: str
    reasons: tuple[str, ...]
    table: dict[str, Estimate]

    @property
    def ok(self) -> bool:
        return self.status == "ok"

    def frame(self) -> pandas.DataFrame:
        """The table, one row a scalar."""
        import pandas

        return pandas.DataFrame({name: vars(one) for name, one in self.table.items()}).T


def estimate(values: np.ndarray) -> Estimate:
    """Of one series (chains, draws). NaN everywhere it cannot be told: fewer than 4 draws, or a value that is not finite."""
    values = np.asarray(values, dtype=np.float64)
    chains, draws = values.shape
    nan = math.nan
    if draws < 4 or not np.isfinite(values).all():
        return Estimate(float(values.mean()) if values.size else nan, nan, nan, nan, 0.0, 0.0, nan)
    if _constant(values):  # no error and nothing to converge
        return Estimate(float(values.mean()), 0.0, 0.0, 0.0, float(values.size), float(values.size), 1.0)
    import arviz

    with np.errstate(all="ignore"):
        ess_mean = float(arviz.ess(values, method="mean"))
        sd = float(values.std(ddof=1))
        between = float(values.mean(1).std(ddof=1) / math.sqrt(chains)) if chains > 1 else nan
        return Estimate(
            mean=float(values.mean()),
            sd=sd,
            mcse=sd / math.sqrt(ess_mean),
            mcse_between=between,
            ess_bulk=float(arviz.ess(values, method="bulk")),
            ess_tail=float(arviz.ess(values, method="tail")),
            rhat=float(arviz.rhat(values)) if chains > 1 else nan,
        )


def assess(run: Run, rhat_limit: float = RHAT_LIMIT, min_ess: float = MIN_ESS) -> Diagnosis:
    """Whether a run may carry a verdict.

    Inconclusive when, for any of D^2, Q, residual, log-likelihood: R-hat > rhat_limit; bulk or tail ESS < min_ess; it never
    changes; the spread of the chain means is larger, or smaller, than the autocorrelation within chains allows (F test of
    `agreement.spread_p`, false-alarm rate 1e-3 over all scalars and both sides); or the kinds of start disagree (t test for each
    pair on the error from within chains, 1e-3 over all pairs and scalars). A single chain is never accepted, nor is a run with
    a value that is not finite in any series, or with more than 1% NaN energies.
    """
    reasons: list[str] = []
    table = {name: estimate(value) for name, value in run.series.items() if value.ndim == 2}
    if run.chains < 2:
        reasons.append("one chain cannot show that it has converged: run at least 4")
    for name in GATES:
        one = table[name]
        if not np.isfinite(run.series[name]).all():
            continue  # said below
        if one.sd == 0.0 and run.draws > 1:
            reasons.append(f"{name} never changes: the chains stand still")
            continue
        if run.chains >= 2 and not one.rhat <= rhat_limit:
            reasons.append(f"R-hat of {name} is {one.rhat:.3f} > {rhat_limit}")
        if not min(one.ess_bulk, one.ess_tail) >= min_ess:
            least = min(one.ess_bulk, one.ess_tail)
            reasons.append(f"effective draws of {name}: {least:.0f} < {min_ess:.0f}")
    for name, values in run.series.items():
        if not np.isfinite(values).all():
            reasons.append(f"{name} holds values that are not finite")
    agreement = _within(run)
    reasons += _spread_clash(agreement) + _starts_clash(agreement, run.starts)
    nan_share = float(run.manifest.get("nan_share", 0.0))
    if nan_share > 0.01:
        reasons.append(f"{100 * nan_share:.1f}% of the energies were NaN")
    return Diagnosis("inconclusive" if reasons else "ok", tuple(reasons), table)


def _spread_clash(agreement: dict[str, Within]) -> list[str]:
    """Chains whose means differ by more than their own errors allow: a slow mode that no single chain shows; or by far less."""
    reasons = []
    limit = FALSE_ALARM / (2 * len(GATES))
    for name, one in agreement.items():
        wide, narrow = spread_p(one)
        ratio = float(one.means.std(ddof=1)) / math.sqrt(one.variance)
        if wide < limit:
            reasons.append(
                f"chain means of {name} spread {ratio:.1f} times more than their errors allow (p = {wide:.1g})"
            )
        elif narrow < limit:
            reasons.append(
                f"chain means of {name} lie {1 / max(ratio, 1e-9):.1f} times closer than independent chains would"
            )
    return reasons


def _within(run: Run) -> dict[str, Within]:
    """What chains say of their own errors, for each gate scalar that is finite and varies; nothing of one chain alone."""
    if run.chains < 2:
        return {}
    series = {name: run.series[name] for name in GATES}
    usable = {name: x for name, x in series.items() if x.shape[1] >= 4 and np.isfinite(x).all()}
    return {name: within(x) for name, x in usable.items() if not _constant(x)}


def _constant(values: np.ndarray) -> bool:
    """Whether values differ by rounding at most."""
    return bool(np.ptp(values) <= 1e-13 * abs(values).max())


def _starts_clash(agreement: dict[str, Within], starts: list[str]) -> list[str]:
    """Pairs of kinds of start whose chain means differ (t test, two-sided, Bonferroni over pairs and scalars)."""
    kinds = sorted(set(starts))
    pairs = [(left, right) for i, left in enumerate(kinds) for right in kinds[i + 1 :]]
    found = []
    for left, right in pairs:
        for name, one in agreement.items():
            gap, p = starts_p(one, starts, left, right)
            if p < FALSE_ALARM / (len(pairs) * len(GATES)):
                found.append(f"starts disagree on {name}: {left} minus {right} is {gap:.3g} (p = {p:.1g})")
    return found
