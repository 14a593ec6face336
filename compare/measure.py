"""Measurement: what a Run says of <D^2>, Q, Delta1 and Delta2, with autocorrelation-aware errors and Stein variance reduction."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import norm

from sampling.agreement import spread_p, within
from sampling.diagnostics import Diagnosis, Estimate, assess, estimate

if TYPE_CHECKING:
    from sampling.run import Run

FOLDS = 4  # of chains: coefficients of the control variates come from the other folds
CLASH = 1e-3  # level at which the reduced estimate is dropped because it disagrees with the raw one
SPREAD = 1e-3  # level at which the spread of the chain means replaces an error that it shows to be too small
BATCHES = 32  # a chain at most, for correlations between scalars
CORE = ("d2", "Q", "fbar_a", "residual")


@dataclass(frozen=True)
class Quantity:
    """A measured number: mean, its standard error, and the effective draws and R-hat behind it.

    raw_mean, raw_se  without control variates;  reduction  raw_se/se, 1 where the raw estimate is used
    reduced  whether the control variates are used;  clash  z of reduced minus raw
    dof      effective degrees of freedom of se, for Student's t: (mean - truth)/se is distributed about as t with so many
    spread_p how likely honest errors give chain means that spread as widely. Below SPREAD the autocorrelation within chains
             misses a slow mode: se is then the one that the spread of the chain means gives, and dof is chains - 1
    """

    mean: float
    se: float
    ess: float
    rhat: float
    raw_mean: float
    raw_se: float
    reduction: float = 1.0
    reduced: bool = False
    clash: float = 0.0
    dof: float = math.inf
    spread_p: float = math.nan


@dataclass(frozen=True)
class Derived:
    """A number made from several measured ones: value and standard error (delta method, correlations carried)."""

    value: float
    se: float


@dataclass(frozen=True, eq=False)
class Measurement:
    """All that compare needs of one Run.

    quantities  d2, Q, fbar_a, residual (and d2_labels, d2_test, loss_test, norm_w, loglik where recorded)
    covariance  (4, 4) of the means of d2, Q, fbar_a, residual, in that order
    diagnosis   of sampling.diagnostics.assess: its status gates every verdict
    lambda1     precision of the readout, for Delta2
    chain_means quantity -> (C,) means over each chain of the series that its mean was taken from, control variates included
    """

    quantities: dict[str, Quantity]
    covariance: np.ndarray
    diagnosis: Diagnosis
    lambda1: float
    biased: bool = False
    chains: int = field(default=0)
    chain_means: dict[str, np.ndarray] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, run: Run, diagnosis: Diagnosis | None = None, reduce: bool = True) -> Measurement:
        """Measure a run; `reduce` False keeps the control variates out."""
        diagnosis = assess(run) if diagnosis is None else diagnosis
        # An unadjusted sampler's invariant density is not the posterior, so Stein's identity does not hold for it.
        controls = _controls(run) if reduce and not run.biased and run.chains >= FOLDS else None
        quantities, used = {}, {}
        for name in (*CORE, "d2_labels", "d2_test", "loss_test", "norm_w", "loglik"):
            if name in run.series:
                raw = diagnosis.table.get(name)
                kept = None if name == "loglik" else controls
                quantities[name], used[name] = _quantity(
                    run.series[name], kept, estimate(run.series[name]) if raw is None else raw
                )
        se = np.array([quantities[name].se for name in CORE])
        covariance = _correlation([used[name] for name in CORE]) * np.outer(se, se)
        lambda1 = float(run.manifest["problem"]["lambda1"])
        means = {name: one.mean(1) for name, one in used.items()}
        return cls(quantities, covariance, diagnosis, lambda1, run.biased, run.chains, means)

    @property
    def d2(self) -> Quantity:
        return self.quantities["d2"]

    @property
    def Q(self) -> Quantity:
        return self.quantities["Q"]

    @property
    def fbar_a(self) -> Quantity:
        return self.quantities["fbar_a"]

    @property
    def converged(self) -> bool:
        """Whether verdicts may be given: the run is acceptable and its sampler leaves the posterior invariant."""
        return self.diagnosis.ok and not self.biased

    @property
    def delta2(self) -> Derived:
        """Delta2_m = lambda1 <a.f>^2/<Q>: the part of D^2 that the readout explains (physics.md section 6)."""
        gradient = self._delta2_gradient()
        return Derived(self.lambda1 * self.fbar_a.mean**2 / self.Q.mean, self._error(gradient))

    def delta1(self, prior: float) -> Derived:
        """Delta1_m = prior + Delta2_m - <D^2>, prior = N1 a^T K a exactly known. With y = 0 it is Delta1 alone."""
        gradient = self._delta2_gradient() - np.array([1.0, 0.0, 0.0, 0.0])
        return Derived(prior + self.delta2.value - self.d2.mean, self._error(gradient))

    def combination(self, d2: float, delta2: float) -> Derived:
        """d2 <D^2> + delta2 Delta2_m with the given factors, their covariance carried."""
        gradient = delta2 * self._delta2_gradient() + np.array([d2, 0.0, 0.0, 0.0])
        return Derived(d2 * self.d2.mean + delta2 * self.delta2.value, self._error(gradient))

    def _delta2_gradient(self) -> np.ndarray:
        """Of Delta2_m in (d2, Q, fbar_a, residual)."""
        f, Q = self.fbar_a.mean, self.Q.mean
        return np.array([0.0, -self.lambda1 * f**2 / Q**2, 2.0 * self.lambda1 * f / Q, 0.0])

    def _error(self, gradient: np.ndarray) -> float:
        return math.sqrt(max(float(gradient @ self.covariance @ gradient), 0.0))


def _controls(run: Run) -> np.ndarray | None:
    """(chains, draws, k) zero-mean control variates, or None where the run has none that vary."""
    names = [name for name in run.series if name == "d2_stein" or name.startswith("stein_")]
    stacked = [run.series[name] for name in names if np.ptp(run.series[name]) > 0]
    if not stacked or stacked[0].shape[1] < 8:
        return None
    return np.stack(stacked, axis=-1)


def correction(values: np.ndarray, controls: np.ndarray) -> np.ndarray:
    """(chains, draws) part of `values` that the control variates explain, by coefficients fitted on the other folds of chains.

    Chains are independent, so the coefficients are independent of the draws they are applied to, and E[values - correction] is
    the mean that was sought, whatever the coefficients are.
    """
    chains = len(values)
    fold = np.arange(chains) % min(FOLDS, chains)
    scale = controls.std((0, 1))
    z = controls / scale
    out = np.empty_like(values)
    for here in np.unique(fold):
        others = fold != here
        x = z[others].reshape(-1, z.shape[-1])
        y = values[others].reshape(-1)
        # The variates have mean 0, so they are regressed about 0; values about their own mean.
        beta = np.linalg.lstsq(x, y - y.mean(), rcond=1e-10)[0]
        out[~others] = z[~others] @ beta
    return out


def _quantity(values: np.ndarray, controls: np.ndarray | None, raw: Estimate) -> tuple[Quantity, np.ndarray]:
    """The Quantity of a series, and the series that it was taken from; `raw` is what its draws say alone."""
    raw_se, raw_dof, raw_p = _error(values, raw.mcse)
    plain = Quantity(raw.mean, raw_se, raw.ess_bulk, raw.rhat, raw.mean, raw_se, dof=raw_dof, spread_p=raw_p)
    if controls is None or not raw.mcse > 0 or not np.isfinite(controls).all():
        return plain, values
    explained = correction(values, controls)
    shift = _mcse(explained)
    clash = -float(explained.mean()) / shift if shift > 0 else 0.0
    rest = values - explained
    se, dof, p = _error(rest, _mcse(rest))
    if not se < raw_se or abs(clash) > norm.isf(CLASH / 2):
        return plain, values
    found = Quantity(
        mean=float(rest.mean()),
        se=se,
        ess=raw.ess_bulk,
        rhat=raw.rhat,
        raw_mean=raw.mean,
        raw_se=raw_se,
        reduction=raw_se / se if se > 0 else math.inf,
        reduced=True,
        clash=clash,
        dof=dof,
        spread_p=p,
    )
    return found, rest


def _mcse(values: np.ndarray) -> float:
    """ArviZ's autocorrelation-aware error of the mean; 0 for a constant."""
    import arviz

    if np.ptp(values) <= 1e-13 * abs(values).max():
        return 0.0
    return float(values.std(ddof=1) / math.sqrt(float(arviz.ess(values, method="mean"))))


