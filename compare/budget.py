"""The error budget of Eq. (4): measured - Eq. (4) in four parts that add up, each with its error and all covariances."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from compare.measure import Measurement
    from theory.predict import Prediction

PARTS = ("delta1_dropped", "q_fluctuations", "gaussian_closure", "remainder")


@dataclass(frozen=True)
class Part:
    """One part of the budget: its contribution to measured - Eq. (4), and its standard error (0 where it is a closed form)."""

    value: float
    se: float


@dataclass(frozen=True, eq=False)
class Budget:
    """measured - Eq. (4) = -Delta1 + (L3 - L2) + (L4 - L2) + remainder (physics.md section 3).

    delta1_dropped    -Delta1 at Qbar: what Eq. (4) leaves out of Eq. (3); exact
    q_fluctuations    Eq. (3) averaged over p(Q|y) minus Eq. (3) at Qbar; exact
    gaussian_closure  level 4 minus Eq. (3): what treating the features as Gaussian costs; the error of level 4's Monte Carlo
    remainder         measured minus all of these: higher orders in 1/N1, or another phase
    total             measured - Eq. (4)
    covariance  (4, 4) of the parts in that order. Level 4's error stands in closure and remainder with opposite signs, so they are
                anticorrelated and the total carries the measurement's error alone
    effect      measured - prior: what shares are relative to
    shift       what finite width alone adds to the measured Delta1 and Delta2, see `finite_width_shift`
    A level that was not computed leaves its part NaN, and what it would explain stays inside the remainder.
    """

    parts: dict[str, Part]
    total: Part
    effect: Part
    covariance: np.ndarray
    shift: float = math.nan

    def share(self, name: str) -> tuple[float, float]:
        """A part (or "total") relative to the effect, with its standard error by the delta method; NaN where the effect is 0."""
        part = self.total if name == "total" else self.parts[name]
        if self.effect.value == 0 or math.isnan(part.value):
            return math.nan, math.nan
        ratio = part.value / self.effect.value
        # remainder and total move one to one with the measured value, as the effect does; the other parts do not move with it
        moves = 1.0 if name in ("remainder", "total") else 0.0
        own = math.sqrt(max(part.se**2 - moves * self.effect.se**2, 0.0))
        return ratio, math.hypot((moves - ratio) * self.effect.se, own) / abs(self.effect.value)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able: parts, total, effect, covariance."""
        listed = {name: {"value": one.value, "se": one.se} for name, one in self.parts.items()}
        return listed | {
            "total": {"value": self.total.value, "se": self.total.se},
            "effect": {"value": self.effect.value, "se": self.effect.se},
            "covariance": self.covariance.tolist(),
            "finite_width_shift": self.shift,
        }


def finite_width_shift(prediction: Prediction) -> float:
    """How far the measured Delta1 and Delta2 both lie from the averaged terms because a ratio of averages is no average of the ratio.

    The measurement forms Delta2_m = lambda1 <a.f>^2/<Q> and Delta1_m = prior + Delta2_m - <D^2>. Were p(Q|y) exact, as it is for
    linear sigma, these would be <Delta2>_Q + shift and <Delta1>_Q + shift with shift = lambda1 <fbar_a>_Q^2/<Q>_Q - <Delta2>_Q
    (physics.md section 6).
    """
    q = prediction.q
    return prediction.problem.lambda1 * q.fbar_a**2 / q.mean - q.delta2


def error_budget(prediction: Prediction, measurement: Measurement) -> Budget:
    """The budget of one cell. Parts add up to measured - Eq. (4) to rounding."""
    levels = prediction.levels
    eq4, eq3 = levels["eq4"].value, levels["eq3"].value
    averaged, fourth = levels.get("eq3_q_averaged"), levels.get("first_order")
    measured, se = measurement.d2.mean, measurement.d2.se
    missing = Part(math.nan, math.nan)
    fluctuations = missing if averaged is None else Part(averaged.value - eq3, averaged.se)
    closure = missing if fourth is None else Part(fourth.value - eq3, fourth.se)
    parts = {
        "delta1_dropped": Part(-prediction.delta1, 0.0),
        "q_fluctuations": fluctuations,
        "gaussian_closure": closure,
    }
    known = sum(part.value for part in parts.values() if not math.isnan(part.value))
    errors = np.array([0.0 if math.isnan(part.se) else part.se for part in parts.values()])
    parts["remainder"] = Part(measured - eq4 - known, math.hypot(se, *errors))
    # An error of a theory level moves its part and the remainder by opposite amounts.
    covariance = np.diag([*errors**2, se**2 + float((errors**2).sum())])
    covariance[3, :3] = covariance[:3, 3] = -(errors**2)
    return Budget(
        parts=parts,
        total=Part(measured - eq4, se),
        effect=Part(measured - prediction.prior, se),
        covariance=covariance,
        shift=finite_width_shift(prediction),
    )
