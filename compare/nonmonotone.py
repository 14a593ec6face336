"""The peak verdicts of a report: the measured curve and each level of the theory, width by width, over the same T."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from compare.peak import FLAT, Peak, Temperature, curve_peak, measured_peak, slopes
from compare.peak_answer import PeakAnswer, answer, origin
from compare.reweight import FEWEST, reweighted

if TYPE_CHECKING:
    from compare.cell import Cell
    from compare.curve import Curve
    from theory import Prediction

MEASURED = ("measured", "d2_labels")
LEVELS = ("eq4", "eq3", "eq3_q_averaged", "first_order")  # infinite width does not depend on T


class Verdict(NamedTuple):
    """The Peak of one curve at one width; flat the bump that counts.

    curve  "measured", "d2_labels" (measured between the signs of y, where they are not the classes), or the name of a level
    """

    N1: int
    curve: str
    peak: Peak
    flat: float


def peaks(cells: Sequence[Cell], lines: Sequence[Prediction]) -> list[Verdict]:
    """Verdicts for every width that has at least three temperatures, the measured one first.

    A bump counts when it exceeds FLAT of the largest effect |measured - prior| over the temperatures of that width.
    """
    found = []
    for N1, some in _by_width(cells):
        curve = [p for p in lines if p.problem.N1 == N1]
        flat = _flat(some, "d2")
        if not flat > 0:
            continue
        found.append(Verdict(N1, "measured", _measured(some, "d2", flat), flat))
        between_labels = _flat(some, "d2_labels")
        if between_labels > 0:
            found.append(Verdict(N1, "d2_labels", _measured(some, "d2_labels", between_labels), between_labels))
        for name in LEVELS:
            points = [(p.problem.T, p.levels[name]) for p in curve if name in p.levels]
            if len(points) >= 3:
                T, levels = zip(*points, strict=True)
                peak = curve_peak(T, [one.value for one in levels], flat=flat, se=[one.se for one in levels])
                found.append(Verdict(N1, name, peak, flat))
    return found


def answers(cells: Sequence[Cell], verdicts: Sequence[Verdict]) -> list[PeakAnswer]:
    """The answer at every width that has a measured curve and Eq. (4)'s, from the verdicts of `peaks`."""
    found = []
    for N1, some in _by_width(cells):
        here = {one.curve: one.peak for one in verdicts if one.N1 == N1}
        flat = next((one.flat for one in verdicts if (one.N1, one.curve) == (N1, "measured")), 0.0)
        if "measured" not in here or "eq4" not in here:
            continue
        measured = here["measured"]
        delta2 = None
        if measured.outcome == "yes":
            delta2 = origin([c.problem.T for c in some], [c.measurement for c in some], measured.T_best)
        found.append(answer(N1, measured, here["eq4"], delta2, flat))
    return found


def _by_width(cells: Sequence[Cell]) -> Iterator[tuple[int, list[Cell]]]:
    """Widths that have at least three temperatures, with their cells in order of T."""
    for N1 in dict.fromkeys(cell.problem.N1 for cell in cells):
        some = sorted((c for c in cells if c.problem.N1 == N1), key=lambda c: c.problem.T)
        if len(some) >= 3:
            yield N1, some


def _flat(cells: Sequence[Cell], name: str) -> float:
    """The bump that counts: FLAT of the largest effect over the temperatures; 0 where the quantity was not measured everywhere."""
    if not all(name in cell.measurement.quantities for cell in cells):
        return 0.0
    means = np.array([cell.measurement.quantities[name].mean for cell in cells])
    if name == "d2":
        return float(FLAT * np.abs(means - np.array([cell.prediction.prior for cell in cells])).max())
    return float(FLAT * np.ptp(means))  # between the labels, whose prior term no prediction here gives


def _measured(cells: Sequence[Cell], name: str, flat: float) -> Peak:
    """The verdict on a measured curve: by reweighting where the runs allow it, otherwise through values and slopes."""
    curve, note = _reweighted(cells, name)
    return measured_peak(_temperatures(cells, name), flat=flat, curve=curve, note=note)


def _reweighted(cells: Sequence[Cell], name: str) -> tuple[Curve | None, str]:
    """The MBAR curve, or None and why not."""
    from sampling.agreement import within

    T = [cell.problem.T for cell in cells]
    runs = [cell.run for cell in cells]
    if len(T) < FEWEST:
        return None, f"fewer than {FEWEST} temperatures: no reweighting between them"
    recorded = {tuple(run.manifest.get("temperatures", ())) for run in runs}
    if any("loglik_T" not in run.series for run in runs) or len(recorded) != 1:
        return None, "the runs did not record log-likelihoods at common temperatures: no reweighting between them"
    if any(run.biased for run in runs):
        return None, "an unadjusted sampler's draws cannot be reweighted"
    if any(int(run.manifest.get("batch", 1)) != 1 for run in runs):
        return None, "the runs hold means over batches of draws, which cannot be reweighted"
    at, order = np.unique(np.array(recorded.pop()), return_index=True)
    if not all(np.isclose(at, t, rtol=1e-9).any() for t in T):
        return None, "the runs did not record log-likelihoods at every sampled temperature: no reweighting between them"
    values = [run.series[name] for run in runs]
    if any(np.ptp(value) == 0 or value.shape[1] < 4 for value in values):
        return None, "too few draws, or constant ones: no reweighting between temperatures"
    measured = [cell.measurement for cell in cells]
    anchors = (np.array([m.quantities[name].mean for m in measured]), [m.chain_means[name] for m in measured])
    curve = reweighted(
        np.array(T),
        values,
        [run.series["loglik_T"][..., order] for run in runs],
        at=at,
        tau=np.array([within(value).tau for value in values]),
        anchors=anchors if any(m.quantities[name].reduced for m in measured) else None,
    )
    return curve, "" if curve is not None else "neighbouring temperatures overlap too little for reweighting"


def _temperatures(cells: Sequence[Cell], name: str) -> list[Temperature]:
    points = []
    for cell in cells:
        series, T, measurement = cell.run.series, cell.problem.T, cell.measurement
        # Entries that are means over batches of draws have not the covariance of draws: the slope is then not known.
        single = int(cell.run.manifest.get("batch", 1)) == 1
        slope = slopes(series[name], series["residual"], T) if single else np.full(cell.run.chains, np.nan)
        one = measurement.quantities[name]
        points.append(
            Temperature(
                T=T,
                mean=one.mean,
                se=one.se,
                chains=measurement.chain_means[name],
                slope=slope,
                converged=measurement.converged,
            )
        )
    return points


def rows(verdicts: Sequence[Verdict]) -> Iterator[dict[str, Any]]:
    """One row a curve, for the table."""
    for one in verdicts:
        told = {key: value for key, value in vars(one.peak).items() if key != "slopes"}
        witness = told.pop("witness") if one.curve in MEASURED else ""
        told.pop("witness", None)
        yield {"N1": one.N1, "curve": one.curve, "flat": one.flat, "witness": witness, **told}
