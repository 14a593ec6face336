"""Dataset and Problem: what is studied, validated once, shared by theory, sampling and compare (numpy only)."""

from __future__ import annotations

import dataclasses
import hashlib
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from data.errors import InputError
from data.teacher import Teacher, digest

ACTIVATIONS = ("erf", "linear", "tanh", "sin")


def _real(name: str, value: Any) -> np.ndarray:
    """A new float64 array of `value`; raises InputError for text, objects, complex numbers or ragged lists."""
    try:
        array = np.asarray(value)
    except ValueError:
        raise InputError(f"{name} is not a rectangular array of numbers") from None
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} must hold real numbers; its type is {array.dtype}")
    return np.array(array, dtype=np.float64, order="C")


def _matrix(name: str, value: Any) -> np.ndarray:
    array = _real(name, value)
    if array.ndim != 2 or array.size == 0:
        raise InputError(f"{name} must be a non-empty 2-D array (patterns, inputs); it has shape {array.shape}")
    if not np.isfinite(array).all():
        row, column = np.argwhere(~np.isfinite(array))[0]
        raise InputError(f"{name}[{row}, {column}] is {array[row, column]}: every input must be a finite number")
    return array


def _vector(name: str, value: Any, length: int, *, signs: bool) -> np.ndarray:
    array = _real(name, value)
    if array.shape != (length,):
        rows = "X_test" if name.endswith("_test") else "X"
        raise InputError(f"{name} must have one entry per row of {rows}, shape ({length},); it has shape {array.shape}")
    if not np.isfinite(array).all():
        where = int(np.argwhere(~np.isfinite(array))[0, 0])
        raise InputError(f"{name}[{where}] is {array[where]}: every label must be a finite number")
    if signs:
        found = np.unique(array)
        if not np.isin(found, (-1.0, 1.0)).all():
            raise InputError(f"{name} must hold only +1 and -1; it holds {found[:5].tolist()}")
        if len(found) != 2:
            raise InputError(f"{name} holds only the class {found[0]:+.0f}: <D^2> needs patterns of both classes")
    return array


@dataclass(frozen=True, eq=False)
class Dataset:
    """Patterns with their training labels and, separately, the class partition that <D^2> is measured on.

    X        (P, N0) float64, one row a pattern, already standardised
    y        (P,) training labels; +1/-1 for classification, any finite number for a teacher, all 0 for the Delta1 run
    classes  (P,) +1/-1, the partition that `a` of D^2 is built from (physics.md section 1); not the labels trained on
             when those are random
    X_test, y_test, classes_test   held-out patterns, or None
    provenance   JSON-able facts: source, checksum, indices, standardisation, seeds
    teacher      the network that made y, or None; its weights are an exact posterior draw (physics.md section 5.4)

    Raises InputError, naming the array and the entry, for a wrong shape, NaN, classes that are not both +1 and -1, or a
    teacher of other data.
    """

    X: np.ndarray
    y: np.ndarray
    classes: np.ndarray
    name: str = "custom"
    provenance: dict[str, Any] = field(default_factory=dict)
    X_test: np.ndarray | None = None
    y_test: np.ndarray | None = None
    classes_test: np.ndarray | None = None
    teacher: Teacher | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "X", _matrix("X", self.X))
        put(self, "y", _vector("y", self.y, self.P, signs=False))
        put(self, "classes", _vector("classes", self.classes, self.P, signs=True))
        if self.X_test is not None:
            put(self, "X_test", _matrix("X_test", self.X_test))
            if self.X_test.shape[1] != self.N0:
                raise InputError(f"X_test has {self.X_test.shape[1]} inputs a pattern, X has {self.N0}")
            for name, signs in (("y_test", False), ("classes_test", True)):
                if getattr(self, name) is not None:
                    put(self, name, _vector(name, getattr(self, name), len(self.X_test), signs=signs))
        elif self.y_test is not None or self.classes_test is not None:
            raise InputError("y_test and classes_test need X_test beside them")
        if self.teacher is not None and self.teacher.data != digest(self.X, self.y):
            raise InputError("teacher did not make this X and y: give teacher=None")
        for array in (self.X, self.y, self.classes, self.X_test, self.y_test, self.classes_test):
            if array is not None:
                array.setflags(write=False)

    @property
    def P(self) -> int:
        """Number of training patterns."""
        return self.X.shape[0]

    @property
    def N0(self) -> int:
        """Number of inputs of a pattern."""
        return self.X.shape[1]

    @property
    def a(self) -> np.ndarray:
        """(P,) contrast of the class means: +1/P+ on class +, -1/P- on class - (physics.md section 1)."""
        return contrast(self.classes)

    @property
    def fingerprint(self) -> str:
        """sha256 over X, y and classes, as hexadecimal; equal data sets have equal fingerprints."""
        digest = hashlib.sha256()
        for array in (self.X, self.y, self.classes):
            digest.update(str(array.shape).encode())
            digest.update(np.ascontiguousarray(array, dtype="<f8").tobytes())
        return digest.hexdigest()

    def replace(self, **changes: Any) -> Dataset:
        """A copy with some fields changed, validated again; the teacher goes with the X and y it made."""
        if "X" in changes or "y" in changes:
            changes.setdefault("teacher", None)
        return dataclasses.replace(self, **changes)


