"""Old number against new: arithmetic for what is deterministic, tests at a stated family-wise false-alarm rate for what is sampled."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from scipy.optimize import brentq
from scipy.stats import f as f_distribution
from scipy.stats import nct, norm
from scipy.stats import t as student

from compare.regress.baseline import Measured

FALSE_ALARM = 5e-4  # of a whole run of the command, over all its tests together (Bonferroni): below 1 in 1000
TOLERANCE = (
    1e-9  # relative, of deterministic numbers: rounding of another BLAS stays well below it, a changed formula does not
)
POWER = 0.9  # of the shift that is said to be found
ROUNDING = 1e-12  # a standard error below this share of the mean is rounding of a constant
SPREAD = ("d2", "Q", "residual", "loglik")  # whose variance between chains says what a draw is worth


@dataclass(frozen=True)
class Row:
    """One number of one cell, old and new.

    kind   data, theory, level 4, measured, exact (measured against an exact answer), efficiency, sampler
    p      of a test; NaN for a deterministic number, which is `changed` where |new - old| > tolerance
    z      difference in standard errors of a test; relative difference of a deterministic number
    found  smallest shift of the mean that this test finds with probability POWER; NaN where it is not a test of a mean
    """

    cell: str
    kind: str
    name: str
    old: float
    new: float
    old_se: float = 0.0
    new_se: float = 0.0
    z: float = 0.0
    p: float = math.nan
    dof: float = math.inf
    changed: bool = False
    found: float = math.nan
    note: str = ""

    @property
    def tested(self) -> bool:
        return not math.isnan(self.p)


def deterministic(cell: str, kind: str, name: str, old: float, new: float, scale: float = 0.0, note: str = "") -> Row:
    """Changed where |new - old| > TOLERANCE max(|old|, scale), or new is not finite."""
    size = max(abs(old), scale)
    gap = abs(new - old)
    changed = not gap <= TOLERANCE * size
    relative = gap / size if size > 0 else (0.0 if gap == 0 else math.inf)
    return Row(cell, kind, name, old, new, z=math.copysign(relative, new - old), changed=changed, note=note)


def missing(cell: str, kind: str, name: str, note: str) -> Row:
    """A number that is on one side only."""
    return Row(cell, kind, name, math.nan, math.nan, z=math.nan, changed=True, note=note)


def theory_rows(cell: str, old: Mapping[str, float], new: Mapping[str, float]) -> list[Row]:
    """Deterministic numbers, each relative to itself."""
    rows = [deterministic(cell, "theory", name, old[name], new[name]) for name in old if name in new]
    return rows + _one_sided(cell, "theory", old, new)


def drawn_rows(
    cell: str,
    old: Mapping[str, tuple[float, float]],
    new: Mapping[str, tuple[float, float]],
    old_probe: tuple[float, ...],
    new_probe: tuple[float, ...],
) -> list[Row]:
    """Level 4: exact where it was made of the same draws; else, after a change of numpy's generator or of LAPACK, a test."""
    scale = max((abs(one) for one in old_probe), default=0.0)
    same = len(old_probe) == len(new_probe) and all(
        abs(a - b) <= TOLERANCE * scale for a, b in zip(old_probe, new_probe, strict=True)
    )
    rows = []
    for name in (one for one in old if one in new):
        (a, a_se), (b, b_se) = old[name], new[name]
        if same:
            exact = deterministic(cell, "level 4", name, a, b, scale=a_se)
            rows.append(replace(exact, old_se=a_se, new_se=b_se))
        else:
            other = "made of other draws (generator or LAPACK changed): a test, not arithmetic"
            row = mean_row(cell, "level 4", name, Measured(a, a_se, 0, 0), Measured(b, b_se, 0, 0), math.inf)
            rows.append(replace(row, note=other))
    return rows + _one_sided(cell, "level 4", old, new)


