"""Cell: one Problem with its prediction and its run, and everything that follows from the two."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import t as student

from compare.budget import Budget, error_budget
from compare.families import Fit, Hotelling, discoveries, fit, hotelling, p_values, upper
from compare.held_out import HeldOut
from compare.measure import Measurement
from compare.payload import prediction_cell
from compare.verdict import ALPHA, MARGIN, Verdict, equivalence
from compare.weight_estimate import WeightEstimate
from data.errors import InputError

if TYPE_CHECKING:
    from data.problem import Problem
    from sampling.run import Run
    from theory import Prediction

MEASURED = ("d2", "d2_labels", "d2_test", "loss_test", "Q", "fbar_a", "residual", "loglik", "norm_w")
TOGETHER = 8  # components, largest predicted first, that are tested together; fewer where there are few chains


@dataclass(frozen=True, eq=False)
class Weights:
    """lambda0 <w w> - 1 in the run's basis: measured on predicted, over the independent components.

    pairs     (n, 2) directions (h, k) of each component
    estimator, reduction  which estimate of <w w> was used, and what it gained: see `compare.weight_estimate`
    joint     test of the largest predicted components together, or None where the chains do not give their covariance
    differ    (n,) components that deviate after false-discovery control
    misfit    see `misfit`: the share of the prediction's squared size by which the measurement misses it, with its error
    slope     equivalence of the slope with 1
    outcome   "agrees" where both slope and misfit do, "differs" where either does, else "inconclusive". A slope of 1 alone is not
              agreement: components may be off in both directions
    """

    fit: Fit
    pairs: np.ndarray
    estimator: str
    reduction: float
    joint: Hotelling | None
    differ: np.ndarray
    misfit: float
    misfit_se: float
    slope: Verdict
    outcome: str


@dataclass(frozen=True, eq=False)
class Cell:
    """What is known of one posterior: theory, measurement, and what they say of one another.

    verdicts  level name -> Verdict;  weights  None with fewer than three chains
    held_out  of the test patterns; None where the data set has none, or the run did not measure them
    """

    problem: Problem
    prediction: Prediction
    run: Run
    measurement: Measurement
    budget: Budget
    verdicts: dict[str, Verdict]
    weights: Weights | None
    held_out: HeldOut | None = None

    @classmethod
    def of(cls, prediction: Prediction, run: Run, margin: float = MARGIN) -> Cell:
        """Everything downstream of a Run. Raises InputError when the run was made for another problem."""
        problem = prediction.problem
        if run.manifest["problem"]["fingerprint"] != problem.fingerprint:
            raise InputError(
                f"the run belongs to another problem than N1 = {problem.N1}, T = {problem.T:g}: its fingerprint differs"
            )
        measurement = Measurement.of(run)
        d2, prior = measurement.d2, prediction.prior
        verdicts = {
            name: equivalence(
                d2.mean,
                d2.se,
                level.value,
                level.se,
                prior=prior,
                margin=margin,
                dof=d2.dof,
                converged=measurement.converged,
            )
            for name, level in prediction.levels.items()
        }
        return cls(
            problem=problem,
            prediction=prediction,
            run=run,
            measurement=measurement,
            budget=error_budget(prediction, measurement),
            verdicts=verdicts,
            weights=weight_family(prediction, run, measurement.converged, margin),
            held_out=HeldOut.of(prediction, run, measurement, margin),
        )

    @property
    def status(self) -> str:
        """ok, inconclusive, or biased: only `ok` carries verdicts."""
        if self.measurement.biased:
            return "biased"
        return self.measurement.diagnosis.status

    def to_dict(self) -> dict[str, Any]:
        """One JSON cell of `verify --json`: the prediction's, with measured, budget, verdicts."""
        m = self.measurement
        measured: dict[str, Any] = {}
        for name, one in m.quantities.items():
            measured[name] = {
                "mean": one.mean,
                "mcse": one.se,
                "ess": one.ess,
                "rhat": one.rhat,
                "raw_mean": one.raw_mean,
                "raw_mcse": one.raw_se,
                "reduction": one.reduction,
            }
        delta1, delta2 = m.delta1(self.prediction.prior), m.delta2
        measured["delta1"] = {"mean": delta1.value, "se": delta1.se}
        measured["delta2"] = {"mean": delta2.value, "se": delta2.se}
        found = prediction_cell(self.prediction) | {
            "status": self.status,
            "reasons": list(m.diagnosis.reasons),
            "measured": measured,
            "budget": self.budget.to_dict(),
            "verdicts": {name: vars(verdict) for name, verdict in self.verdicts.items()},
        }
        if self.held_out is not None:
            found["held_out"] = self.held_out.to_dict()
        if self.weights is not None:
            w = self.weights
            found["weights_measured"] = {
                "slope": w.fit.slope,
                "slope_se": w.fit.slope_se,
                "intercept": w.fit.intercept,
                "intercept_se": w.fit.intercept_se,
                "r2": w.fit.r2,
                "components": w.fit.n,
                "differ": int(w.differ.sum()),
                "misfit": w.misfit,
                "misfit_se": w.misfit_se,
                "estimator": w.estimator,
                "reduction": w.reduction,
                "outcome": w.outcome,
            }
        return found


