"""The job of `saddlecheck figures`: choose data, read or make chains, compute each table, draw each figure, write all with a page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from compare import store
from compare.paper import distance, kernels, scaling, weights
from compare.paper.points import Point, label_kind, main_group, read, sample
from compare.paper.sets import Chosen, choose, sizes
from compare.paper.settings import SCALING, Settings
from data.labels import relabel
from data.problem import Dataset, Problem

if TYPE_CHECKING:
    import pandas as pd

    from compare.report.figures import Figure

PAGE, FOLDER, CHAINS = "figures.html", "figures", "chains"
SAMPLED_T = (0.01, 0.1, 1.0)  # temperatures of D^2(T) that --sample makes chains at
SAMPLED_P = 200  # most patterns of a point of the scaling figure that --sample makes chains for
OF_RUNS = "data, widths and temperatures are those of the runs"
Stage = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Made:
    """One figure with its tables (name -> numbers; empty ones left out), its settings and the notes that a reader needs."""

    key: str
    figure: Figure
    tables: dict[str, pd.DataFrame]
    settings: dict[str, str]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Subject:
    """The data that D^2(T), Lambda2 and the kernels are of, and the runs that are on them, by kind of labels."""

    name: str
    datasets: dict[str, Dataset]
    points: dict[str, list[Point]]
    notes: tuple[str, ...]

    @property
    def main(self) -> str:
        """true, or what there is."""
        return next(iter(self.datasets))


def make(
    settings: Settings,
    *,
    runs: Path | None = None,
    chains: dict[str, Any] | None = None,
    out: Path | None = None,
    stage: Stage | None = None,
) -> list[Made]:
    """Every figure of `settings.only`, in the order of the page.

    runs    folder with runs: their data set, widths and temperatures take the place of those of `settings`
    chains  arguments of compare.sample: chains are made (or those in `out` used again) for points of every figure
    out     folder of the chains;  stage as for compare.verify

    Raises InputError for bad settings or a folder without runs.
    """
    found = [] if runs is None else read(runs)
    series, series_notes = _series(settings) if "scaling" in settings.only else ({}, [])
    subject = _subject(settings, found)
    if chains is not None:
        assert out is not None
        made = sample(_wanted(settings, subject, series), out / CHAINS, stage=stage, **chains)
        found = [*found, *made]
        subject = _with_points(subject, found)
    told = stage or (lambda _name, _at, _of: lambda event: None)
    makers: dict[str, Callable[[], Made]] = {
        "d2": lambda: _d2(settings, subject, told),
        "lambda2": lambda: _lambda2(settings, subject),
        "scaling": lambda: _scaling(settings, series, series_notes, found, stage),
        "kernels": lambda: _kernels(settings, subject, told),
    }
    return [makers[name]() for name in makers if name in settings.only]


def write(made: list[Made], folder: Path, settings: Settings) -> Path:
    """figures.html, and figures/NAME.svg, .pdf and .csv; returns the page's path."""
    from compare.paper.page import render
    from compare.report.figures import write_figures

    place = store.own(folder, FOLDER)
    place.mkdir(parents=True, exist_ok=True)
    for old in place.glob("*.csv"):
        old.unlink()
    write_figures([one.figure for one in made], place)
    for one in made:
        for name, table in one.tables.items():
            store.replace(place / f"{name}.csv", table.to_csv(index=False, lineterminator="\n"))
    return store.replace(folder / PAGE, render(made, settings))


def _subject(settings: Settings, points: list[Point]) -> Subject:
    main = next((group for kind in ("true", "random", "zero") if (group := main_group(points, kind))), None)
    if main is not None:
        dataset = main[0].problem.dataset
        kind = label_kind(dataset)
        datasets, name, notes = {kind: dataset}, dataset.name, [OF_RUNS]
        other = [p for p in main_group(points, "random") if np.array_equal(p.problem.dataset.X, dataset.X)]
        if kind == "true":
            datasets["random"] = other[0].problem.dataset if other else relabel(dataset, "random", settings.label_seed)
    else:
        chosen = choose(settings.data, settings.classes, settings.P, settings.seed)
        datasets = {kind: relabel(chosen.dataset, kind, settings.label_seed) for kind in ("true", "random")}
        name, notes = chosen.label, [chosen.note] if chosen.note else []
    P = next(iter(datasets.values())).P
    return _with_points(
        Subject(f"{name}, P = {P}" if f"P={P}" not in name.replace(" ", "") else name, datasets, {}, tuple(notes)),
        points,
    )


