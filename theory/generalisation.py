"""What the theory says of held-out patterns: mean and variance of f, the generalisation error, and <D^2> between their classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from data.errors import InputError
from theory import kernels, predictor
from theory.predictor import Predictor

if TYPE_CHECKING:
    from theory.predict import Level, Prediction

LEVELS = ("infinite_width", "saddle_point", "q_averaged")


@dataclass(frozen=True, eq=False)
class Generalisation:
    """Test patterns of one Problem at three levels (physics.md section 2).

    predictors  infinite_width: Gaussian process at Q = 1;  saddle_point: at Qbar;  q_averaged: over p(Q|y), the spread of the mean
                with Q in the variance; exact for linear sigma at every N1, P, T
    prior       Predictor of the prior: mean 0, variance K00/lambda1
    y           (P',) test labels, or None
    d2          name -> Level of <D^2> between the test classes, levels 0 to 3; empty where the test patterns have no classes
    """

    predictors: dict[str, Predictor]
    prior: Predictor
    y: np.ndarray | None
    d2: dict[str, Level]

    @property
    def losses(self) -> dict[str, float]:
        """Level -> posterior average of (y - f)^2, mean over test patterns; empty where they have no labels."""
        return {} if self.y is None else {name: one.loss(self.y) for name, one in self.predictors.items()}

    @property
    def prior_loss(self) -> float:
        """The same under the prior: what the effect of training on the loss is measured from. NaN without labels."""
        return float("nan") if self.y is None else self.prior.loss(self.y)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able: loss, its bias and variance parts, and <D^2>, by level."""
        found: dict[str, Any] = {"P_test": len(self.prior.mean)}
        if self.y is not None:
            found["loss"] = {"prior": self.prior_loss} | {
                name: {
                    "value": one.loss(self.y),
                    "bias": float(np.mean((self.y - one.mean) ** 2)),
                    "variance": float(np.mean(one.variance)),
                }
                for name, one in self.predictors.items()
            }
        if self.d2:
            found["d2"] = {name: level.value for name, level in self.d2.items()}
        return found


def generalisation(prediction: Prediction) -> Generalisation:
    """On the test patterns of the prediction's data set. Raises InputError where it has none."""
    p, data, spectrum = prediction.problem, prediction.problem.dataset, prediction.spectrum
    X = data.X_test
    if X is None:
        raise InputError("the data set has no test patterns: load it with P_test")

    def at(Q: float) -> Predictor:
        return Predictor(*(make(spectrum, Q, p.T, p.lambda1, X) for make in (predictor.mean, predictor.variance)))

    own = spectrum.activation.diagonal(kernels.variance(X, spectrum.lambda0)) / p.lambda1
    averaged = predictor.averaged(spectrum, prediction.order, p.T, p.lambda1, X)
    return Generalisation(
        predictors={"infinite_width": at(1.0), "saddle_point": at(prediction.Qbar), "q_averaged": averaged},
        prior=Predictor(np.zeros(len(X)), own),
        y=data.y_test,
        d2={} if data.classes_test is None else prediction.held_out(),
    )
