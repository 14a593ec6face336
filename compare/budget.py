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
    Without level 4 the closure is None and stays inside the remainder.
    """

    parts: dict[str, Part]
    total: Part
    effect: Part
    covariance: np.ndarray

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
        }


def error_budget(prediction: Prediction, measurement: Measurement) -> Budget:
    """The budget of one cell. Parts add up to measured - Eq. (4) to rounding."""
    levels = prediction.levels
    eq4, eq3 = levels["eq4"].value, levels["eq3"].value
    averaged = levels["eq3_q_averaged"].value if "eq3_q_averaged" in levels else eq3
    fourth = levels.get("first_order")
    measured, se = measurement.d2.mean, measurement.d2.se
    closure = Part(fourth.value - eq3, fourth.se) if fourth is not None else Part(math.nan, math.nan)
    known = -prediction.delta1 + (averaged - eq3) + (0.0 if fourth is None else closure.value)
    closure_se = 0.0 if fourth is None else closure.se
    parts = {
        "delta1_dropped": Part(-prediction.delta1, 0.0),
        "q_fluctuations": Part(averaged - eq3, 0.0),
        "gaussian_closure": closure,
        "remainder": Part(measured - eq4 - known, math.hypot(se, closure_se)),
    }
    covariance = np.zeros((4, 4))
    covariance[2, 2] = closure_se**2
    covariance[3, 3] = se**2 + closure_se**2
    covariance[2, 3] = covariance[3, 2] = -(closure_se**2)
    return Budget(
        parts=parts,
        total=Part(measured - eq4, se),
        effect=Part(measured - prediction.prior, se),
        covariance=covariance,
    )
