"""Controls of a measured curve <D^2>(T): the same job on random labels, at alpha -> 0, and on Gaussian data."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from data.errors import InputError
from data.labels import kind, relabel

if TYPE_CHECKING:
    from data.problem import Dataset, Problem
    from sampling.run import Run

RANDOM_LABELS, SMALL_ALPHA, GAUSSIAN = "random-labels", "small-alpha", "gaussian"
ALPHA = 0.05
WIDEST = 1000
ABOUT = {
    RANDOM_LABELS: "the same patterns, trained on labels that were permuted; distance between the true classes",
    SMALL_ALPHA: f"the width at which alpha = P/N1 is {ALPHA:g}; at most {int(ALPHA * WIDEST)} of the patterns",
    GAUSSIAN: "as many standard normal inputs of the same dimension, with labels that are independent of them",
}
BETWEEN_LABELS = "random-labels-between"


def names(text: str) -> list[str]:
    """`"random-labels,gaussian"` or `"all"` as names of controls, each once. Raises InputError for any other name."""
    asked = [one.strip() for one in text.split(",") if one.strip()]
    if asked == ["all"]:
        return list(ABOUT)
    unknown = [one for one in asked if one not in ABOUT]
    if unknown or not asked:
        told = repr(unknown[0]) if unknown else "an empty list"
        raise InputError(f"--controls {text}: {told} is no control; choose from {', '.join(ABOUT)}, or all")
    return list(dict.fromkeys(asked))


def problems(name: str, main: Sequence[Problem], seed: int) -> list[Problem]:
    """The problems of a control: the temperatures, precisions and activation of `main`, and its widths but for small-alpha.

    small-alpha  one width, N1 = P/0.05. What training does beyond infinite width is of order alpha, so there the first order in 1/N1 must
                 hold within half of the usual margin. Wider says nothing new and costs N1^2: a draw costs N1, and the prior's own
                 fluctuations of D^2 grow with N1 while the effect does not. To bound the cost N1 is at most 1000, so that at most 50 of the
                 patterns are kept, in the classes' proportion
    Raises InputError where the control says nothing: random labels of labels that are random or 0 already.
    """
    one, dataset = main[0], main[0].dataset
    widths, temperatures = dict.fromkeys(p.N1 for p in main), dict.fromkeys(p.T for p in main)
    if name == RANDOM_LABELS:
        if not dataset.y.any() or kind(dataset) == "random":
            raise InputError("the control random-labels permutes true labels: leave it out, or give --labels true")
        dataset = relabel(dataset, "random", seed)
    elif name == SMALL_ALPHA:
        dataset = _few(dataset, int(ALPHA * WIDEST))
        widths = dict.fromkeys([math.ceil(dataset.P / ALPHA)])
    elif name == GAUSSIAN:
        dataset = _gaussian(dataset, seed)
    else:
        raise InputError(f"{name!r} is no control; choose from {', '.join(ABOUT)}")
    return [dataclasses.replace(one, dataset=dataset, N1=width, T=T) for width in widths for T in temperatures]


def _few(dataset: Dataset, most: int) -> Dataset:
    """At most `most` of the patterns, the first ones of each class, in the classes' proportion; scaled as they are."""
    if most >= dataset.P:
        return dataset
    plus, minus = (np.flatnonzero(dataset.classes == sign) for sign in (1, -1))
    count = min(max(round(most * len(plus) / dataset.P), 1), most - 1)
    rows = np.sort(np.concatenate([plus[:count], minus[: most - count]]))
    about = {**dataset.provenance, "control": f"the first {count} and {most - count} patterns of the classes"}
    return dataset.replace(
        X=dataset.X[rows], y=dataset.y[rows], classes=dataset.classes[rows], name=dataset.name, provenance=about
    )


def _gaussian(dataset: Dataset, seed: int) -> Dataset:
    from data.registry import load

    even = bool((dataset.classes > 0).sum() * 2 == dataset.P)
    return load(f"gaussian:N0={dataset.N0}", P=dataset.P, seed=seed, balanced=even)


def between_labels(run: Run, problem: Problem) -> tuple[Run, Problem] | None:
    """The same chains seen between the two values of y instead of the classes: (Run, Problem with classes = y), or None.

    The posterior does not know the classes, so <D^2> between the labels was recorded by the same run; and a_y.E[f|W] with
    a_y = 2y/P follows, draw by draw, from two recorded scalars: given W the readout is Gaussian, so integration by parts over it gives
    lambda1 E|v|^2 + E[f.(f-y)]/T = N1 (physics.md 5.5), hence y.f = y.y - residual + T N1 (1 - Q).
    None where there is nothing new (y is the classes) or a_y is not along y (labels that are not P/2 of each sign).
    """
    data = problem.dataset
    if "d2_labels" not in run.series or set(np.unique(data.y)) != {-1.0, 1.0} or data.y.sum() != 0:
        return None
    about = {**data.provenance, "classes of D^2": "the labels"}
    seen = dataclasses.replace(problem, dataset=data.replace(classes=data.y, provenance=about))
    dropped = ("d2", "d2_labels", "d2_test", "loss_test", "fbar_a")
    series: dict[str, Any] = {name: value for name, value in run.series.items() if name not in dropped}
    along = data.P - series["residual"] + problem.T * problem.N1 * (1.0 - series["Q"])
    series = {"d2": run.series["d2_labels"], "fbar_a": 2.0 / data.P * along, **series}
    told = {**run.manifest["problem"], "fingerprint": seen.fingerprint}
    return dataclasses.replace(run, series=series, manifest={**run.manifest, "problem": told}), seen
