"""Held-out patterns, measured against predicted: generalisation error, the predictor by pattern, <D^2> between test classes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from compare.families import Fit, fit
from compare.verdict import MARGIN, Verdict, equivalence
from data.errors import InputError

if TYPE_CHECKING:
    from compare.measure import Measurement, Quantity
    from sampling.run import Run
    from theory import Prediction
    from theory.generalisation import Generalisation

LOSS, D2 = "loss_test", "d2_test"


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Test patterns of one posterior: theory, measurement, verdicts.

    theory    Generalisation
    measured  quantity ("loss_test", "d2_test") -> Quantity
    predicted quantity -> level -> (value, se);  prior  quantity -> its value before training, from which the effect is measured
    verdicts  (quantity, level) -> Verdict
    mean, mean_se  (P',) posterior mean of f by pattern, with the error that the spread of the chains gives;  variance (P',)
    bias_variance  "bias" mean (y - <f>)^2 (where there are test labels) and "variance" mean Var f over the patterns: (value, jackknife
              standard error over chains, NaN for one chain); together they are the loss
    predictor measured on predicted mean of f (Q averaged) over the patterns, or None with fewer than three chains or patterns
    """

    theory: Generalisation
    measured: dict[str, Quantity]
    predicted: dict[str, dict[str, tuple[float, float]]]
    prior: dict[str, float]
    verdicts: dict[tuple[str, str], Verdict]
    mean: np.ndarray
    mean_se: np.ndarray
    variance: np.ndarray
    predictor: Fit | None
    bias_variance: dict[str, tuple[float, float]]

    @classmethod
    def of(cls, prediction: Prediction, run: Run, measurement: Measurement, margin: float = MARGIN) -> HeldOut | None:
        """None where the data set has no test patterns, or the run did not measure them.

        Raises InputError where it measured other test patterns than the prediction's.
        """
        from sampling.held_out import digest
        from theory.generalisation import generalisation

        wanted = digest(prediction.problem.dataset)
        found = run.manifest.get("held_out")
        if wanted is None or found is None or "predictor" not in run.sums:
            return None
        if found != wanted:
            raise InputError("the run measured other test patterns than the data set has: sample again")
        theory = generalisation(prediction)
        predicted: dict[str, dict[str, tuple[float, float]]] = {}
        prior = {}
        if theory.y is not None:
            predicted[LOSS] = {name: (value, 0.0) for name, value in theory.losses.items()}
            prior[LOSS] = theory.prior_loss
        if theory.d2:
            predicted[D2] = {name: (level.value, level.se) for name, level in theory.d2.items()}
            prior[D2] = theory.d2["infinite_width"].value
        measured = {name: measurement.quantities[name] for name in predicted if name in measurement.quantities}
        verdicts = {
            (name, level): equivalence(
                one.mean,
                one.se,
                value,
                se,
                prior=prior[name],
                margin=margin,
                dof=one.dof,
                converged=measurement.converged,
            )
            for name, one in measured.items()
            for level, (value, se) in predicted[name].items()
        }
        chains = run.sums["predictor"]
        mean = chains.mean(0)
        spread = chains.std(0, ddof=1) / math.sqrt(len(chains)) if len(chains) > 1 else np.full_like(mean, math.nan)
        expected = theory.predictors["q_averaged"].mean
        usable = len(chains) >= 3 and len(mean) >= 3 and np.ptp(expected) > 0
        return cls(
            theory=theory,
            measured=measured,
            predicted=predicted,
            prior=prior,
            verdicts=verdicts,
            mean=mean,
            mean_se=spread,
            variance=np.maximum(run.sums["predictor_sq"].mean(0) - mean**2, 0.0),
            predictor=fit(chains, expected) if usable else None,
            bias_variance=_bias_variance(theory.y, chains, run.sums["predictor_sq"]),
        )

    def to_dict(self) -> dict[str, Any]:
        """The object "held_out" of a cell of `verify --json`: the theory's, with measured and verdicts."""
        found = self.theory.to_dict()
        found["measured"] = {
            name: {"mean": one.mean, "mcse": one.se, "ess": one.ess, "rhat": one.rhat}
            for name, one in self.measured.items()
        }
        found["verdicts"] = {
            name: {level: vars(verdict) for (quantity, level), verdict in self.verdicts.items() if quantity == name}
            for name in self.measured
        }
        found["measured"] |= {name: {"value": value, "se": se} for name, (value, se) in self.bias_variance.items()}
        if self.predictor is not None:
            line = self.predictor
            found["predictor"] = {"slope": line.slope, "slope_se": line.slope_se, "r2": line.r2, "patterns": line.n}
        return found


def _bias_variance(y: np.ndarray | None, mean: np.ndarray, square: np.ndarray) -> dict[str, tuple[float, float]]:
    """From E[f | W] and E[f^2 | W] (C, P') averaged over each chain: name -> (value, jackknife error over chains)."""

    def parts(m: np.ndarray, s: np.ndarray) -> dict[str, float]:
        variance = float((s - m**2).mean())
        return {"variance": variance} if y is None else {"bias": float(((y - m) ** 2).mean()), "variance": variance}

    count = len(mean)
    whole = parts(mean.mean(0), square.mean(0))
    if count < 2:
        return {name: (value, math.nan) for name, value in whole.items()}
    left = [
        parts((mean.sum(0) - one) / (count - 1), (square.sum(0) - two) / (count - 1))
        for one, two in zip(mean, square, strict=True)
    ]
    spread = {name: np.array([one[name] for one in left]) for name in whole}
    return {name: (value, math.sqrt((count - 1) * float(spread[name].var()))) for name, value in whole.items()}
