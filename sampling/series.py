"""Per-draw scalars in bounded memory: when the store is full, neighbours are averaged and every later entry is a batch mean."""

from __future__ import annotations

import numpy as np


class SeriesStore:
    """Scalars of all chains by name, each (C, kept) or (C, kept, n); at most `limit` entries a chain are kept.

    While the number of draws is below `limit` an entry is a draw. At the limit, neighbouring entries are averaged in pairs and
    the batch size doubles, so 10^6 draws need no more memory than `limit`. Means are unchanged by this; effective sample sizes are
    then those of batch means, which is what batch-means error estimates use anyway.
    """

    def __init__(self, limit: int = 20_000):
        if limit < 4 or limit % 2:
            raise ValueError(f"limit = {limit}: it must be even and at least 4")
        self.limit, self.batch, self.draws = limit, 1, 0
        self.kept = 0
        self.values: dict[str, np.ndarray] = {}
        self.open: dict[str, np.ndarray] = {}  # sums of the batch that is not yet complete

    def add(self, scalars: dict[str, np.ndarray]) -> None:
        """Take in one draw: name -> (C,) or (C, n)."""
        if not self.values:
            for name, value in scalars.items():
                self.values[name] = np.empty((len(value), min(self.limit, 256), *value.shape[1:]))
                self.open[name] = np.zeros_like(value, dtype=np.float64)
        self.draws += 1
        for name, value in scalars.items():
            self.open[name] += value
        if self.draws % self.batch:
            return
        if self.kept == self.limit:
            self._fold()
        if self.kept == self.values[next(iter(self.values))].shape[1]:
            self._grow()
        if self.draws % self.batch:  # folding doubled the batch: this one waits for its second half
            return
        for name, total in self.open.items():
            self.values[name][:, self.kept] = total / self.batch
            total[...] = 0.0
        self.kept += 1

    def _fold(self) -> None:
        for name, value in self.values.items():
            self.values[name][:, : self.kept // 2] = 0.5 * (value[:, 0 : self.kept : 2] + value[:, 1 : self.kept : 2])
        self.kept //= 2
        self.batch *= 2

    def _grow(self) -> None:
        for name, value in self.values.items():
            more = np.empty((value.shape[0], min(self.limit, 2 * value.shape[1]), *value.shape[2:]))
            more[:, : self.kept] = value[:, : self.kept]
            self.values[name] = more

    def series(self) -> dict[str, np.ndarray]:
        """name -> (C, kept) or (C, kept, n): draws, or batch means when `batch` > 1."""
        return {name: value[:, : self.kept].copy() for name, value in self.values.items()}

    def state_dict(self) -> dict[str, np.ndarray]:
        """Everything, for a checkpoint."""
        stored = {f"kept.{name}": value for name, value in self.series().items()}
        stored |= {f"open.{name}": value.copy() for name, value in self.open.items()}
        return stored | {"counters": np.array([self.limit, self.batch, self.draws, self.kept])}

    def load_state_dict(self, stored: dict[str, np.ndarray]) -> None:
        self.limit, self.batch, self.draws, self.kept = (int(x) for x in stored["counters"])
        self.values = {k.removeprefix("kept."): v.copy() for k, v in stored.items() if k.startswith("kept.")}
        self.open = {k.removeprefix("open."): v.copy() for k, v in stored.items() if k.startswith("open.")}
        if self.values:
            self._grow()
