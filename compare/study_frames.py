"""A study as pandas tables: random effects over the subsets, cell by cell, and the answers on the peak."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from compare.budget import PARTS
from compare.peak_answer import PeakAnswer
from compare.peak_subsets import PeakAcross, peak_across
from compare.subsets import RandomEffects, across, random_effects
from data.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from compare.cell import Cell
    from compare.result import Report
    from compare.study import Series

EFFECTS = "se low high tau tau_low tau_high predicted_low predicted_high"
COLUMNS = {
    "answers": "series title N1 subsets has_maximum reason yes no open p witness T_min T_max T_peak T_low T_high factor T_eq4 place "
    "delta2 rise rise_se fall fall_se rise_share rise_share_se fall_share fall_share_se sentence",
    "peaks": "series title subset folder N1 has_maximum reason witness T_min T_max T_peak T_low T_high T_eq4 place delta2 rise_share "
    "rise_share_se fall_share fall_share_se sentence",
    "levels": f"series title N1 T alpha level subsets converged outcome reason measured value difference {EFFECTS} heterogeneity_p "
    "relative_to_effect relative_se relative_tau relative_predicted_low relative_predicted_high agree differ undecided",
    "budget": f"series title N1 T alpha part subsets value {EFFECTS} share share_se share_tau",
    "weights": f"series title N1 T subsets slope {EFFECTS} agree differ undecided",
    "cells": "series subset folder N1 T alpha measured measured_se prior eq4 outcome relative_to_effect relative_se ess rhat "
    "draws chains wall_seconds status reasons",
}
NAN = math.nan


def frame(name: str, rows: Iterable[dict[str, Any]]) -> pd.DataFrame:
    """A table with the columns of COLUMNS[name], in that order, also when there are no rows."""
    import pandas as pd

    return pd.DataFrame(list(rows), columns=COLUMNS[name].split())


def grouped(reports: Sequence[Report]) -> Iterator[list[Cell]]:
    """The cells of one width and temperature, one a subset, in the order of the first report."""
    by_place = [{(c.problem.N1, c.problem.T): c for c in report.cells} for report in reports]
    for place in by_place[0]:
        yield [cells[place] for cells in by_place]


def _effects(values: Sequence[float], errors: Sequence[float]) -> RandomEffects | None:
    """Random effects, or None where there are fewer than three subsets or a value is not known."""
    d, s = np.asarray(values, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    if len(d) < 3 or not np.isfinite(d).all() or not np.isfinite(s).all():
        return None
    try:
        return random_effects(d, s)
    except InputError:  # an error of 0 beside others: nothing was measured there
        return None


def _told(one: RandomEffects | None, value: float, se: float) -> dict[str, float]:
    """The columns EFFECTS; with one subset its own error and no spread."""
    if one is None:
        return dict.fromkeys(EFFECTS.split(), NAN) | {"se": se}
    return {name: float(getattr(one, name)) for name in EFFECTS.split()}


def _votes(outcomes: Sequence[str]) -> dict[str, int]:
    counts = {"agree": "agrees", "differ": "differs", "undecided": "inconclusive"}
    return {name: list(outcomes).count(word) for name, word in counts.items()}


def _place(series: Series, cell: Cell) -> dict[str, Any]:
    return {
        "series": series.name,
        "title": series.title,
        "N1": cell.problem.N1,
        "T": cell.problem.T,
        "alpha": cell.problem.alpha,
    }


def levels(series: Sequence[Series], margin: float) -> Iterator[dict[str, Any]]:
    """Every level of every series, width and temperature over the subsets; the theory and the chains of a subset are paired."""
    for one in series:
        for cells in grouped(one.reports):
            usable = [cell for cell in cells if cell.measurement.converged]
            for name in cells[0].prediction.levels:
                yield _place(one, cells[0]) | _level(name, cells, usable, margin)


def _level(name: str, cells: list[Cell], usable: list[Cell], margin: float) -> dict[str, Any]:
    outcomes = [cell.verdicts[name].outcome for cell in cells]
    told = {"level": name, "subsets": len(cells), "converged": len(usable)} | _votes(outcomes)
    shown = usable or cells
    told["measured"] = float(np.mean([cell.measurement.d2.mean for cell in shown]))
    told["value"] = float(np.mean([cell.prediction.levels[name].value for cell in shown]))
    if len(cells) == 1:
        verdict = cells[0].verdicts[name]
        told |= {"outcome": verdict.outcome, "reason": verdict.reason, "difference": verdict.difference}
        told |= {"relative_to_effect": verdict.relative_to_effect, "relative_se": verdict.relative_se}
        return told | _told(None, verdict.difference, verdict.difference_se)
    nothing = {"outcome": "inconclusive", "difference": NAN} | _told(None, NAN, NAN)
    if len(usable) < 3:
        return told | nothing | {"reason": f"only {len(usable)} of {len(cells)} subsets have a run that may be used"}
    measured = np.array([[cell.measurement.d2.mean, cell.measurement.d2.se] for cell in usable])
    predicted = np.array([[getattr(cell.prediction.levels[name], key) for key in ("value", "se")] for cell in usable])
    prior = np.array([cell.prediction.prior for cell in usable])
    try:
        found = across(*measured.T, *predicted.T, prior=prior, margin=margin)
    except InputError as error:
        return told | nothing | {"reason": str(error)}
    outcome, reason = found.outcome, found.reason
    if len(usable) < len(cells):
        # The subsets that are easy to sample are no random choice among all.
        outcome = "inconclusive"
        reason = (
            f"{len(cells) - len(usable)} of {len(cells)} subsets have no run that may be used; of the others: {reason}"
        )
    told |= {"outcome": outcome, "reason": reason, "difference": found.difference.mean}
    told |= _told(found.difference, NAN, NAN) | {"heterogeneity_p": found.difference.p}
    if found.relative is not None:
        r = found.relative
        told |= {"relative_to_effect": r.mean, "relative_se": r.se, "relative_tau": r.tau}
        told |= {"relative_predicted_low": r.predicted_low, "relative_predicted_high": r.predicted_high}
    return told


def budget(series: Sequence[Series]) -> Iterator[dict[str, Any]]:
    """The parts of measured - Eq. (4) and the total, over the subsets whose runs may be used; parts not computed are left out.

    Means of parts with random-effects weights of their own do not add up to the last digit; on each subset they do.
    """
    for one in series:
        for cells in grouped(one.reports):
            usable = [cell for cell in cells if cell.measurement.converged]
            if not usable or (len(cells) > 1 and len(usable) < 3):
                continue
            for name in (*PARTS, "total"):
                parts = [c.budget.total if name == "total" else c.budget.parts[name] for c in usable]
                if any(math.isnan(part.value) for part in parts):
                    continue
                shares = [cell.budget.share(name) for cell in usable]
                row = _place(one, cells[0]) | {"part": name, "subsets": len(usable)}
                found = _effects([p.value for p in parts], [p.se for p in parts])
                share = _effects([value for value, _ in shares], [error for _, error in shares])
                row["value"] = parts[0].value if found is None else found.mean
                row |= _told(found, parts[0].value, parts[0].se)
                alone = shares[0] if len(cells) == 1 else (NAN, NAN)
                row["share"], row["share_se"] = alone if share is None else (share.mean, share.se)
                yield row | {"share_tau": NAN if share is None else share.tau}


def weights(series: Sequence[Series]) -> Iterator[dict[str, Any]]:
    """Slope of measured on predicted <w w> over the subsets whose runs may be used."""
    for one in series:
        for cells in grouped(one.reports):
            fits = [cell.weights for cell in cells if cell.weights is not None and cell.measurement.converged]
            if not fits or (len(cells) > 1 and len(fits) < 3):
                continue
            found = _effects([w.fit.slope for w in fits], [w.fit.slope_se for w in fits])
            row = _place(one, cells[0]) | {"subsets": len(fits)} | _votes([w.outcome for w in fits])
            row["slope"] = fits[0].fit.slope if found is None else found.mean
            yield row | _told(found, fits[0].fit.slope, fits[0].fit.slope_se)


def cells(series: Sequence[Series]) -> Iterator[dict[str, Any]]:
    """One row a run."""
    for one in series:
        for subset, report in enumerate(one.reports, 1):
            for cell in report.cells:
                d2, verdict, manifest = cell.measurement.d2, cell.verdicts["eq4"], cell.run.manifest
                yield _place(one, cell) | {
                    "subset": subset,
                    "folder": _folder(one, subset),
                    "measured": d2.mean,
                    "measured_se": d2.se,
                    "prior": cell.prediction.prior,
                    "eq4": cell.prediction.levels["eq4"].value,
                    "outcome": verdict.outcome,
                    "relative_to_effect": verdict.relative_to_effect,
                    "relative_se": verdict.relative_se,
                    "ess": d2.ess,
                    "rhat": d2.rhat,
                    "draws": int(manifest["draws"]),
                    "chains": cell.run.chains,
                    "wall_seconds": float(sum(manifest["seconds"].values())),
                    "status": cell.status,
                    "reasons": "; ".join(cell.measurement.diagnosis.reasons),
                }


def _folder(series: Series, subset: int) -> str:
    return series.folders[subset - 1] if series.folders else ""


def peak_answers(reports: Sequence[Report]) -> list[tuple[int, list[PeakAnswer], PeakAcross | None]]:
    """(N1, the subsets' answers, the answer over subsets) for every width with three temperatures or more on all subsets."""
    found = []
    for first in reports[0].peak_answers:
        N1 = first.N1
        some = [next((a for a in report.peak_answers if a.N1 == N1), None) for report in reports]
        each = [one for one in some if one is not None]
        if len(each) < len(reports):
            continue
        over = None
        if len(reports) >= 3:
            rows = [sorted((c for c in r.cells if c.problem.N1 == N1), key=lambda c: c.problem.T) for r in reports]
            d2, se, prior = (
                np.array([[read(c) for c in row] for row in rows])
                for read in (
                    lambda c: c.measurement.d2.mean,
                    lambda c: c.measurement.d2.se,
                    lambda c: c.prediction.prior,
                )
            )
            good = np.array([[c.measurement.converged for c in row] for row in rows])
            over = peak_across([c.problem.T for c in rows[0]], d2, se, d2 - prior, each, converged=good)
        found.append((N1, each, over))
    return found


def answers(series: Sequence[Series]) -> Iterator[dict[str, Any]]:
    """The answer per data set: over the subsets where there are three or more, else of the one."""
    for one in series:
        for N1, each, over in one.answers:
            row = {"series": one.name, "title": one.title, "N1": N1, "subsets": len(each)}
            if over is None:
                votes = [a.has_maximum for a in each]
                row |= _answer(each[0]) | {"yes": votes.count("yes"), "no": votes.count("no")}
                yield row | {"open": votes.count("inconclusive")}
                continue
            told = {key: value for key, value in vars(over).items() if not isinstance(value, RandomEffects)}
            row |= told | {"has_maximum": over.outcome, "delta2": over.delta2, "sentence": over.sentence}
            for name in ("rise", "fall", "rise_share", "fall_share"):
                effects = getattr(over, name)
                row[name], row[f"{name}_se"] = (NAN, NAN) if effects is None else (effects.mean, effects.se)
            yield row


def _answer(one: PeakAnswer) -> dict[str, Any]:
    shares = (NAN, NAN, NAN, NAN) if one.delta2 is None else (*one.delta2.rise_share, *one.delta2.fall_share)
    names = ("rise_share", "rise_share_se", "fall_share", "fall_share_se")
    told = vars(one) | dict(zip(names, shares, strict=True))
    return told | {"delta2": "" if one.delta2 is None else one.delta2.outcome, "sentence": one.sentence}


def peaks(series: Sequence[Series]) -> Iterator[dict[str, Any]]:
    """The answer on each subset alone."""
    for one in series:
        for N1, each, _ in one.answers:
            for subset, answer in enumerate(each, 1):
                where = {"series": one.name, "title": one.title, "subset": subset, "folder": _folder(one, subset)}
                yield where | {"N1": N1} | _answer(answer)
