"""regress: the fixed cells computed and sampled anew and judged against the baseline; make_baseline: the long runs behind it."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compare.regress import judge, numbers
from compare.regress.baseline import ARRAYS, Baseline, Reference
from compare.regress.cells import CELLS, DATA, load
from compare.regress.judge import FALSE_ALARM, POWER, TOLERANCE, Row
from data.errors import InputError
from data.problem import Dataset, Problem

Stage = Callable[[str, int, int], Callable[[dict[str, Any]], None]]

SAMPLER = "hmc"
FRESH: dict[str, Any] = {"chains": 32, "warmup": 250, "draws": 400}
LONG: dict[str, Any] = {"chains": 64, "warmup": 1000, "draws": 3000}
CHECK: dict[str, Any] = {"sampler": "gibbs", "chains": 32, "warmup": 100, "draws": 600}
# Salts of the seeds, so that no fresh chain is ever one of the baseline's.
FRESH_SALT, LONG_SALT, CHECK_SALT, AGAIN_SALT = 1, 2, 3, 4
AGAIN = 2  # times as many draws where a cell's chains are run again, to confirm what they found
CHAINS = ("measured", "exact", "efficiency", "sampler")  # kinds of rows that come from chains
NAN_SHARE = 0.01  # of energies; above it a run is broken, whatever its means
# Numbers of the theory that are exact for a linear network, and what they predict.
EXACT_FOR_LINEAR = {
    "level eq3_q_averaged": "d2",
    "p(Q|y) Q_mean": "Q",
    "p(Q|y) fbar_a": "fbar_a",
    "<ww> averaged class": "<ww> class",
    "<ww> averaged leading": "<ww> leading",
}
QUADRATURE = 1e-8  # relative: two quadratures, each to 1e-9 or better


@dataclass(frozen=True, eq=False)
class Outcome:
    """Every number, old and new, and what was decided.

    rows  all;  changed  those that failed the run;  made  of the baseline;  software  of this run
    """

    rows: list[Row]
    made: dict[str, Any]
    software: dict[str, str]
    seed: int
    sampler: str | None
    seconds: float

    @property
    def changed(self) -> list[Row]:
        return [row for row in self.rows if row.changed]

    @property
    def passed(self) -> bool:
        return not self.changed

    @property
    def tests(self) -> int:
        """Number of statistical tests, over which the false-alarm rate is split."""
        return sum(row.tested for row in self.rows)

    def power(self) -> dict[str, dict[str, float]]:
        """name -> smallest relative shift of the mean found with probability POWER: best, median and worst of the cells."""
        shares: dict[str, list[float]] = {}
        for row in self.rows:
            if row.kind == "measured" and row.found > 0 and row.old:
                shares.setdefault(row.name, []).append(row.found / abs(row.old))
        return {
            name: {"best": min(found), "median": float(np.median(found)), "worst": max(found)}
            for name, found in shares.items()
        }

    def to_dict(self) -> dict[str, Any]:
        """The object of `regress --json`."""
        return {
            "passed": self.passed,
            "changed": [vars(row) for row in self.changed],
            "numbers": len(self.rows),
            "tests": self.tests,
            "false_alarm": FALSE_ALARM,
            "threshold_p": FALSE_ALARM / self.tests if self.tests else None,
            "tolerance": TOLERANCE,
            "power": {"probability": POWER, "relative_shift": self.power()},
            "seed": self.seed,
            "sampler": self.sampler,
            "lengths": FRESH,
            "seconds": self.seconds,
            "software": self.software,
            "baseline": self.made,
            "rows": [vars(row) for row in self.rows],
        }


def regress(
    baseline: Baseline,
    *,
    seed: int = 0,
    sampler: str = SAMPLER,
    cells: Sequence[str] | None = None,
    sampling: bool = True,
    stage: Stage | None = None,
) -> Outcome:
    """Compute and sample the baseline's cells anew, and judge.

    seed      of the fresh chains;  sampler  by which they run: the posterior, and so the baseline, is the same for every one
    cells     names of some of the cells, None for all;  sampling  False for the theory alone
    stage     called with (name, number, of) before each step; returns the callback for its progress events

    Theory, level 4 and chains run on the data that the baseline stores, and the data package's own are compared with them: a
    changed loader is one row, not a changed everything. Where chains find a change, the cell is sampled again by other and longer
    chains, and only what both find fails: false alarms become rarer still, and a real change is found twice.
    Raises InputError for an unknown cell or sampler.
    """
    from sampling import samplers

    begun = time.monotonic()
    chosen = _chosen(baseline, cells)
    _seed(FRESH_SALT, seed, 0)
    if sampler not in samplers():
        raise InputError(f"sampler = {sampler!r} is unknown ({', '.join(samplers())})")
    told = stage or (lambda name, at, of: lambda event: None)
    rows = _data_rows(baseline, {one.data for one in chosen})
    for at, cell in enumerate(chosen, 1):
        report = told(cell.name, at, len(chosen))
        report({"phase": "theory", "done": 0, "total": 1})
        theory, drawn, probe = numbers.theory_numbers(cell.problem)
        rows += judge.theory_rows(cell.name, cell.theory, theory)
        rows += judge.drawn_rows(cell.name, cell.drawn, drawn, cell.probe, probe)
        if sampling:
            rows += _chain_rows(baseline, cell, sampler, _seed(FRESH_SALT, seed, _index(baseline, cell)), 1, report)
    rows = judge.judge(rows)
    tests = sum(row.tested for row in rows)
    doubted = [
        cell for cell in chosen if any(row.changed and row.kind in CHAINS for row in rows if row.cell == cell.name)
    ]
    for at, cell in enumerate(doubted, 1):
        report = told(f"{cell.name}, again", at, len(doubted))
        other = _seed(AGAIN_SALT, seed, _index(baseline, cell))
        again = _chain_rows(baseline, cell, sampler, other, AGAIN, report)
        share = sum(row.tested for row in again) / tests if tests else 1.0
        rows = judge.confirmed(rows, judge.judge(again, FALSE_ALARM * share))
    return Outcome(
        rows=rows,
        made=baseline.made,
        software=_software(),
        seed=seed,
        sampler=sampler if sampling else None,
        seconds=time.monotonic() - begun,
    )


def _index(baseline: Baseline, cell: Reference) -> int:
    return [one.name for one in baseline.cells].index(cell.name)


def _chain_rows(
    baseline: Baseline,
    cell: Reference,
    sampler: str,
    seed: int,
    longer: int,
    report: Callable[[dict[str, Any]], None],
) -> list[Row]:
    """The rows of one cell that come from fresh chains, `longer` times the usual number of draws."""
    lengths = FRESH | {"draws": longer * FRESH["draws"]}
    if sampler != SAMPLER:
        lengths |= {"warmup": None}
    fresh = numbers.sample(cell.problem, sampler=sampler, seed=seed, progress=report, **lengths)
    new = numbers.measured_numbers(fresh, cell.problem)
    rows = judge.measured_rows(cell.name, cell.measured, new)
    rows += judge.exact_rows(cell.name, cell.exact, new)
    if sampler == baseline.made.get("sampler"):
        rows += judge.efficiency_rows(cell.name, cell.measured, new)
    return [*rows, _nan_row(cell.name, float(fresh.manifest["nan_share"]))]


def make_baseline(
    *,
    seed: int = 0,
    stage: Stage | None = None,
    history: Sequence[dict[str, Any]] = (),
    only: Sequence[str] | None = None,
) -> Baseline:
    """The baseline of CELLS by long runs, checked: against exact answers where there are any, and against another sampler, gibbs.

    `only` makes some of the cells (for tests). Raises InputError, naming the numbers, where a check fails.
    """
    begun = time.monotonic()
    told = stage or (lambda name, at, of: lambda event: None)
    recipes = [one for one in CELLS if only is None or one.name in only]
    data = {key: load(key) for key in dict.fromkeys(one.data for one in recipes)}
    # As the file will hold them: no provenance, no teacher.
    data = {
        key: Dataset(name=one.name, **{name: getattr(one, name) for name in ARRAYS if getattr(one, name) is not None})
        for key, one in data.items()
    }
    cells, checks = [], []
    for at, recipe in enumerate(recipes, 1):
        report = told(recipe.name, at, len(recipes))
        network = {key: getattr(recipe, key) for key in ("N1", "T", "lambda0", "lambda1", "activation")}
        problem = Problem(data[recipe.data], **network)
        theory, drawn, probe = numbers.theory_numbers(problem)
        index = CELLS.index(recipe)
        long = numbers.sample(problem, sampler=SAMPLER, seed=_seed(LONG_SALT, seed, index), progress=report, **LONG)
        measured = numbers.measured_numbers(long, problem)
        exact = numbers.exact_numbers(problem)
        other = numbers.sample(problem, seed=_seed(CHECK_SALT, seed, index), progress=report, **CHECK)
        checks += judge.exact_rows(recipe.name, exact, measured)
        checks += judge.measured_rows(recipe.name, measured, numbers.measured_numbers(other, problem))
        if problem.activation == "linear":
            checks += linear_rows(recipe.name, theory, exact)
        cells.append(Reference(recipe.name, recipe.data, problem, theory, drawn, probe, measured, exact))
    judged = judge.judge(checks)
    wrong = [f"{row.cell}: {row.name} ({row.old:.6g}, {row.new:.6g}, z = {row.z:.2g})" for row in judged if row.changed]
    if wrong:
        raise InputError(f"no baseline was written, since its numbers do not pass their own checks: {'; '.join(wrong)}")
    made = {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "seed": seed,
        "sampler": SAMPLER,
        "lengths": LONG,
        "level 4": {
            "draws": numbers.LEVEL4_DRAWS,
            "block": numbers.LEVEL4_BLOCK,
            "seed": numbers.LEVEL4_SEED,
        },
        "checked": {
            "exact answers": sum(row.kind == "exact" and row.tested for row in judged),
            "against another sampler": {**CHECK, "tests": sum(row.kind == "measured" and row.tested for row in judged)},
            "theory against quadrature": sum(row.kind == "theory" for row in judged),
            "false_alarm": FALSE_ALARM,
            "largest |z|": max(abs(row.z) for row in judged if row.tested),
        },
        "generator": _generator(),
        "seconds": round(time.monotonic() - begun),
        "software": _software(),
    }
    return Baseline(made, list(history), data, cells)


def linear_rows(cell: str, theory: dict[str, float], exact: dict[str, tuple[float, float]]) -> list[Row]:
    """The theory's exact numbers of a linear network against the quadrature of `sampling.oracle`, which shares no code with it."""
    rows = []
    for name, other in EXACT_FOR_LINEAR.items():
        old, new = exact[other][0], theory[name]
        gap = abs(new - old) / abs(old)
        rows.append(
            Row(cell, "theory", f"{name} against exact {other}", old, new, z=gap, changed=not gap <= QUADRATURE)
        )
    return rows