def mean_row(cell: str, kind: str, name: str, old: Measured, new: Measured, dof: float) -> Row:
    """Two-sided test of equal means; t with the smaller of the two numbers of degrees of freedom, which is conservative.

    Where neither side varies, arithmetic decides.
    """
    if not (math.isfinite(new.mean) and math.isfinite(new.se)):
        note = "the new value or its error is not finite"
        return Row(cell, kind, name, old.mean, new.mean, old.se, new.se, math.nan, 0.0, dof, True, note=note)
    se = math.hypot(old.se, new.se)
    size = max(abs(old.mean), abs(new.mean))
    if se <= ROUNDING * size or se == 0:
        return deterministic(cell, kind, name, old.mean, new.mean, scale=size, note="does not vary")
    z = (new.mean - old.mean) / se
    return Row(cell, kind, name, old.mean, new.mean, old.se, new.se, z, 2.0 * float(student.sf(abs(z), dof)), dof)


def measured_rows(cell: str, old: Mapping[str, Measured], new: Mapping[str, Measured]) -> list[Row]:
    """Means of fresh chains against those of the baseline, whose own errors count."""
    rows = [
        mean_row(cell, "measured", name, old[name], new[name], min(old[name].chains, new[name].chains) - 1.0)
        for name in old
        if name in new
    ]
    return rows + _one_sided(cell, "measured", old, new)


def exact_rows(cell: str, exact: Mapping[str, tuple[float, float]], new: Mapping[str, Measured]) -> list[Row]:
    """Means of chains against exact answers."""
    return [
        mean_row(cell, "exact", name, Measured(value, se, 0, 0), new[name], new[name].chains - 1.0)
        for name, (value, se) in exact.items()
        if name in new
    ]


def efficiency_rows(cell: str, old: Mapping[str, Measured], new: Mapping[str, Measured]) -> list[Row]:
    """Variance that one draw leaves in the mean of a chain: F test for fresh chains worth less than those of the baseline.

    old and new of the row are draws that are worth one independent draw of unit variance, se^2 chains length.
    """
    rows = []
    for name in SPREAD:
        if name not in old or name not in new:
            continue
        a, b = old[name], new[name]
        if min(a.se, b.se) <= ROUNDING * abs(a.mean) or not math.isfinite(b.se):
            continue
        before, after = (one.se**2 * one.chains * one.length for one in (a, b))
        p = float(f_distribution.sf(after / before, b.chains - 1, a.chains - 1))
        rows.append(
            Row(cell, "efficiency", name, before, after, z=float(norm.isf(max(p, 1e-300))), p=p, note="variance a draw")
        )
    return rows


def _one_sided(cell: str, kind: str, old: Iterable[str], new: Iterable[str]) -> list[Row]:
    gone, come = [name for name in old if name not in set(new)], [name for name in new if name not in set(old)]
    return [missing(cell, kind, name, "no longer computed") for name in gone] + [
        missing(cell, kind, name, "not in the baseline: update it") for name in come
    ]


def judge(rows: Iterable[Row], false_alarm: float = FALSE_ALARM) -> list[Row]:
    """The rows with every test decided at false_alarm/(number of tests), and the shift of the mean that each would find."""
    listed = list(rows)
    tests = sum(row.tested for row in listed)
    if not tests:
        return listed
    level = false_alarm / tests
    reach = {dof: detectable(level, dof) for dof in {row.dof for row in listed if row.tested}}
    out = []
    for row in listed:
        if row.tested:
            found = math.nan if row.kind == "efficiency" else reach[row.dof] * math.hypot(row.old_se, row.new_se)
            row = replace(row, changed=row.changed or row.p < level, found=found)
        out.append(row)
    return out


def confirmed(rows: Iterable[Row], again: Iterable[Row]) -> list[Row]:
    """The rows, where those that were made again by other chains, and did not change then, no longer count as changed."""
    second = {(row.cell, row.kind, row.name): row for row in again}
    out = []
    for row in rows:
        other = second.get((row.cell, row.kind, row.name))
        if row.changed and other is not None and not other.changed:
            row = replace(row, changed=False, note=f"not confirmed by other chains, z = {other.z:.1f}")
        out.append(row)
    return out


def detectable(level: float, dof: float, power: float = POWER) -> float:
    """Shift in standard errors that a two-sided test at `level` finds with probability `power` (noncentral t)."""
    threshold = float(student.isf(level / 2.0, dof))
    if math.isinf(dof):
        return threshold + float(norm.ppf(power))
    return float(brentq(lambda shift: nct.sf(threshold, dof, shift) - power, 0.5 * threshold, 2.0 * threshold + 10.0))
