"""Standardisation of inputs: one mean and deviation over all entries, one a feature, or none; constants kept for test rows."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from data.errors import InputError

KINDS = ("global", "feature", "none")
ALIASES = {"per feature": "feature", "per-feature": "feature", "per_feature": "feature"}


def kind_of(text: str) -> str:
    """One of KINDS; raises InputError for anything else."""
    kind = ALIASES.get(text, text)
    if kind not in KINDS:
        raise InputError(f"standardise = {text!r}: choose from {', '.join(KINDS)}")
    return kind


@dataclass(frozen=True, eq=False)
class Scaling:
    """X -> (X - mean)/sd, with the constants of the training rows: scalars, or (N0,) arrays for `feature`."""

    kind: str
    mean: np.ndarray
    sd: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, kind: str) -> Scaling:
        """The constants of X (P, N0). Standard deviations divide by the number of entries (numpy's default).

        A feature that is constant over the rows is centred and keeps sd = 1: it becomes 0, not NaN.
        Raises InputError where X does not vary at all.
        """
        kind = kind_of(kind)
        if kind == "none":
            return cls(kind, np.zeros(()), np.ones(()))
        X = np.asarray(X, dtype=np.float64)
        if kind == "global":
            if X.max() == X.min():
                raise InputError(f"X is {X.flat[0]} everywhere: nothing to standardise; take other rows")
            return cls(kind, np.asarray(X.mean()), np.asarray(X.std()))
        # Rounding can leave a constant feature with a tiny non-zero deviation: compare the values themselves.
        low, constant = X.min(axis=0), X.max(axis=0) == X.min(axis=0)
        if constant.all():
            raise InputError("all rows of X are equal: nothing to standardise; take other rows")
        return cls(kind, np.where(constant, low, X.mean(axis=0)), np.where(constant, 1.0, X.std(axis=0)))

    def apply(self, X: np.ndarray) -> np.ndarray:
        """(X - mean)/sd in float64."""
        X = np.asarray(X, dtype=np.float64)
        return X if self.kind == "none" else (X - self.mean) / self.sd

    def describe(self) -> dict[str, Any]:
        """JSON-able constants; per-feature arrays by checksum, as they follow from the rows."""
        if self.kind == "none":
            return {"kind": "none"}
        if self.kind == "global":
            return {"kind": "global", "mean": float(self.mean), "sd": float(self.sd)}
        digest = hashlib.sha256(self.mean.astype("<f8").tobytes() + self.sd.astype("<f8").tobytes()).hexdigest()
        return {"kind": "feature", "features": len(self.mean), "sha256 of means and deviations": digest}