def _with_points(subject: Subject, points: list[Point]) -> Subject:
    """The subject with the runs on its data; where activation or precisions differ, those of the first run are kept."""
    on = {
        kind: [p for p in points if p.problem.dataset.fingerprint == data.fingerprint]
        for kind, data in subject.datasets.items()
    }
    first = next((p for listed in on.values() for p in listed), None)
    if first is not None:
        on = {kind: [p for p in listed if _network_of(p) == _network_of(first)] for kind, listed in on.items()}
    return replace(subject, points=on)


def _network_of(point: Point) -> tuple[str, float, float]:
    p = point.problem
    return p.activation, p.lambda0, p.lambda1


def _series(settings: Settings) -> tuple[dict[str, list[Chosen]], list[str]]:
    series, notes = {}, []
    for name, classes in SCALING:
        listed, told = sizes(name, classes, list(settings.sizes))
        series[listed[0].label] = listed
        notes += told
    return series, notes


def _network(settings: Settings, points: list[Point]) -> Settings:
    """The settings with the activation and precisions of the runs, where there are any."""
    if not points:
        return settings
    p = points[0].problem
    return replace(settings, activation=p.activation, lambda0=p.lambda0, lambda1=p.lambda1)


def _widths(settings: Settings, subject: Subject) -> list[int]:
    P = subject.datasets[subject.main].P
    ran = sorted({p.problem.N1 for listed in subject.points.values() for p in listed}, reverse=True)
    wanted = list(dict.fromkeys(settings.width(P, alpha) for alpha in settings.alphas))
    return ran[:6] if ran and OF_RUNS in subject.notes else wanted


def _temperatures(settings: Settings, subject: Subject) -> list[float]:
    ran = {p.problem.T for listed in subject.points.values() for p in listed}
    if not ran:
        return list(settings.temperatures)
    low, high = min(ran), max(ran)
    between = np.geomspace(low, high, 9).tolist() if high > low else np.geomspace(low / 10, low * 10, 9).tolist()
    wider = list(settings.temperatures) if OF_RUNS not in subject.notes else between
    return sorted({*ran, *(t for t in wider if not np.isclose(t, list(ran), rtol=1e-6).any())})


def _wanted(settings: Settings, subject: Subject, series: dict[str, list[Chosen]]) -> list[Problem]:
    """The problems that --sample makes chains for."""
    network = (settings.lambda0, settings.lambda1, settings.activation)
    found = []
    for kind, dataset in subject.datasets.items():
        cells: set[tuple[int, float]] = set()
        if "d2" in settings.only:
            cells |= {(width, T) for width in _widths(settings, subject) for T in SAMPLED_T}
        if kind == subject.main and {"lambda2", "kernels"} & set(settings.only):
            cells |= {(settings.width(dataset.P, alpha), settings.T) for alpha in (*settings.alphas, settings.alpha)}
        found += [Problem(dataset, width, T, *network) for width, T in sorted(cells)]
    for listed in series.values():
        small = [one.dataset for one in listed if one.dataset.P <= SAMPLED_P]
        found += [Problem(one, settings.width(one.P, settings.alpha), settings.T, *network) for one in small]
    return found


def _d2(settings: Settings, subject: Subject, told: Stage) -> Made:
    points = [p for listed in subject.points.values() for p in listed]
    settings = _network(settings, points)
    widths, T = _widths(settings, subject), _temperatures(settings, subject)
    theory = distance.table(subject.datasets, widths, T, settings, told("D^2 against T", 1, 1))
    ran = distance.measured(subject.points)
    ran = ran[ran["N1"].isin(widths)].reset_index(drop=True)
    about = _about(settings, subject) | {
        "loads α = P/N₁": ", ".join(f"{theory[theory['N1'] == n]['alpha'].iloc[0]:.3g} (N₁ = {n})" for n in widths),
        "temperatures": ", ".join(f"{t:.3g}" for t in T),
        "labels": f"{', '.join(subject.datasets)} (random: seed {settings.label_seed})",
        "level 4": f"standard error to {100 * settings.rel_error:g} % of the effect, seed {settings.draw_seed}"
        if settings.first_order
        else "left out",
    }
    return Made(
        "d2", distance.draw(theory, ran, subject.name), _tables("d2-against-T", theory, ran), about, subject.notes
    )