def contrast(classes: np.ndarray) -> np.ndarray:
    """(P,) a_mu = +1/P+ where classes is +1 and -1/P- where it is -1, so a.s is the difference of the class means."""
    plus = classes > 0
    return np.where(plus, 1.0 / plus.sum(), -1.0 / (~plus).sum())


def check_for_zero_temperature(dataset: Dataset, activation: str = "erf") -> None:
    """Raises InputError, naming the rows, where patterns alone make K singular, so that T = 0 has no meaning.

    With an odd activation that is so for two equal rows, two opposite rows (their features are equal but for the sign), a
    row of zeros, and, with a linear network, for more patterns than inputs. A kernel that is singular to rounding only is
    left to the theory, which has its eigenvalues.
    """
    seen: dict[bytes, tuple[int, float]] = {}
    for mu, row in enumerate(dataset.X):
        nonzero = row[row != 0]
        if nonzero.size == 0:
            raise InputError(f"T = 0 needs an invertible kernel, but row {mu} of X is all 0: remove it, or take T > 0")
        sign = 1.0 if nonzero[0] > 0 else -1.0
        # Adding 0.0 turns -0.0 into 0.0, so that equal rows have equal bytes.
        other, their_sign = seen.setdefault((sign * row + 0.0).tobytes(), (mu, sign))
        if other != mu:
            relation = "equal" if sign == their_sign else "opposite (x and -x)"
            raise InputError(
                f"T = 0 needs an invertible kernel, but rows {other} and {mu} of X are {relation}: remove one of them, "
                "or take T > 0"
            )
    if activation == "linear" and dataset.P > dataset.N0:
        raise InputError(
            f"T = 0 needs an invertible kernel, but a linear network with P = {dataset.P} > N0 = {dataset.N0} has a singular "
            "one: take at most N0 patterns, or T > 0"
        )


def _positive(name: str, value: float, *, zero: bool = False) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number) or number < 0 or (number == 0 and not zero):
        allowed = "a finite number >= 0" if zero else "a finite number > 0"
        raise InputError(f"{name} = {value}: it must be {allowed}")
    return number


@dataclass(frozen=True, eq=False)
class Problem:
    """One posterior: a Dataset with a network and a temperature (physics.md section 1).

    N1        number of hidden units
    T         temperature of the likelihood (the prior is not tempered); T = 0 is for theory's limit only
    lambda0   PRECISION of the first-layer prior, w ~ N(0, 1/lambda0)
    lambda1   PRECISION of the readout prior,     v ~ N(0, 1/lambda1)
    activation  "erf", "linear", "tanh" or "sin" (zero-mean; others are refused with the reason in theory.activations)

    Raises InputError for a parameter out of range, and at T = 0 for patterns that make K singular.
    """

    dataset: Dataset
    N1: int
    T: float
    lambda0: float = 1.0
    lambda1: float = 1.0
    activation: str = "erf"

    def __post_init__(self) -> None:
        put = object.__setattr__
        N1 = _positive("N1", self.N1)
        if not N1.is_integer():
            raise InputError(f"N1 = {self.N1}: the number of hidden units must be a whole number >= 1")
        put(self, "N1", int(N1))
        put(self, "T", _positive("T", self.T, zero=True))
        put(self, "lambda0", _positive("lambda0", self.lambda0))
        put(self, "lambda1", _positive("lambda1", self.lambda1))
        if self.T == 0:
            check_for_zero_temperature(self.dataset, self.activation)

    @property
    def P(self) -> int:
        return self.dataset.P

    @property
    def N0(self) -> int:
        return self.dataset.N0

    @property
    def alpha(self) -> float:
        """Load P/N1."""
        return self.P / self.N1

    @property
    def a(self) -> np.ndarray:
        return self.dataset.a

    @property
    def fingerprint(self) -> str:
        """sha256 over the data set's fingerprint and every parameter: the identity of the posterior."""
        parameters = (self.N1, repr(self.T), repr(self.lambda0), repr(self.lambda1), self.activation)
        return hashlib.sha256(f"{self.dataset.fingerprint} {parameters}".encode()).hexdigest()

    def replace(self, **changes: Any) -> Problem:
        """A copy with some fields changed, validated again."""
        return dataclasses.replace(self, **changes)

    def describe(self) -> dict[str, Any]:
        """JSON-able summary for reports and manifests."""
        data = self.dataset
        return {
            "data": data.name,
            "P": self.P,
            "P_plus": int((data.classes > 0).sum()),
            "N0": self.N0,
            "N1": self.N1,
            "alpha": self.alpha,
            "T": self.T,
            "lambda0": self.lambda0,
            "lambda1": self.lambda1,
            "activation": self.activation,
            "dataset_fingerprint": data.fingerprint,
            "fingerprint": self.fingerprint,
            "provenance": data.provenance,
        }
