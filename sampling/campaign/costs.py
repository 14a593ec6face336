"""What a cell costs: from finished cells of its kind, else from a short calibration, else scaled from the nearest kind that is known."""

from __future__ import annotations

import json
import math
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from data.errors import InputError
from sampling.atomic import replacing
from sampling.campaign.cell import Cell
from sampling.campaign.small import read_json

FILE = "calibration.json"
OVERHEAD = 0.3  # seconds a cell beside its sampling: data, diagnosis, files
UNKNOWN = 0.1  # of the budget, where nothing is known
RUNS = 12  # calibration runs at most
PATIENCE = 2.0  # seconds of sampling of each
TRIAL_WARMUP = 60


@dataclass
class Costs:
    """Expected seconds of cells by kind (Cell.kind).

    finished    kind -> [cells, seconds] of results; calibrated  kind -> seconds a cell
    """

    finished: dict[str, list[float]] = field(default_factory=dict)
    calibrated: dict[str, float] = field(default_factory=dict)
    budgets: dict[str, float] = field(default_factory=dict)

    @classmethod
    def load(cls, folder: Path) -> Costs:
        """With the calibration that the folder holds; an unreadable one counts as none."""
        told = read_json(folder / FILE)
        good = isinstance(told, dict) and all(isinstance(one, int | float) and one >= 0 for one in told.values())
        return cls(calibrated=dict(told) if isinstance(told, dict) and good else {})

    def save(self, folder: Path) -> None:
        """Keep the calibration in the folder. Raises OSError."""
        with replacing(folder / FILE) as temporary:
            temporary.write_text(json.dumps(self.calibrated, indent=1), encoding="utf-8")

    def add(self, cell: Cell, seconds: float) -> None:
        """Count a result."""
        entry = self.finished.setdefault(key(cell), [0.0, 0.0])
        entry[0] += 1
        entry[1] += seconds + OVERHEAD

    def known(self, cell: Cell) -> float | None:
        """Seconds from cells of the very kind, or None."""
        name = key(cell)
        if name in self.finished:
            return self.finished[name][1] / self.finished[name][0]
        return self.calibrated.get(name)

    def seconds(self, cell: Cell) -> float:
        """Expected seconds of a cell; never more than its budget and what is beside it."""
        name, limit = key(cell), self._limit(cell)
        found = self.known(cell)
        if found is None:
            if name not in self.budgets:
                self.budgets[name] = self._scaled(cell)
            found = self.budgets[name]
        return min(found, limit)

    def _limit(self, cell: Cell) -> float:
        return math.inf if cell["draws"] is not None else 1.5 * float(cell.effort["budget_seconds"]) + OVERHEAD

    def _scaled(self, cell: Cell) -> float:
        rows = [(json.loads(name), total / count) for name, (count, total) in self.finished.items()]
        rows += [(json.loads(name), seconds) for name, seconds in self.calibrated.items()]
        if not rows:
            return UNKNOWN * float(cell.effort["budget_seconds"]) + OVERHEAD
        size = _size(cell.kind)
        near = min(rows, key=lambda row: (row[0][2] != cell["sampler"], abs(math.log(_size(row[0]) / size))))
        return near[1] * size / _size(near[0])


def key(cell: Cell) -> str:
    """A kind as text."""
    return cell.kind_text


def _size(kind: Any) -> float:
    """Operations of a gradient, up to a constant: P N1 min(P, N1) for the factorisation and P N1 r for the features."""
    P, N1 = float(kind[3] or 100), float(kind[4])
    return P * N1 * (min(P, N1) + P)


def representatives(cells: Iterable[Cell], costs: Costs, most: int = RUNS) -> dict[str, list[Cell]]:
    """Of each kind whose cost is not known the cells of lowest and of highest T; `most` in all, spread evenly over kinds by size."""
    ends: dict[str, list[Cell]] = {}
    for cell in cells:
        if costs.known(cell) is None:
            pair = ends.setdefault(key(cell), [cell, cell])
            if cell["T"] < pair[0]["T"]:
                pair[0] = cell
            elif cell["T"] > pair[1]["T"]:
                pair[1] = cell
    names = sorted(ends, key=lambda name: _size(ends[name][0].kind))
    room = max(1, most // 2)
    if len(names) > room:
        names = [names[round(at * (len(names) - 1) / max(1, room - 1))] for at in range(room)]
    return {name: ends[name][: 1 if ends[name][0] is ends[name][1] else 2] for name in dict.fromkeys(names)}


def calibrate(
    cells: Iterable[Cell], folder: Path, costs: Costs, *, report: Callable[[str, int, int], None] | None = None
) -> None:
    """Run some cells for about two seconds each and note what a whole cell of their kind will cost; a rough figure.

    A kind whose trial fails is left out: the cell itself will tell why.
    """
    chosen = representatives(cells, costs)
    total, at = sum(map(len, chosen.values())), 0
    for name, some in chosen.items():
        found = []
        for cell in some:
            at += 1
            if report is not None:
                report(f"{cell['sampler']}, P = {cell['P']}, N1 = {cell['N1']}, T = {cell['T']:g}", at, total)
            try:
                found.append(trial(cell, folder))
            except (InputError, RuntimeError):
                continue
        if found:
            costs.calibrated[name] = statistics.fmean(found)
    if chosen:
        costs.save(folder)


def trial(cell: Cell, folder: Path) -> float:
    """Expected seconds of one cell to its target, from a short run of it. Raises what sampling.run raises."""
    from sampling import run
    from sampling.campaign.precision import options
    from sampling.campaign.prior import prior_d2
    from sampling.diagnostics import MIN_ESS, estimate
    from sampling.settings import WARMUP

    problem = cell.problem(cell.dataset(folder))
    identity, effort = cell.identity, cell.effort
    whole = identity["warmup"] if identity["warmup"] is not None else WARMUP.get(identity["sampler"], 500)
    draws = identity["draws"]
    nuts = identity["sampler"] == "nuts"
    began = time.monotonic()
    found = run(
        problem,
        identity["sampler"],
        chains=identity["chains"],
        seed=cell.chain_seed(),
        warmup=min(whole, TRIAL_WARMUP),
        draws=20 if nuts else None,
        target=None if nuts else 1e-6,
        budget_seconds=PATIENCE,
        starts=identity["starts"],
        device=str(effort["device"]),
        dtype=identity["dtype"],
        threads=int(effort["threads"]),
        max_kept=identity["max_kept"],
        **options(cell),
    )
    elapsed = time.monotonic() - began
    spent, made = found.manifest["seconds"], max(1, int(found.manifest["draws"]))
    per_draw = max(float(spent["sample"]), 1e-6) / made
    warm = float(spent["warmup"]) / max(1, min(whole, TRIAL_WARMUP)) * whole
    beside = OVERHEAD + max(0.0, elapsed - float(spent["sample"]) - float(spent["warmup"]))
    if draws is not None:
        return warm + draws * identity["thin"] * per_draw + beside
    d2 = estimate(found.series["d2"])
    budget = float(effort["budget_seconds"])
    effect = max(abs(d2.mean - prior_d2(problem)[0]), d2.mcse if math.isfinite(d2.mcse) else 0.0)
    rate = min(d2.ess_bulk, d2.ess_tail) / made
    if not rate > 0 or not effect > 0:
        return warm + budget + beside
    wanted = max(float(effort["target"]) * effect, float(effort["finest"]) * abs(d2.mean))
    needed = max(MIN_ESS, (d2.sd / wanted) ** 2) / rate
    return warm + min(budget, needed * identity["thin"] * per_draw) + beside
