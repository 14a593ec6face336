"""What is measured on held-out patterns: <D^2> between their classes, square loss, mean and variance of the output (torch)."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from data.problem import Dataset, contrast

if TYPE_CHECKING:
    from sampling.model import Gram, Model


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The test patterns of a data set, in the model's reduced coordinates.

    R  (P', r) with h_test = R g;  y (P',) test labels, or None;  a (P',) contrast of the test classes, or None
    """

    R: Tensor
    y: Tensor | None
    a: Tensor | None

    @classmethod
    def of(cls, model: Model) -> HeldOut | None:
        """None where the data set has no test patterns."""
        dataset, R = model.problem.dataset, model.reduction.R_test
        if R is None:
            return None
        place: dict[str, Any] = {"device": model.device, "dtype": model.dtype}
        y, classes = dataset.y_test, dataset.classes_test
        return cls(
            R=torch.tensor(R, **place),
            y=None if y is None else torch.tensor(y, **place),
            a=None if classes is None else torch.tensor(contrast(classes), **place),
        )

    def features(self, model: Model, g: Tensor) -> Tensor:
        """sigma(h_test) (C, N1, P')."""
        return model.sigma.sigma(torch.matmul(g, self.R.mT))

    def collapsed(self, model: Model, g: Tensor, s: Tensor, gram: Gram) -> dict[str, Tensor]:
        """Scalars (C,) float64, averaged exactly over the readout given the first layer, whose training features are s.

        d2_test    sum_i (a_test . s_i)^2
        loss_test  mean over test patterns of E[(y - f)^2 | W] = (y - E[f|W])^2 + Var[f|W]; the noise of the labels is not in it
        """
        test = self.features(model, g)
        found = self._distance(test)
        if self.y is not None:
            mean, variance = predictor(model, s, test, gram)
            found["loss_test"] = ((self.y.double() - mean) ** 2 + variance).mean(-1)
        return found

    def joint(self, model: Model, g: Tensor, x: Tensor) -> dict[str, Tensor]:
        """The same names from this draw's own readout x = sqrt(lambda1) v (C, N1)."""
        test = self.features(model, g)
        found = self._distance(test)
        if self.y is not None:
            f = torch.matmul(x.unsqueeze(-2), test).squeeze(-2).double() / math.sqrt(model.scale)
            found["loss_test"] = ((self.y.double() - f) ** 2).mean(-1)
        return found

    def sums(self, model: Model, g: Tensor) -> dict[str, Tensor]:
        """What one draw adds to the sums: predictor (C, P') = E[f | W] and predictor_sq (C, P') = E[f^2 | W], float64."""
        from sampling.model import factor

        _, s = model.features(g)
        mean, variance = predictor(model, s, self.features(model, g), factor(model, s))
        return {"predictor": mean, "predictor_sq": mean**2 + variance}

    def _distance(self, test: Tensor) -> dict[str, Tensor]:
        if self.a is None:
            return {}
        return {"d2_test": (torch.matmul(test, self.a).double() ** 2).sum(-1)}


def predictor(model: Model, s: Tensor, test: Tensor, gram: Gram) -> tuple[Tensor, Tensor]:
    """E[f | W] and Var[f | W] (C, P') float64 at features `test` (C, N1, P'), readout integrated out (physics.md section 6).

    With k = test^T s/scale (P', P) and A of the training features s: mean = k A^{-1} y, variance = |test|^2/scale - k A^{-1} k^T, which
    in the N1 x N1 form is T test^T M^{-1} test, a sum of squares.
    """
    pull = torch.matmul(s, gram.b.unsqueeze(-1))  # (C, N1, 1)
    mean = torch.matmul(test.mT, pull).squeeze(-1).double() / model.scale
    if model.wide:
        k = torch.matmul(s.mT, test).div_(model.scale)  # (C, P, P')
        solved = torch.linalg.solve_triangular(gram.L, k, upper=False)
        variance = (test.double() ** 2).sum(-2) / model.scale - (solved.double() ** 2).sum(-2)
    else:
        solved = torch.linalg.solve_triangular(gram.L, test, upper=False)
        variance = model.T * (solved.double() ** 2).sum(-2)
    return mean, variance.clamp_min(0.0)


def digest(dataset: Dataset) -> str | None:
    """sha256 over the test arrays, which a data set's fingerprint leaves out; None where it has none."""
    if dataset.X_test is None:
        return None
    found = hashlib.sha256()
    for array in (dataset.X_test, dataset.y_test, dataset.classes_test):
        found.update(b"none" if array is None else str(array.shape).encode())
        if array is not None:
            found.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
    return found.hexdigest()
