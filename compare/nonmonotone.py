"""The peak verdicts of a report: the measured curve and each level of the theory, width by width, over the same T."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.interpolate import PchipInterpolator

from compare.peak import FLAT, Peak, Temperature, curve_peak, measured_peak, slopes

if TYPE_CHECKING:
    from compare.cell import Cell
    from theory import Prediction

LEVELS = ("eq4", "eq3", "eq3_q_averaged", "first_order")  # infinite width does not depend on T


class Verdict(NamedTuple):
    """The Peak of one curve at one width: curve is "measured" or the name of a level; flat the bump that counts."""

    N1: int
    curve: str
    peak: Peak
    flat: float


def peaks(cells: Sequence[Cell], lines: Sequence[Prediction]) -> list[Verdict]:
    """Verdicts for every width that has at least three temperatures, the measured one first.

    A bump counts when it exceeds FLAT of the largest effect |measured - prior| over the temperatures of that width.
    """
    found = []
    for N1 in dict.fromkeys(cell.problem.N1 for cell in cells):
        some = sorted((c for c in cells if c.problem.N1 == N1), key=lambda c: c.problem.T)
        if len(some) < 3:
            continue
        flat = FLAT * max(abs(c.measurement.d2.mean - c.prediction.prior) for c in some)
        if not flat > 0:
            continue
        found.append(Verdict(N1, "measured", measured_peak(_temperatures(some), flat=flat), flat))
        curve = [p for p in lines if p.problem.N1 == N1]
        for name in LEVELS:
            points = [(p.problem.T, p.levels[name]) for p in curve if name in p.levels]
            if len(points) >= 3:
                T, levels = zip(*points, strict=True)
                peak = curve_peak(T, [one.value for one in levels], flat=flat, se=[one.se for one in levels])
                found.append(Verdict(N1, name, peak, flat))
    return found


def _temperatures(cells: Sequence[Cell]) -> list[Temperature]:
    x = np.log([cell.problem.T for cell in cells])
    between = PchipInterpolator(x, [cell.measurement.d2.mean for cell in cells]).derivative()(x)
    points = []
    for cell, derivative in zip(cells, between, strict=True):
        series, T = cell.run.series, cell.problem.T
        if int(cell.run.manifest.get("batch", 1)) == 1:
            slope = slopes(series["d2"], series["residual"], T)
        else:
            # Entries are means over batches of draws, whose covariance is not that of draws: the shape of the measured curve
            # gives the slope, without an error, so the witness abstains.
            slope = np.full(cell.run.chains, derivative)
        points.append(
            Temperature(
                T=T,
                mean=cell.measurement.d2.mean,
                se=cell.measurement.d2.se,
                chains=series["d2"].mean(1),
                slope=slope,
                converged=cell.measurement.converged,
            )
        )
    return points


def rows(verdicts: Sequence[Verdict]) -> Iterator[dict[str, Any]]:
    """One row a curve, for the table."""
    for one in verdicts:
        told = {key: value for key, value in vars(one.peak).items() if key != "slopes"}
        witness = told.pop("witness") if one.curve == "measured" else ""
        told.pop("witness", None)
        yield {"N1": one.N1, "curve": one.curve, "flat": one.flat, "witness": witness, **told}
