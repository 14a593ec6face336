"""verify_subsets: the whole job on several data subsets and on controls, resumable, and the same again from stored runs."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compare import controls as control
from compare import store, unfinished
from compare.cell import Cell
from compare.payload import dumps
from compare.result import Report
from compare.study import MAIN, Series, Study, light
from compare.verdict import MARGIN
from compare.verify import Stage, check_sampling, checked, predicted, reread, sample, staged
from data.errors import InputError
from data.subsets import seeds

if TYPE_CHECKING:
    from data.problem import Problem

UNFINISHED = "unfinished-study.json"
FOLDER = re.compile(r"([a-z0-9-]+/)?subset-[1-9][0-9]{0,4}")


@dataclass(frozen=True, eq=False)
class Part:
    """One Report to be made: a series on a subset, where it lies, its problems and seed."""

    series: str
    title: str
    folder: str
    problems: list[Problem]
    seed: int


def verify_subsets(
    subsets: Sequence[Problem | Sequence[Problem]],
    *,
    controls: Sequence[str] = (),
    sampler: str = "hmc",
    target: float | None = None,
    budget_seconds: float | None = None,
    draws: int | None = None,
    seed: int = 0,
    margin: float = MARGIN,
    first_order: bool = True,
    out: str | Path | None = None,
    stage: Stage | None = None,
    how: str = "",
    **sampling: Any,
) -> Study:
    """Predict, sample and compare on every subset and control; what they say together is the Study.

    subsets   the problems of each data subset, as `compare.verify` takes them, with the same widths and temperatures in each: one
              subset (for its controls), or three or more. `data.subsets.subsets` makes the data sets and says `how`
    controls  names of compare.controls.ABOUT; each runs on every subset
    out       folder: subset-1, subset-2, ... and CONTROL/subset-1, ... hold a normal report each, the summary stands at the top.
              Interrupted, the same call goes on where it stopped. Without it the draws are kept in memory
    All else is as for `compare.verify`. Chains and level 4 have streams of their own on each subset.
    Raises InputError for bad input, sampling.Interrupted after Ctrl-C.
    """
    listed = _listed(subsets)
    if not 0 < margin < 1:
        raise InputError(f"margin = {margin}: it is a share of the effect, between 0 and 1")
    asked: dict[str, Any] = {"target": target, "budget_seconds": budget_seconds, "draws": draws, **sampling}
    check_sampling(listed[0][0], sampler, seed=seed, **asked)
    told = staged(stage)
    parts = plan(listed, controls, seed)
    settings: dict[str, Any] = {"margin": margin, "first_order": first_order, "seed": seed, "target": target}
    settings |= {"draws": draws, "budget_seconds": budget_seconds, "controls": list(controls)}
    folder = None if out is None else Path(out)
    done: set[str] = set()
    request = {"sampler": sampler, "problems": _fingerprints(parts), **settings, **sampling}
    if folder is not None:
        done = _begin(folder, request)
    reports: dict[str, Report] = {}
    between: dict[str, Report] = {}
    for number, part in enumerate(parts):
        own = settings | {"seed": part.seed}
        words = _words(told, part, sum(len(p.problems) for p in parts[:number]), sum(len(p.problems) for p in parts))
        if folder is None:
            runs = sample(part.problems, sampler=sampler, seed=part.seed, stage=words, **asked)
            predictions, lines = predicted(part.problems, first_order, part.seed, words)
            cells = [Cell.of(p, run, margin) for p, run in zip(predictions, runs, strict=True)]
            report = Report(cells, lines, own)
        else:
            where = folder / part.folder
            if part.folder not in done:
                sample(part.problems, sampler=sampler, seed=part.seed, out=where, stage=words, **asked)
                store.save_settings(where, own)
                done.add(part.folder)
                unfinished.write(folder / UNFINISHED, request, done)
            report = reread(where, stage=words)
            report.write(where)
        reports[part.folder] = report
        seen = _between(part.series, report, words)
        if seen is not None:
            between[part.folder] = seen
        if folder is not None:
            light(report)
    study = Study(_series(parts, reports, between), how, settings)
    if folder is not None:
        _describe(folder, parts, how, settings)
        study.write(folder)
        (folder / UNFINISHED).unlink(missing_ok=True)
    return study


def plan(subsets: Sequence[Sequence[Problem]], controls: Sequence[str], seed: int) -> list[Part]:
    """Every Report to be made: the data on each subset, then the controls. Raises InputError for a control that says nothing."""
    count = len(subsets)
    chain_seeds = seeds(seed, count)
    titles = {MAIN: subsets[0][0].dataset.name}
    made = [Part(MAIN, titles[MAIN], f"subset-{k}", list(p), s) for k, p, s in _numbered(subsets, chain_seeds)]
    for name in dict.fromkeys(controls):
        if name not in control.ABOUT:
            raise InputError(f"{name!r} is no control; choose from {', '.join(control.ABOUT)}")
        # A control that shared its seed with the data, or with another control, would share its noise.
        place = 1 + list(control.ABOUT).index(name)
        own = [seeds(one, place + 1)[place] for one in chain_seeds]
        for k, problems, one in _numbered(subsets, own):
            some = control.problems(name, problems, one)
            made.append(Part(name, f"{name}: {control.ABOUT[name]}", f"{name}/subset-{k}", some, one))
    return made


def _numbered(subsets: Sequence[Sequence[Problem]], numbers: list[int]) -> list[tuple[int, Sequence[Problem], int]]:
    return [(k, problems, one) for k, (problems, one) in enumerate(zip(subsets, numbers, strict=True), 1)]


def _listed(subsets: Sequence[Problem | Sequence[Problem]]) -> list[list[Problem]]:
    listed = [checked(one) for one in subsets]
    if len(listed) not in (1, *range(3, len(listed) + 1)):
        raise InputError(
            f"{len(listed)} subsets: a spread between subsets needs three or more (or one, for its controls)"
        )
    first = [(p.N1, p.T) for p in listed[0]]
    same = ("lambda0", "lambda1", "activation", "P")
    for one in listed[1:]:
        if [(p.N1, p.T) for p in one] != first or any(
            getattr(one[0], key) != getattr(listed[0][0], key) for key in same
        ):
            raise InputError("every subset must have the same P, widths, temperatures, precisions and activation")
    if len({one[0].dataset.fingerprint for one in listed}) < len(listed):
        raise InputError("two subsets hold the same patterns: they are no independent samples of the data")
    return listed


def _words(stage: Stage, part: Part, before: int, total: int) -> Stage:
    """Stages of one part, counted over the whole study."""
    lead = part.folder if part.series != MAIN else part.folder.replace("-", " ")

    def told(name: str, at: int, of: int) -> Any:
        return stage(f"{lead}, {name}", before + at, total) if name != "theory" else stage(f"{lead}, {name}", 1, 1)

    return told


def _between(series: str, report: Report, stage: Stage) -> Report | None:
    """The report of the random-label control with the labels as classes, from the same chains; None for any other."""
    if series != control.RANDOM_LABELS:
        return None
    seen = [control.between_labels(cell.run, cell.problem) for cell in report.cells]
    found = [one for one in seen if one is not None]
    if len(found) < len(report.cells):
        return None
    first_order, seed = bool(report.settings["first_order"]), int(report.settings["seed"])
    predictions, lines = predicted([problem for _, problem in found], first_order, seed, stage)
    margin = float(report.settings["margin"])
    cells = [Cell.of(p, run, margin) for p, (run, _) in zip(predictions, found, strict=True)]
    return light(Report(cells, lines, report.settings))


def _series(parts: Sequence[Part], reports: dict[str, Report], between: dict[str, Report]) -> list[Series]:
    found = []
    for name in dict.fromkeys(part.series for part in parts):
        some = [part for part in parts if part.series == name]
        folders = [part.folder for part in some]
        found.append(Series(name, some[0].title, [reports[one] for one in folders], folders))
        if name == control.RANDOM_LABELS and all(one in between for one in folders):
            title = f"{name}: the same chains; distance between the patterns of either random label"
            found.append(Series(control.BETWEEN_LABELS, title, [between[one] for one in folders], folders))
    return found


def reread_subsets(folder: str | Path, *, stage: Stage | None = None) -> Study:
    """The Study of a folder that `verify_subsets` wrote, and every report in it: all after the runs is computed anew.

    The reports of the subsets are written again in their folders. Raises InputError where runs are missing, damaged or of other data.
    """
    folder = Path(folder)
    about = _description(folder)
    told = staged(stage)
    parts, reports, between = [], {}, {}
    for series, title, places in about["series"]:
        for place in places:
            report = reread(folder / place, stage=told)
            report.write(folder / place)
            parts.append(Part(series, title, place, [], 0))
            seen = _between(series, report, told)
            if seen is not None:
                between[place] = seen
            reports[place] = light(report)
    return Study(_series(parts, reports, between), about["how"], about["settings"])


def is_study(folder: str | Path) -> bool:
    """Whether `verify_subsets` wrote this folder last."""
    return (Path(folder) / store.STUDY).is_file()


def _describe(folder: Path, parts: Sequence[Part], how: str, settings: dict[str, Any]) -> None:
    names = dict.fromkeys((part.series, part.title) for part in parts)
    series = [[name, title, [part.folder for part in parts if part.series == name]] for name, title in names]
    store.replace(folder / store.STUDY, dumps({"how": how, "settings": settings, "series": series}))


def _description(folder: Path) -> dict[str, Any]:
    """What `_describe` wrote. Raises InputError where it is not that: the folder may come from anybody."""
    from data.subsets import HOW

    path = folder / store.STUDY
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        series = [(str(name), str(title), list(places)) for name, title, places in found["series"]]
        how, settings = str(found["how"]), dict(found["settings"])
        margin = settings["margin"]
        good = how in ("", *HOW) and series and isinstance(margin, int | float) and 0 < margin < 1
        known = (MAIN, *control.ABOUT)
        good = good and all(name in known and places for name, _, places in series)
        places = [place for _, _, some in series for place in some]
        good = good and all(isinstance(place, str) and FOLDER.fullmatch(place) for place in places)
        if not good or series[0][0] != MAIN or len({len(some) for _, _, some in series}) != 1:
            raise ValueError("it does not name series of subset folders")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{path} cannot be read ({error}): run verify --subsets again") from error
    return {"how": how, "settings": settings, "series": series}


def _fingerprints(parts: Sequence[Part]) -> list[list[Any]]:
    from sampling.held_out import digest

    return [
        [part.folder, part.seed, digest(part.problems[0].dataset), [p.fingerprint for p in part.problems]]
        for part in parts
    ]


def _begin(folder: Path, request: dict[str, Any]) -> set[str]:
    """Folders whose runs an interrupted call with this request finished; a new request starts afresh."""
    found = unfinished.done(folder / UNFINISHED, request)
    if found is None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / store.STUDY).unlink(missing_ok=True)
        unfinished.write(folder / UNFINISHED, request, set())
    return found or set()