def _error(values: np.ndarray, mcse: float) -> tuple[float, float, float]:
    """(se, dof, spread_p) of a series (chains, draws): `mcse`, unless the chain means spread more than it allows."""
    if not mcse > 0 or values.shape[1] < 4:
        return mcse, math.inf, math.nan
    inside = within(values)
    if len(values) < 2:
        return mcse, inside.dof, math.nan
    p = spread_p(inside)[0]
    between = float(inside.means.std(ddof=1)) / math.sqrt(len(values))
    if p < SPREAD and between > mcse:
        return between, len(values) - 1.0, p
    return mcse, inside.dof, p


def _correlation(series: list[np.ndarray]) -> np.ndarray:
    """(n, n) correlation of the means of n series (chains, draws), from batch means of every chain about the grand mean."""
    chains, draws = series[0].shape
    batches = max(1, min(BATCHES, draws // 8))
    length = draws // batches
    means = np.stack([one[:, : batches * length].reshape(chains * batches, length).mean(1) for one in series], axis=0)
    deviation = means - means.mean(1, keepdims=True)
    covariance = deviation @ deviation.T
    norms = np.sqrt(np.diag(covariance))
    scale = np.outer(norms, norms)
    correlation = np.divide(covariance, scale, out=np.zeros_like(covariance), where=scale > 0)
    np.fill_diagonal(correlation, 1.0)
    return correlation
