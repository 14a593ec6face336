"""Per-draw scalars in bounded memory: when the store is full, pairs of entries become one, by averaging or by thinning."""

from __future__ import annotations

import numpy as np


class SeriesStore:
    """Scalars of all chains by name, each (C, kept) or (C, kept, n); at most `limit` entries a chain are kept.

    While the number of draws is below `limit` an entry is a draw. At the limit, neighbouring entries are merged in pairs and the
    batch size doubles, so 10^6 draws need no more memory than `limit`.

    thin = False   an entry is the mean over `batch` draws. Means lose nothing, and effective sample sizes and errors of the
                   mean are those of batch means. The sd, tails and covariances are then those of batch means, NOT of draws
    thin = True    an entry is the last of `batch` draws. For what is not linear in a draw, such as reweighting by exp(loglik_T)
    """

    def __init__(self, limit: int = 20_000, thin: bool = False):
        self.limit, self.thin, self.batch, self.draws, self.kept = limit, thin, 1, 0, 0
        self.widths: dict[str, int] = {}  # name -> n of a (C, n) scalar, 0 for (C,): the columns of a row, in order
        self.values = np.empty((0, 0, 0))  # (C, room, columns), of which `kept` are filled
        self.open = np.empty((0, 0))  # (C, columns): sum over the batch that is not complete yet

    def layout(self, widths: dict[str, int], chains: int) -> None:
        """Name the columns of a row before the first is added."""
        self.widths = dict(widths)
        columns = sum(max(1, n) for n in widths.values())
        self.values = np.empty((chains, min(self.limit, 256), columns))
        self.open = np.zeros((chains, columns))

    def add(self, row: np.ndarray) -> None:
        """Take in one draw: (C, columns) float64, laid out as `layout` was told."""
        self.draws += 1
        if self.thin:
            self.open[...] = row
        else:
            self.open += row
        if self.draws % self.batch:
            return
        if self.kept == self.limit:
            self._fold()
            if self.draws % self.batch:  # the batch doubled: this one waits for its second half
                return
        if self.kept == self.values.shape[1]:
            self._grow()
        self.values[:, self.kept] = self.open if self.thin else self.open / self.batch
        self.open[...] = 0.0
        self.kept += 1

    def _fold(self) -> None:
        first, second = self.values[:, 0 : self.kept : 2], self.values[:, 1 : self.kept : 2]
        self.values[:, : self.kept // 2] = second if self.thin else 0.5 * (first + second)
        self.kept //= 2
        self.batch *= 2

    def _grow(self) -> None:
        chains, room, columns = self.values.shape
        more = np.empty((chains, min(self.limit, 2 * room), columns))
        more[:, : self.kept] = self.values[:, : self.kept]
        self.values = more

    def series(self) -> dict[str, np.ndarray]:
        """name -> (C, kept) or (C, kept, n): draws, or batch means (or every batch-th draw) when `batch` > 1."""
        found, at = {}, 0
        for name, n in self.widths.items():
            part = self.values[:, : self.kept, at : at + max(1, n)]
            found[name] = np.ascontiguousarray(part if n else part[..., 0])
            at += max(1, n)
        return found

    def state_dict(self) -> dict[str, np.ndarray]:
        """Everything, for a checkpoint."""
        return {
            "kept": self.values[:, : self.kept].copy(),
            "open": self.open.copy(),
            "names": np.array(list(self.widths), dtype=np.str_),
            "widths": np.array(list(self.widths.values()), dtype=np.int64),
            "counters": np.array([self.limit, self.thin, self.batch, self.draws], dtype=np.int64),
        }

    def load_state_dict(self, stored: dict[str, np.ndarray]) -> None:
        self.limit, thin, self.batch, self.draws = (int(x) for x in stored["counters"])
        self.thin = bool(thin)
        self.widths = {str(n): int(w) for n, w in zip(stored["names"], stored["widths"], strict=True)}
        self.open = stored["open"].copy()
        kept = stored["kept"]
        self.kept = kept.shape[1]
        self.values = np.empty((kept.shape[0], min(self.limit, max(256, 2 * self.kept)), kept.shape[2]))
        self.values[:, : self.kept] = kept