def differences(old: Baseline, new: Baseline) -> list[Row]:
    """What an update changes, judged as a regression would be; cells of one side only are rows too."""
    rows = []
    before = {one.name: one for one in old.cells}
    for cell in new.cells:
        was = before.pop(cell.name, None)
        if was is None:
            rows.append(judge.missing(cell.name, "cell", "all", "new"))
            continue
        rows += judge.theory_rows(cell.name, was.theory, cell.theory)
        rows += judge.drawn_rows(cell.name, was.drawn, cell.drawn, was.probe, cell.probe)
        rows += judge.measured_rows(cell.name, was.measured, cell.measured)
    rows += [judge.missing(name, "cell", "all", "removed") for name in before]
    return judge.judge(rows)


def _chosen(baseline: Baseline, cells: Sequence[str] | None) -> list[Reference]:
    by_name = {one.name: one for one in baseline.cells}
    if cells is None:
        wanted = {one.name for one in CELLS}
        if set(by_name) != wanted:
            odd = sorted(set(by_name) ^ wanted)
            raise InputError(
                f"the baseline's cells are not those of this version ({', '.join(odd)}): update it, with the reason"
            )
        return baseline.cells
    unknown = [name for name in cells if name not in by_name]
    if unknown or not cells:
        raise InputError(f"cells: {(unknown or [''])[0]!r} is not one of {'; '.join(by_name)}")
    return [by_name[name] for name in dict.fromkeys(cells)]


