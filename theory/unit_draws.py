"""Draws of one unit's pre-activations from the prior, h ~ N(0, C), in independent batches, until an error is small enough."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import hadamard

from data.errors import InputError
from theory.spectrum import Spectrum

GROUP = 16  # draws that are mixed with each other
MIXED = 7  # most mixings of a fresh block
ELEMENTS = 2**17  # numbers in the default block
FIRST_CHECK = 64  # batches before an error is believed: it is then known to 9%
MOST_BATCHES = 512  # kept in memory: at twice this, neighbours are averaged


@dataclass(frozen=True)
class Settings:
    """How long to draw, and from which seed.

    samples    number of one-unit draws (rounded up to whole batches, at least 64); None: until the target is met
    rel_error  target: standard error of level 4 at every point, relative to |level 4 - prior| (to a tenth of the larger half,
               where the two halves cancel to less than that)
    budget     most draws, when the target is not reached before
    block      fresh draws held in memory at once; None: chosen by P
    progress   called with {"phase": "first_order", "done", "total", "worst"} after every check
    """

    samples: int | None = None
    rel_error: float = 0.01
    seed: int = 0
    budget: int = 4_000_000
    block: int | None = None
    progress: Callable[[dict[str, Any]], None] | None = None

    def __post_init__(self) -> None:
        for name in ("samples", "budget", "block"):
            value = getattr(self, name)
            if value is not None and not value >= 1:
                raise InputError(f"{name} = {value}: give a number of one-unit draws >= 1")
        if not self.rel_error > 0:
            raise InputError(f"rel_error = {self.rel_error}: the wanted relative standard error must be > 0")


@dataclass(frozen=True, eq=False)
class UnitDraws:
    """h = xi R^T with xi (draws, r) standard normal and R (P, r), R R^T = C.

    A fresh block costs 2 P r operations a draw, and 2 P^2 for its modes in the eigenbasis; mixing it costs 2 P GROUP. With O
    orthogonal, the rows of O h are again independent draws of N(0, C). They depend on the rows of h, but weakly: functions whose
    lowest chaos is 4, as the remainders of level 4 are, have correlations that sum to 1/GROUP over a group. All mixings of one
    block belong to one batch, so an error estimated between batches is right whatever that dependence is.

    block   fresh draws at once, a multiple of GROUP;  mixed  mixings of each block (0 where P + r is small: fresh is then as cheap)
    """

    R: np.ndarray
    block: int
    mixed: int

    @classmethod
    def of(cls, spectrum: Spectrum, block: int | None = None) -> UnitDraws:
        """R = X/sqrt(lambda0 N0) if N0 <= P, else from the eigenvectors of C. Raises InputError for a block < 1."""
        P = spectrum.P
        if block is None:
            block = min(max(ELEMENTS // P, 64), 4096)
        elif block < 1:
            raise InputError(f"block = {block}: the draws held at once must be a number > 0")
        data = spectrum.dataset
        if data.N0 <= P:
            R = data.X / np.sqrt(spectrum.lambda0 * data.N0)
        else:
            values, vectors = np.linalg.eigh(spectrum.C)
            R = vectors * np.sqrt(np.maximum(values, 0.0))
        return cls(R=R, block=GROUP * -(-block // GROUP), mixed=min(sum(R.shape) // 128, MIXED))

    def batch(self, rng: np.random.Generator) -> Iterator[np.ndarray]:
        """h (block, P), fresh first and then its mixings. Each array is overwritten by nobody; the caller may."""
        h = rng.standard_normal((self.block, self.R.shape[1])) @ self.R.T
        yield h
        mixer = hadamard(GROUP) / np.sqrt(GROUP)
        for _ in range(self.mixed):
            order = rng.permutation(self.block)
            signs = rng.choice((-1.0, 1.0), size=(self.block, 1))
            h = (mixer @ (h[order] * signs).reshape(-1, GROUP, h.shape[1])).reshape(h.shape)
            yield h


def collect(
    draws: UnitDraws,
    settings: Settings,
    batch: Callable[[Iterator[np.ndarray]], np.ndarray],
    worst: Callable[[np.ndarray], float],
    most: int = MOST_BATCHES,
) -> tuple[np.ndarray, int, bool | None]:
    """Batches (B, ...) of batch(blocks of h), equal in size and independent; the number of draws; whether the target was met.

    Draws `samples`, or until worst(batches) <= rel_error. At most 2 `most` batches are held: neighbours are averaged then.
    """
    rng = np.random.default_rng(np.random.SeedSequence(settings.seed))
    each = draws.block * (1 + draws.mixed)
    total = settings.budget if settings.samples is None else settings.samples
    batches: list[np.ndarray] = []
    size, done, check, reached = 1, 0, FIRST_CHECK, False
    while (done < total or len(batches) < FIRST_CHECK) and not reached:
        batches.append(np.mean([batch(draws.batch(rng)) for _ in range(size)], axis=0))
        done += size * each
        if len(batches) == 2 * most:
            batches = list(0.5 * (np.array(batches[::2]) + np.array(batches[1::2])))
            size *= 2
            check = most
        if len(batches) >= check:
            check = int(1.2 * len(batches))
            error = worst(np.array(batches))
            reached = settings.samples is None and error <= settings.rel_error
            if settings.progress is not None:
                settings.progress({"phase": "first_order", "done": done, "total": total, "worst": error})
    return np.array(batches), done, reached if settings.samples is None else None
