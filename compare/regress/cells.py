"""The fixed cells of `saddlecheck regress`: small, and chosen so that every formula and every branch of the sampler has a part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from data.problem import Dataset


@dataclass(frozen=True)
class Recipe:
    """One cell: how its data are loaded (arguments of data.registry.load), and its network.

    lambda0 and lambda1 differ in every cell, so that one taken for the other shows everywhere.
    """

    name: str
    data: str
    N1: int
    T: float
    lambda0: float
    lambda1: float
    activation: str


# Data sets by the key that cells name them with. The baseline stores the arrays, so a cell's posterior is the same for ever.
DATA: dict[str, dict[str, Any]] = {
    "digits": {"name": "digits", "classes": "even/odd", "P": 20, "seed": 5},
    "digits, random labels": {"name": "digits", "P": 16, "seed": 6, "labels": "random", "label_seed": 2},
    "gaussian": {"name": "gaussian:N0=12", "P": 16, "seed": 1},
    "gaussian, y = 0": {"name": "gaussian:N0=14", "P": 12, "seed": 2, "labels": "zero"},
    "clusters": {"name": "clusters:N0=10", "P": 12, "seed": 3, "P_test": 6},
    "teacher": {"name": "network-teacher:N0=8,N1=15,T=0.1", "P": 30, "seed": 4},
    "eight patterns": {"name": "gaussian:N0=3", "P": 8, "seed": 7},
}

CELLS: tuple[Recipe, ...] = (
    Recipe("digits, N1 > P", "digits", 40, 0.1, 0.7, 1.4, "erf"),
    Recipe("digits, N1 = P", "digits", 20, 1.0, 1.5, 0.6, "erf"),
    Recipe("digits, N1 < P", "digits", 8, 0.3, 0.8, 1.6, "tanh"),
    Recipe("digits, random labels", "digits, random labels", 12, 0.3, 1.3, 0.8, "erf"),
    Recipe("gaussian linear, N1 < P", "gaussian", 8, 0.3, 0.6, 1.4, "linear"),
    Recipe("gaussian linear, N1 = P", "gaussian", 16, 2.0, 1.6, 0.7, "linear"),
    Recipe("gaussian linear, N1 > P", "gaussian", 32, 0.05, 0.8, 1.3, "linear"),
    Recipe("gaussian, y = 0", "gaussian, y = 0", 10, 0.2, 0.6, 1.5, "erf"),
    Recipe("clusters tanh", "clusters", 12, 0.2, 1.4, 0.7, "tanh"),
    Recipe("clusters sin", "clusters", 24, 0.5, 0.8, 1.2, "sin"),
    Recipe("teacher", "teacher", 15, 0.1, 0.8, 1.3, "erf"),
    Recipe("eight patterns", "eight patterns", 4, 0.5, 0.7, 1.4, "erf"),
)


def load(key: str) -> Dataset:
    """The data set of that key, made anew by the data package."""
    from data.registry import load as registry

    return registry(**DATA[key])