def weight_family(prediction: Prediction, run: Run, converged: bool, margin: float = MARGIN) -> Weights | None:
    """Test <w_h w_k> on the independent components in the run's basis; None with fewer than three chains or directions."""
    estimate = WeightEstimate.of(run)
    if estimate is None or run.chains < 3 or run.basis.shape[1] < 2:
        return None
    lambda0 = prediction.problem.lambda0
    identity = np.eye(run.basis.shape[1])
    predicted = upper(lambda0 * prediction.weight_correlations(run.basis) - identity)
    measured = upper(lambda0 * estimate.chains - identity)
    if np.ptp(predicted) == 0:
        return None
    line = fit(measured, predicted)
    largest = np.argsort(-abs(predicted))[: min(TOGETHER, run.chains // 2)]
    joint = _together(measured[:, largest], predicted[largest])
    off, off_se = misfit(measured, predicted)
    # Two tests, each at half the level: "differs" by either then keeps the false-alarm rate ALPHA.
    dof = run.chains - 1
    slope = equivalence(
        line.slope, line.slope_se, 1.0, prior=0.0, margin=margin, alpha=ALPHA / 2, dof=dof, converged=converged
    )
    if not converged or not math.isfinite(off_se):
        outcome = "inconclusive"
    elif slope.outcome == "differs" or off - student.isf(ALPHA / 4, dof) * off_se > margin:
        outcome = "differs"
    elif slope.outcome == "agrees" and off + student.isf(ALPHA / 2, dof) * off_se < margin:
        outcome = "agrees"
    else:
        outcome = "inconclusive"
    return Weights(
        fit=line,
        pairs=np.column_stack(np.triu_indices(len(identity))),
        estimator=estimate.estimator,
        reduction=estimate.reduction,
        joint=joint,
        differ=discoveries(p_values(measured, predicted)),
        misfit=off,
        misfit_se=off_se,
        slope=slope,
        outcome=outcome,
    )


def _together(chains: np.ndarray, predicted: np.ndarray) -> Hotelling | None:
    """Hotelling's test, or None where the chains are too few or too alike for a covariance."""
    try:
        return hotelling(chains, predicted) if len(predicted) else None
    except InputError:
        return None


def misfit(chains: np.ndarray, predicted: np.ndarray) -> tuple[float, float]:
    """sum (E measured - predicted)^2 / sum predicted^2 over components, noise removed, with a jackknife error over chains.

    chains (C, n), predicted (n,). The expectation of sum (mean - predicted)^2 exceeds what is sought by the variance of the mean,
    which the spread of the chains tells without bias; so the estimate may be slightly negative where all agree. The error is too
    wide by up to a half there, as a jackknife is for a square near 0.
    """

    def estimate(some: np.ndarray) -> float:
        noise = some.var(0, ddof=1).sum() / len(some)
        return float((((some.mean(0) - predicted) ** 2).sum() - noise) / (predicted**2).sum())

    count = len(chains)
    left_out = np.array([estimate(np.delete(chains, c, axis=0)) for c in range(count)])
    spread = math.sqrt((count - 1) / count * ((left_out - left_out.mean()) ** 2).sum())
    return estimate(chains), spread
