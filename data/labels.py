"""Training labels: true, a seeded permutation (the random-label control), or all 0 (the Delta1 run)."""

from __future__ import annotations

from typing import Any

import numpy as np

from data.errors import InputError
from data.problem import Dataset
from data.seeds import check_seed, stream

LABELS = ("true", "random", "zero")


def check_labels(labels: str, label_seed: int) -> None:
    """Raises InputError unless `labels` is one of LABELS and the seed a whole number >= 0."""
    if labels not in LABELS:
        raise InputError(f"labels = {labels!r}: choose from {', '.join(LABELS)}")
    check_seed("label_seed", label_seed)


def kind(dataset: Dataset) -> str | None:
    """What a data set says of its training labels: one of LABELS, or None where it says nothing, as a user's own does."""
    told = dataset.provenance.get("labels")
    found = told.get("kind") if isinstance(told, dict) else None
    return found if found in LABELS else None


def relabel(dataset: Dataset, labels: str, label_seed: int = 0) -> Dataset:
    """The same patterns and classes with y as it is ("true"), permuted ("random", seeded) or all 0 ("zero").

    y_test is treated like y, with a stream of its own; classes and classes_test stay the true partition.
    Raises InputError for another kind or a bad seed.
    """
    check_labels(labels, label_seed)
    provenance: dict[str, Any] = {**dataset.provenance, "labels": {"kind": labels}}
    if labels == "true":
        return dataset.replace(provenance=provenance)
    if labels == "zero":
        zeros = None if dataset.y_test is None else np.zeros_like(dataset.y_test)
        return dataset.replace(
            y=np.zeros(dataset.P), y_test=zeros, name=f"{dataset.name}, y = 0", provenance=provenance
        )
    provenance["labels"]["seed"] = label_seed
    y = dataset.y[stream(label_seed, "labels").permutation(dataset.P)]
    y_test = dataset.y_test
    if y_test is not None:
        y_test = y_test[stream(label_seed, "test labels").permutation(len(y_test))]
    return dataset.replace(y=y, y_test=y_test, name=f"{dataset.name}, random labels", provenance=provenance)
