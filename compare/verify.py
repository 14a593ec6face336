"""verify: the whole job for a list of widths and temperatures, and the same again from stored runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from compare import store, unfinished
from compare.cell import Cell
from compare.result import Report
from compare.verdict import MARGIN
from data.errors import InputError

if TYPE_CHECKING:
    from data.problem import Problem
    from sampling.run import Run
    from theory import Prediction

TARGET = 0.003  # standard error of <D^2> relative to <D^2>
CURVE = 25  # temperatures of a curve
Progress = Callable[[dict[str, Any]], None]
Stage = Callable[[str, int, int], Progress]


def verify(
    problems: Problem | Sequence[Problem],
    *,
    sampler: str = "hmc",
    target: float | None = None,
    budget_seconds: float | None = None,
    draws: int | None = None,
    seed: int = 0,
    margin: float = MARGIN,
    first_order: bool = True,
    out: str | Path | None = None,
    stage: Stage | None = None,
    **sampling: Any,
) -> Report:
    """Predict, sample, and compare; with `out`, write the report there too.

    problems   Problems on one data set that differ in N1 and T only, such as [Problem(dataset, 100, T) for T in (0.01, 0.1, 1)]
    target     wanted standard error of <D^2> relative to <D^2> (0.003 when neither draws nor target is given)
    budget_seconds   most sampling time for each problem
    seed       of the chains (each problem takes its own stream of it) and of level 4
    margin     of the equivalence tests, as a share of the effect |measured - prior|
    first_order  compute level 4, the first-order-exact one
    out        folder for report.html, report.json, tables, figures and runs; interrupted, the same call goes on where it stopped
    stage      called with (name, number, of) before each step; returns the callback for its progress events
    sampling   passed on to sampling.run: chains, warmup, starts, device, dtype, and the sampler's own

    Returns the Report: .levels, .budget, .weights_fit, .convergence and others are pandas tables; .cells[i].run is the Run.
    Raises InputError for bad input, sampling.Interrupted after Ctrl-C.
    """
    listed = checked(problems)
    if not 0 < margin < 1:
        raise InputError(f"margin = {margin}: it is a share of the effect, between 0 and 1")
    asked = {"target": target, "budget_seconds": budget_seconds, "draws": draws, **sampling}
    check_sampling(listed[0], sampler, seed=seed, **asked)
    told = staged(stage)
    settings = {"margin": margin, "first_order": first_order, "seed": seed, "target": target, "draws": draws}
    settings |= {"budget_seconds": budget_seconds}
    predictions, lines = predicted(listed, first_order, seed, told)
    runs = sample(listed, sampler=sampler, seed=seed, out=out, stage=stage, **asked)
    report = Report([Cell.of(p, r, margin) for p, r in zip(predictions, runs, strict=True)], lines, settings)
    if out is not None:
        store.save_settings(Path(out), settings)
        report.write(out)
    return report


def sample(
    problems: Problem | Sequence[Problem],
    *,
    sampler: str = "hmc",
    seed: int = 0,
    out: str | Path | None = None,
    stage: Stage | None = None,
    **sampling: Any,
) -> list[Run]:
    """The chains alone, one Run a problem in the order given; with `out`, stored there with the data set.

    Runs that an interrupted call with the same arguments finished are taken from `out`; the unfinished one resumes.
    """
    from sampling import run
    from sampling.held_out import digest
    from sampling.run import Run

    listed = checked(problems)
    check_sampling(listed[0], sampler, seed=seed, **sampling)
    told = staged(stage)
    folder = None if out is None else Path(out)
    test = digest(listed[0].dataset)
    request = {
        "sampler": sampler,
        "seed": seed,
        "problems": [p.fingerprint for p in listed],
        "held_out": test,
        **sampling,
    }
    if folder is not None:
        _begin(folder, request)
        store.save_dataset(listed[0].dataset, folder)
    found = []
    for index, problem in enumerate(listed):
        path = None if folder is None else store.run_path(folder, problem)
        if path is not None and path.exists():
            found.append(Run.load(path))
            continue
        name = f"N1 = {problem.N1}, T = {problem.T:g}"
        one = run(
            problem,
            sampler,
            seed=_seed(seed, index),
            checkpoint=None if folder is None else store.checkpoint_path(folder, problem),
            save=path,
            progress=told(name, index + 1, len(listed)),
            **{"temperatures": _ladder(problem, listed, str(sampling.get("device", "cpu"))), **sampling},
        )
        found.append(one)
    if folder is not None:
        (folder / UNFINISHED).unlink(missing_ok=True)
    return found


def _ladder(problem: Problem, listed: list[Problem], device: str) -> list[float] | None:
    """The temperatures at which a run records log-likelihoods, for reweighting between those of its width (compare.reweight).

    All of them and the points midway, where there are enough and neighbours are near enough to overlap. On a GPU the small
    eigenproblems of every draw cost more than the draw does: there they are left out.
    """
    from compare.reweight import FEWEST, REACH

    T = np.array(sorted(p.T for p in listed if p.N1 == problem.N1))
    if device != "cpu" or len(T) < FEWEST or (T[1:] / T[:-1]).max() > REACH:
        return None
    return sorted([*T.tolist(), *np.sqrt(T[1:] * T[:-1]).tolist()])


def reread(folder: str | Path, *, stage: Stage | None = None) -> Report:
    """The Report of a folder that `verify` or `sample` wrote: everything downstream of the runs is computed anew.

    Raises InputError where the folder holds no runs, one is damaged, or a run was made on other data.
    """
    folder = Path(folder)
    dataset = store.load_dataset(folder)
    runs = store.load_runs(folder)
    problems = checked([store.problem_of(run, dataset) for run in runs])
    settings = {"margin": MARGIN, "first_order": True, "seed": 0} | store.load_settings(folder)
    predictions, lines = predicted(problems, bool(settings["first_order"]), int(settings["seed"]), staged(stage))
    by_fingerprint = {run.manifest["problem"]["fingerprint"]: run for run in runs}
    cells = [Cell.of(p, by_fingerprint[p.problem.fingerprint], float(settings["margin"])) for p in predictions]
    return Report(cells, lines, settings)


def checked(problems: Problem | Sequence[Problem]) -> list[Problem]:
    from data.problem import Problem

    listed = [problems] if isinstance(problems, Problem) else list(problems)
    if not listed:
        raise InputError("no problems: give at least one width and temperature")
    one = listed[0]
    for p in listed:
        if p.T == 0:
            raise InputError("T = 0 is the theory's limit: the posterior has no chains there; give T > 0")
        same = (p.lambda0, p.lambda1, p.activation) == (one.lambda0, one.lambda1, one.activation)
        if not same or p.dataset.fingerprint != one.dataset.fingerprint:
            raise InputError(
                "one report holds one data set, lambda0, lambda1 and activation: call verify once for each"
            )
    if len({p.fingerprint for p in listed}) < len(listed):
        raise InputError("the same width and temperature stands twice in the list of problems")
    return listed


def check_sampling(problem: Problem, sampler: str, **asked: Any) -> None:
    """Refuse bad settings of the chains before anything costs time: the theory runs first."""
    from sampling import run
    from sampling.settings import Settings
    from sampling.starts import KINDS

    try:
        bound = inspect.signature(run).bind(problem, sampler, **asked)
    except TypeError as error:
        raise InputError(f"sampling: {error}") from error
    bound.apply_defaults()
    given = bound.arguments
    names = [name for name in inspect.signature(Settings.of).parameters if name != "options"]
    Settings.of(**{name: given[name] for name in names}, options=given["options"])
    for kind in given["starts"]:
        if kind not in KINDS:
            raise InputError(f"starts: {kind!r} is not a kind of start; choose from {', '.join(KINDS)}")
    draws, target, budget = given["draws"], given["target"], given["budget_seconds"]
    if draws is not None and draws < 1:
        raise InputError(f"draws = {draws}: at least one draw a chain")
    if target is not None and not 0 < target < 1:
        raise InputError(f"target = {target}: the relative standard error of <D^2> must lie between 0 and 1")
    if budget is not None and not budget > 0:
        raise InputError(f"budget = {budget}: the most seconds to sample a temperature must be > 0")


def staged(stage: Stage | None) -> Stage:
    return stage or (lambda name, number, of: lambda event: None)


def _seed(seed: int, index: int) -> int:
    """A seed of its own for each problem, so that chains at two temperatures do not share their noise."""
    return int(np.random.SeedSequence([seed, index]).generate_state(1, np.uint32)[0])


def predicted(
    problems: list[Problem], first_order: bool, seed: int, stage: Stage
) -> tuple[list[Prediction], list[Prediction]]:
    """Predictions of the cells, in their order, and on a grid of T for the curves; level 4 drawn once for all."""
    from theory import predict_grid
    from theory.first_order import Settings

    one = problems[0]
    T = sorted({p.T for p in problems})
    several = len(T) > 1
    # Between the temperatures of the cells; one temperature alone gets a decade on either side, without level 4.
    grid = np.geomspace(T[0], T[-1], CURVE) if several else np.geomspace(T[0] / 10, T[0] * 10, CURVE)
    between = [t for t in grid.tolist() if not np.isclose(t, T, rtol=1e-9).any()]
    settings = Settings(seed=seed, progress=stage("theory", 1, 1)) if first_order else None
    common: dict[str, Any] = {
        "N1": list(dict.fromkeys(p.N1 for p in problems)),
        "lambda1": [one.lambda1],
        "lambda0": one.lambda0,
        "activation": one.activation,
    }
    found = predict_grid(one.dataset, T=T + between if several else T, first_order=settings, **common)
    by_fingerprint = {p.problem.fingerprint: p for p in found}
    cells = [by_fingerprint[p.fingerprint] for p in problems]
    lines = found if several else predict_grid(one.dataset, T=between + T, spectrum=found[0].spectrum, **common)
    return cells, sorted(lines, key=lambda p: (p.problem.N1, p.problem.T))


UNFINISHED = "unfinished.json"


def _begin(folder: Path, request: dict[str, Any]) -> None:
    """Keep the runs of an interrupted call with this request; what any other call left is removed."""
    if unfinished.done(folder / UNFINISHED, request) is not None:
        return
    (folder / store.STUDY).unlink(missing_ok=True)  # what lay there is not what `report` shall find
    runs = store.own(folder, store.RUNS)
    for old in [*runs.glob("*.nc"), *runs.glob("*.checkpoint")]:
        old.unlink()
    unfinished.write(folder / UNFINISHED, request, set())