def _data_rows(baseline: Baseline, keys: set[str]) -> list[Row]:
    """What the data package makes today against the arrays of the baseline."""
    same = _close(np.array(baseline.made.get("generator", [])), np.array(_generator()))
    rows = []
    for key in sorted(keys & set(DATA)):
        stored, fresh = baseline.data[key], load(key)
        for name in ARRAYS:
            old, new = getattr(stored, name), getattr(fresh, name)
            if old is None and new is None:
                continue
            if old is None or new is None or old.shape != new.shape:
                rows.append(judge.missing(key, "data", name, "its shape changed"))
                continue
            scale = float(np.abs(old).max())
            worst = float(np.abs(new - old).max())
            row = judge.deterministic(key, "data", name, scale, scale + worst, note="largest entry, and that + change")
            if row.changed and not same:
                other = "numpy's generator changed; theory and chains ran on the baseline's data"
                row = Row(key, "data", name, scale, scale + worst, z=row.z, note=other)
            rows.append(row)
    return rows


def _nan_row(cell: str, share: float) -> Row:
    changed = not share <= NAN_SHARE
    return Row(cell, "sampler", "share of energies that are NaN", 0.0, share, z=share, changed=changed)


def _close(old: np.ndarray, new: np.ndarray) -> bool:
    return old.shape == new.shape and bool(np.allclose(old, new, rtol=TOLERANCE, atol=0.0))


def _generator() -> list[float]:
    """First numbers of the kinds of draws that data and level 4 make: whether numpy's generator still is the one it was."""
    rng = np.random.default_rng(np.random.SeedSequence(0))
    found = [
        *rng.standard_normal(4),
        *rng.choice([-1.0, 1.0], size=8),
        *rng.permutation(8),
        *rng.choice(50, 5, replace=False),
    ]
    return [float(one) for one in found]


def _seed(salt: int, seed: int, index: int) -> int:
    if not isinstance(seed, int) or seed < 0:
        raise InputError(f"seed = {seed}: it must be a whole number >= 0")
    return int(np.random.SeedSequence([salt, seed, index]).generate_state(1, np.uint32)[0])


def _software() -> dict[str, str]:
    from compare.provenance import software

    return software()
