"""predict: every number of the theory for one Problem or a grid of them, from one eigendecomposition."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from data.errors import InputError
from data.problem import Dataset, Problem
from theory import distance
from theory.action import SaddlePoint, solve_grid
from theory.distance import Terms
from theory.order_parameter import OrderParameter
from theory.spectrum import Spectrum
from theory.weights import WeightTheory

if TYPE_CHECKING:
    from theory.first_order import FirstOrder, Settings
    from theory.generalisation import Generalisation


@dataclass(frozen=True)
class Level:
    """One prediction of <D^2>: value, and the standard error of its own Monte Carlo (0 where it is a closed form)."""

    value: float
    se: float = 0.0


@dataclass(frozen=True)
class QAverages:
    """Averages over p(Q|y): Q itself and the terms of <D^2>. level3 = prior - <Delta1> + <Delta2>."""

    mean: float
    sd: float
    delta1: float
    delta2: float
    level3: float
    fbar_a: float
    log_evidence: float


@dataclass(frozen=True, eq=False)
class Prediction:
    """What the theory says of one Problem (physics.md sections 2 to 4).

    saddle  certified Qbar;  terms at Qbar;  first_order level 4 or None. Everything else is computed when first asked for:
    order p(Q|y);  q averages over it;  weights traces and norms of Lambda1, Lambda2
    """

    problem: Problem
    spectrum: Spectrum
    weight_theory: WeightTheory = field(repr=False)
    saddle: SaddlePoint
    terms: Terms
    first_order: FirstOrder | None = None

    @property
    def Qbar(self) -> float:
        return self.saddle.value

    @property
    def prior(self) -> float:
        return self.terms.prior

    @property
    def delta1(self) -> float:
        return float(self.terms.delta1)

    @property
    def delta2(self) -> float:
        return float(self.terms.delta2)

    @property
    def fbar_a(self) -> float:
        return float(self.terms.fbar_a)

    @property
    def y_K_y_over_P(self) -> float:
        """y^T K y/P: the quantity whose O(1) scaling the paper assumes when it drops Delta1."""
        return float((self.spectrum.values * self.spectrum.y**2).sum() / self.problem.P)

    @cached_property
    def order(self) -> OrderParameter:
        """p(Q|y)."""
        return OrderParameter.of(self.spectrum, self.saddle)

    @cached_property
    def q(self) -> QAverages:
        """Averages over p(Q|y), exact for linear sigma at every N1, P, T."""
        p, order = self.problem, self.order
        terms = distance.terms(self.spectrum, order.Q, p.N1, p.T, p.lambda1)
        delta1, delta2 = order.mean(terms.delta1), order.mean(terms.delta2)
        return QAverages(
            mean=order.Q_mean,
            sd=order.Q_sd,
            delta1=delta1,
            delta2=delta2,
            level3=terms.prior - delta1 + delta2,
            fbar_a=order.mean(terms.fbar_a),
            log_evidence=order.log_evidence,
        )

    @property
    def levels(self) -> dict[str, Level]:
        """The ladder for <D^2>: infinite_width, eq4, eq3, eq3_q_averaged, and first_order where it was computed."""
        found = self._ladder(self.terms, self.q.level3)
        if self.first_order is not None:
            found["first_order"] = Level(self.first_order.value, self.first_order.se)
        return found

    def held_out(self, X: np.ndarray | None = None, classes: np.ndarray | None = None) -> dict[str, Level]:
        """Levels 0 to 3 for <D^2> between held-out manifolds, by default the test patterns of the data set.

        Raises InputError when there are none, or when their classes are not both +1 and -1.
        """
        p, data = self.problem, self.problem.dataset
        X, classes = (data.X_test, data.classes_test) if X is None else (X, classes)
        if X is None:
            raise InputError("the data set has no test patterns: load it with P_test, or give X and classes")
        Q = np.append(self.order.Q, self.Qbar)
        both = distance.terms(self.spectrum, Q, p.N1, p.T, p.lambda1, X=X, classes=classes)
        averaged = both.prior + self.order.mean((both.delta2 - both.delta1)[:-1])
        return self._ladder(Terms(both.prior, both.delta1[-1], both.delta2[-1], both.fbar_a[-1]), averaged)

    @cached_property
    def generalisation(self) -> Generalisation | None:
        """The test patterns of the data set, or None where it has none."""
        from theory.generalisation import generalisation

        return None if self.problem.dataset.X_test is None else generalisation(self)

    @staticmethod
    def _ladder(terms: Terms, averaged: float) -> dict[str, Level]:
        return {
            "infinite_width": Level(terms.prior),
            "eq4": Level(float(terms.eq4)),
            "eq3": Level(float(terms.eq3)),
            "eq3_q_averaged": Level(averaged),
        }

    @cached_property
    def weights(self) -> dict[str, float]:
        """Traces and Frobenius norms of Lambda1 and Lambda2 at Qbar."""
        p = self.problem
        return self.weight_theory.summary(self.Qbar, p.N1, p.T, p.lambda1)

    def weight_correlations(self, basis: np.ndarray | None = None, *, averaged: bool = False) -> np.ndarray:
        """<w w^T> in a basis (N0, k), or in input coordinates: delta/lambda0 + (Lambda1 + Lambda2)/lambda0, at Qbar.

        With `averaged` over p(Q|y) (exact for linear sigma).
        """
        p, make = self.problem, self.weight_theory
        if averaged:
            return make.averaged(self.order, p.N1, p.T, p.lambda1, basis).ww
        return make.at(self.Qbar, p.N1, p.T, p.lambda1, basis).ww

    def to_dict(self) -> dict[str, Any]:
        """One JSON cell of `saddlecheck predict --json`; the provenance of the data is left to the whole."""
        p = self.problem
        levels: dict[str, Any] = {name: level.value for name, level in self.levels.items()}
        if self.first_order is not None:
            levels["first_order"] = {"value": self.first_order.value, "se": self.first_order.se}
        return {
            "problem": {key: value for key, value in p.describe().items() if key != "provenance"},
            "T": p.T,
            "N1": p.N1,
            "alpha": p.alpha,
            "lambda0": p.lambda0,
            "lambda1": p.lambda1,
            "Qbar": self.Qbar,
            "prior": self.prior,
            "delta1": self.delta1,
            "delta2": self.delta2,
            "fbar_a": self.fbar_a,
            "yKy_over_P": self.y_K_y_over_P,
            "levels": levels,
            "saddle": {
                "residual": self.saddle.residual,
                "bracket": list(self.saddle.bracket),
                "status": self.saddle.status,
                "certified": self.saddle.certified,
                "stationary_points": len(self.saddle.stationary),
            },
            "q_averaged": {
                "Q_mean": self.q.mean,
                "Q_sd": self.q.sd,
                "delta1": self.q.delta1,
                "delta2": self.q.delta2,
                "level3": self.q.level3,
                "fbar_a": self.q.fbar_a,
                "log_evidence": self.q.log_evidence,
            },
            "weights": dict(self.weights),
        } | ({} if self.generalisation is None else {"held_out": self.generalisation.to_dict()})


def predict(problem: Problem, first_order: Settings | None = None, spectrum: Spectrum | None = None) -> Prediction:
    """The prediction for one Problem; level 4 too when `first_order` settings are given (Monte Carlo over one neuron).

    `spectrum`, where at hand, must be that of the problem's data, activation and lambda0.
    """
    dataset = problem.dataset
    return predict_grid(
        dataset,
        N1=[problem.N1],
        T=[problem.T],
        lambda1=[problem.lambda1],
        lambda0=problem.lambda0,
        activation=problem.activation,
        first_order=first_order,
        spectrum=spectrum,
    )[0]


def predict_grid(
    dataset: Dataset,
    *,
    N1: Iterable[int],
    T: Iterable[float],
    lambda1: Iterable[float] = (1.0,),
    lambda0: float = 1.0,
    activation: str = "erf",
    first_order: Settings | None = None,
    spectrum: Spectrum | None = None,
) -> list[Prediction]:
    """Predictions over the product N1 x T x lambda1, in that order, from one eigendecomposition of K.

    Raises InputError for an empty grid, a cell without a saddle point, a singular K at T = 0, or an activation that is not covered.
    """
    if spectrum is None:
        spectrum = Spectrum.of(dataset, activation, lambda0)
    _check_same(spectrum, dataset, activation, lambda0)
    weights = WeightTheory(spectrum)
    problems = [
        Problem(dataset, width, temperature, lambda0, precision, activation)
        for width, temperature, precision in itertools.product(N1, T, lambda1)
    ]
    if not problems:
        raise InputError("the grid is empty: give at least one N1, one T and one lambda1")
    saddles = solve_grid(spectrum, [(p.N1, p.T, p.lambda1) for p in problems])
    fourth: Mapping[int, FirstOrder] = {}
    if first_order is not None:
        from theory.first_order import first_order as compute  # level 4 is Monte Carlo: loaded only when asked for

        fourth = dict(enumerate(compute(spectrum, saddles, first_order)))
    return [
        Prediction(
            problem=p,
            spectrum=spectrum,
            weight_theory=weights,
            saddle=saddle,
            terms=distance.terms(spectrum, saddle.value, p.N1, p.T, p.lambda1),
            first_order=fourth.get(index),
        )
        for index, (p, saddle) in enumerate(zip(problems, saddles, strict=True))
    ]


def _check_same(spectrum: Spectrum, dataset: Dataset, activation: str, lambda0: float) -> None:
    same = spectrum.dataset is dataset or spectrum.dataset.fingerprint == dataset.fingerprint
    if not same or spectrum.activation.name != activation or spectrum.lambda0 != lambda0:
        raise InputError(
            "the spectrum was made for other data, activation or lambda0 than the problem's: make it with "
            f"Spectrum.of(dataset, {activation!r}, {lambda0:g}), or relabel it"
        )
