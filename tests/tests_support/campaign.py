"""Cells without sampling, for tests of a campaign's scale: an engine that writes results by the store's own writer."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

from sampling.campaign import catalog, tries
from sampling.campaign.cell import Cell
from sampling.campaign.engines import Event, Plan
from sampling.campaign.store import CHECKPOINT, RUN, Store

PATTERNS = 64  # inputs of digits


class Stub:
    """Gives each missing cell a result at once; of every `failing` cells one fails for good, of every `coarse` one misses its precision.

    flush  False leaves out fsync, whose time is the disk's own and would hide what is measured
    """

    detached = False

    def __init__(self, failing: int = 0, coarse: int = 0, flush: bool = True):
        self.failing, self.coarse, self.flush = failing, coarse, flush
        self.count = 0

    def run(self, plan: Plan) -> Iterator[Event]:
        with contextlib.nullcontext() if self.flush else mock.patch("os.fsync"):
            yield from self.all(plan)

    def all(self, plan: Plan) -> Iterator[Event]:
        """Every missing cell, in the catalogue's order."""
        path, _, _ = catalog.current(plan.folder)
        store = Store(plan.folder)
        wanted = {task.id for task in plan.missing()}
        yield Event("submitted", text="", data={"cells": len(wanted)})
        for cell in catalog.read(path):
            if cell.id in wanted:
                yield self.cell(store, cell)

    def one(self, folder: Path, name: str) -> Iterator[Event]:
        """The same for one cell by its id."""
        yield self.cell(Store(folder), catalog.find(folder, [name])[name])

    def cell(self, store: Store, cell: Cell) -> Event:
        """Write a cell's result, or its failure."""
        self.count += 1
        place = store.place(cell.id)
        place.mkdir(parents=True, exist_ok=True)
        if self.failing and self.count % self.failing == 0:
            tries.fail(tries.begin(place, place / CHECKPOINT), "RuntimeError: stubbed", True)
            return Event("finished", cell.id, "stubbed", {"state": "failed"})
        coarse = self.coarse and self.count % self.coarse == 0
        (place / RUN).write_bytes(b"no run, for a test of scale")
        error = 0.3 if coarse else 0.01
        P, N1 = int(cell["P"]), int(cell["N1"])
        numbers = {"d2_mean": 3.0, "d2_mcse": error, "prior": 2.0, "effect": 1.0, "relative_error": error, "draws": 100}
        numbers |= {
            f"{name}_{what}": 1.0 for name in ("d2", "Q", "residual") for what in ("ess_bulk", "ess_tail", "rhat")
        }
        problem = {
            "P": P,
            "N0": PATTERNS,
            "N1": N1,
            "alpha": P / N1,
            "fingerprint": "f" * 64,
            "dataset_fingerprint": "d" * 64,
        }
        body = {
            "outcome": "inconclusive" if coarse else "done", "reasons": [], "numbers": numbers, "problem": problem,
            "provenance": {"git_commit": "0" * 40, "biased": False}, "seconds": 2.0, "finished": time.time(),
        }  # fmt: skip
        store.write(cell, body)
        return Event("finished", cell.id, "", {"state": body["outcome"]})