def _lambda2(settings: Settings, subject: Subject) -> Made:
    points = subject.points.get(subject.main, [])
    settings = _network(settings, points)
    dataset = subject.datasets[subject.main]
    T = _common_T(settings, points)
    here = [p for p in points if p.problem.T == T]
    basis = here[0].run.basis[:, : weights.DIRECTIONS] if here else weights.directions(dataset)
    N1 = settings.width(dataset.P, settings.alpha)
    grid = {settings.width(dataset.P, alpha) for alpha in np.geomspace(0.1, 10, weights.LOADS)}
    widths = sorted({*grid, N1, *(p.problem.N1 for p in here)}, reverse=True)
    lines = weights.table(dataset, basis, widths, settings, T)
    maps = weights.heat(dataset, basis, N1, settings, T)
    ran = weights.measured(here, basis.shape[1])
    about = _about(settings, subject) | {
        "temperature T": f"{T:g}",
        "heat maps at": f"α = {settings.alpha:g}, N₁ = {N1}",
        "directions": f"{basis.shape[1]}, made from X and the classes alone",
    }
    tables = _tables("lambda2-against-alpha", lines, ran) | {"lambda2-against-alpha-heat-maps": maps}
    return Made(
        "lambda2", weights.draw(lines, maps, ran, settings.alpha, N1, subject.name), tables, about, subject.notes
    )


def _scaling(
    settings: Settings, series: dict[str, list[Chosen]], notes: list[str], points: list[Point], stage: Stage | None
) -> Made:
    theory = scaling.table(series, settings, stage)
    ran = scaling.measured(series, points, settings)
    about = {
        "data": ", ".join(series),
        "choice of patterns": "the first P in file order; digits and fashion-mnist balanced; Gaussian inputs N₀ = "
        "100, seed 0",
        "load α, temperature T": f"{settings.alpha:g}, {settings.T:g}",
        "activation σ, λ₀, λ₁": f"{settings.activation}, {settings.lambda0:g}, {settings.lambda1:g}",
    }
    return Made(
        "scaling", scaling.draw(theory, ran, settings), _tables("scaling-of-yKy", theory, ran), about, tuple(notes)
    )


def _kernels(settings: Settings, subject: Subject, told: Stage) -> Made:
    points = subject.points.get(subject.main, [])
    settings = _network(settings, points)
    dataset = subject.datasets[subject.main]
    T, N1 = _common_T(settings, points), settings.width(dataset.P, settings.alpha)
    here = sorted((p for p in points if p.problem.T == T), key=lambda p: (abs(p.problem.N1 - N1), p.problem.N1))
    point = here[0] if here else None
    network = (settings.lambda0, settings.lambda1, settings.activation)
    problem = point.problem if point else Problem(dataset, N1, T, *network)
    rows = kernels.table(problem, settings, point, told("kernels", 1, 1))
    notes = list(subject.notes)
    if point is not None and point.status != "ok":
        notes.append(f"the run of the kernels is {point.status}")
    about = _about(settings, subject) | {"load α, N₁": f"{problem.alpha:.3g}, {problem.N1}", "temperature T": f"{T:g}"}
    return Made("kernels", kernels.draw(rows, problem, subject.name), {"kernels-by-class": rows}, about, tuple(notes))


def _common_T(settings: Settings, points: list[Point]) -> float:
    """The temperature of the figures at one T: that of the settings, or the one of the runs next to it."""
    ran = sorted({p.problem.T for p in points}, key=lambda t: (abs(np.log(t / settings.T)), t))
    return float(ran[0]) if ran else settings.T


def _about(settings: Settings, subject: Subject) -> dict[str, str]:
    dataset = subject.datasets[subject.main]
    return {
        "data": subject.name,
        "inputs N₀": str(dataset.N0),
        "checksum of the data": dataset.fingerprint[:16],
        "activation σ, λ₀, λ₁": f"{settings.activation}, {settings.lambda0:g}, {settings.lambda1:g}",
    }


def _tables(name: str, theory: pd.DataFrame, ran: pd.DataFrame) -> dict[str, pd.DataFrame]:
    return {name: theory} | ({f"{name}-measured": ran} if len(ran) else {})
