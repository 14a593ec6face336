"""Data for the paper's figures: the set asked for where it is at hand, otherwise an embedded one, said so in words."""

from __future__ import annotations

from typing import NamedTuple

from data.errors import InputError
from data.problem import Dataset
from data.registry import load

# Embedded stand-ins of sets that are not shipped: (name, classes).
STAND_IN = {"cifar10": ("fashion-mnist", "even/odd"), "mnist": ("digits", "0/1")}


class Chosen(NamedTuple):
    """A data set for a figure, what it is called there, and a note where it stands in for another ("" otherwise)."""

    dataset: Dataset
    label: str
    note: str


def at_hand(name: str) -> bool:
    """Whether a set can be read without a download: embedded, generated, a file, or MNIST and CIFAR-10 in a local folder or cache."""
    from data import download, images, local, mnist

    if name == "cifar10":
        archive = local.find_all((images.CIFAR_FILE,)) or download.cached(images.CIFAR_FILE, images.CIFAR_SHA256)
        return bool(archive) or local.pieces("cifar10_train", 3072, 50000) is not None
    if name == "mnist":
        return (
            local.pieces("mnist_train", 784, 60000) is not None or mnist.split(mnist.MNIST, "train", False) is not None
        )
    return True


def choose(name: str, classes: str | None, P: int, seed: int | None = None) -> Chosen:
    """`P` patterns of a set, or of its embedded stand-in where the set is not at hand; nothing is downloaded.

    Raises InputError for an unknown set, or where the set or its stand-in has fewer patterns.
    """
    asked = f"{name} {classes}" if classes else name
    if at_hand(name):
        return Chosen(load(name, classes=classes, P=P, seed=seed), asked, "")
    other, theirs = STAND_IN[name]
    note = (
        f"{asked} is not at hand, so the embedded {other} {theirs} stands in for it: name the folder that holds "
        f"{name} in SADDLECHECK_DATA, "
        f"or let `saddlecheck predict --data {name}` download it once"
    )
    return Chosen(load(other, classes=theirs, P=P, seed=seed), f"{other} {theirs}", note)


def sizes(name: str, classes: str | None, wanted: list[int]) -> tuple[list[Chosen], list[str]]:
    """The set at each size of `wanted` that it reaches, and notes: of a stand-in, and of sizes that it does not reach."""
    found: list[Chosen] = []
    left_out: list[int] = []
    for P in sorted(wanted):
        try:
            found.append(choose(name, classes, P))
        except InputError:
            if not found:
                raise
            left_out.append(P)
    notes = [found[0].note] if found[0].note else []
    if left_out:
        listed = ", ".join(map(str, left_out))
        notes.append(f"{found[0].label} has too few patterns at hand for P = {listed}: these points are left out")
    return found, notes
