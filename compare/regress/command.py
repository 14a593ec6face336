"""The `saddlecheck regress` command: what changed, in a table, and exit status 1 where anything did."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from compare import flags
from compare.command import FAILED, emit, stoppable
from data.errors import InputError

if TYPE_CHECKING:
    from compare.regress.baseline import Baseline
    from compare.regress.judge import Row
    from compare.regress.run import Outcome
    from compare.report.shown import Shown
    from compare.terminal import Progress

EPILOG = (
    "In a CI service: [bold]saddlecheck regress[/bold], and fail on its exit status (docs/ci.md). Exit status: 0 nothing changed, "
    "1 a number changed, 2 bad input. After an intended change: [bold]saddlecheck regress --update 'why'[/bold], and commit the file."
)
SHOWN = {"d2": "<D^2>", "Q": "Q", "fbar_a": "a.f", "residual": "residual", "<ww> class": "<w w>, class direction"}


def regress(
    baseline: Annotated[
        Path | None,
        typer.Option(
            "--baseline", help="The baseline's file. [default: reports/regression-baseline of the source tree]"
        ),
    ] = None,
    cells: Annotated[
        str | None, typer.Option("--cells", help="Some of the cells, by name, separated by semicolons. [default: all]")
    ] = None,
    sampling: Annotated[
        bool, typer.Option("--sampling/--no-sampling", help="Without sampling: theory numbers alone, a few seconds.")
    ] = True,
    sampler: Annotated[
        str, typer.Option("--sampler", help="Sampler of the fresh chains: the baseline holds for every one.")
    ] = "hmc",
    make: Annotated[
        bool, typer.Option("--make-baseline", help="Make the baseline by long runs; refuses to replace one.")
    ] = False,
    update: Annotated[
        str | None,
        typer.Option("--update", metavar="REASON", help="Make it anew in place of the old; the reason is kept."),
    ] = None,
    seed: flags.Seed = 0,
    json: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """CI regression at small N: fixed cells, anew, against the checked-in baseline. Under two minutes on two cores."""
    from compare.regress import baseline as files
    from compare.regress import run
    from compare.terminal import Progress, print_table

    path = files.DEFAULT if baseline is None else baseline
    wanted = None if cells is None else [one.strip() for one in cells.split(";") if one.strip()]
    if make or update is not None:
        _check_making(path, make, update, wanted, sampling, sampler)
        with stoppable(), Progress(quiet=quiet) as progress:
            _make(path, update, seed, json, progress)
        return
    stored = files.read(path)
    with stoppable(), Progress(quiet=quiet) as progress:
        found = run.regress(stored, seed=seed, sampler=sampler, cells=wanted, sampling=sampling, stage=progress.stage)
    if json:
        emit(found.to_dict())
    else:
        if found.changed:
            print_table(table(found.changed, "What changed"))
        for line in summary(found) if not quiet else summary(found)[:1]:
            print(line)
    if not found.passed:
        raise typer.Exit(FAILED)


def _check_making(
    path: Path, make: bool, update: str | None, cells: list[str] | None, sampling: bool, sampler: str
) -> None:
    """Refuse before the long runs what would be refused after them."""
    if make and update is not None:
        raise InputError("--make-baseline and --update exclude each other: the first makes one where there is none")
    if cells is not None or not sampling or sampler != "hmc":
        raise InputError("a baseline is made of all cells, by hmc: leave out --cells, --no-sampling and --sampler")
    if make and path.exists():
        raise InputError(f"{path} exists: a baseline is only replaced with `saddlecheck regress --update REASON`")
    if update is not None and not update.strip():
        raise InputError("--update needs the reason why the numbers change: it is kept in the file")
    if update is not None and not path.exists():
        raise InputError(f"there is no baseline at {path} to update: use --make-baseline")


def _make(path: Path, update: str | None, seed: int, json: bool, progress: Progress) -> None:
    from compare.regress import baseline as files
    from compare.regress import run
    from compare.terminal import print_table

    old: Baseline | None = None if update is None else files.read(path)
    history = [] if old is None else [*old.history, {"reason": update, "replaced": old.made}]
    new = run.make_baseline(seed=seed, stage=progress.stage, history=history)
    rows = [] if old is None else [row for row in run.differences(old, new) if row.changed]
    new.write(path)
    if json:
        emit({"written": str(path), "made": new.made, "changed": [vars(row) for row in rows]})
        return
    if rows:
        print_table(table(rows, "What the update changed"))
    checked = new.made["checked"]
    print(
        f"{path}: {len(new.cells)} cells; agreed with {checked['exact answers']} exact answers, with "
        f"{checked['against another sampler']['tests']} means by {run.CHECK['sampler']}, and with "
        f"{checked['theory against quadrature']} quadratures; largest |z| {checked['largest |z|']:.1f}"
    )


def table(rows: list[Row], caption: str) -> Shown:
    """Old, new and z of these rows."""
    from compare.report.shown import Cell, Shown
    from compare.report.wording import with_error

    columns = [
        ("cell", ""),
        ("number", ""),
        ("kind", "theory and data: arithmetic; level 4, measured, exact, efficiency: tests"),
        ("old", "of the baseline, or the exact answer"),
        ("new", "of this run"),
        ("difference", "in standard errors (z), or relative"),
        ("p", ""),
        ("why", ""),
    ]

    def value(number: float, se: float) -> Cell:
        return Cell(with_error(number, se) if se > 0 else f"{number:.12g}", number, "num")

    lines = []
    for row in sorted(rows, key=lambda one: (one.cell, one.kind)):
        far = f"{row.z:+.1f} standard errors" if row.tested else f"{row.z:+.1e} of it"
        lines.append(
            [
                Cell(row.cell),
                Cell(row.name),
                Cell(row.kind),
                value(row.old, row.old_se),
                value(row.new, row.new_se),
                Cell(far, row.z, "num"),
                Cell(f"{row.p:.1e}" if row.tested else "–", row.p, "num"),
                Cell(row.note or "changed"),
            ]
        )
    return Shown("changed", caption, columns, lines)


def summary(found: Outcome) -> list[str]:
    """The verdict in a line, then what this run could and could not have found."""
    from compare.regress.judge import FALSE_ALARM, POWER, TOLERANCE

    arithmetic = sum(not row.tested for row in found.rows)
    numbers = f"{arithmetic} numbers to {TOLERANCE:g} and {found.tests} tests in {found.seconds:.0f} s"
    if found.passed:
        lines = [f"regress: nothing changed ({numbers})"]
    else:
        kinds = ", ".join(sorted({f"{row.cell} ({row.kind})" for row in found.changed}))
        lines = [f"regress: {len(found.changed)} of {len(found.rows)} numbers changed: {kinds} ({numbers})"]
    if not found.tests:
        return lines
    shares = found.power()
    reach = "; ".join(
        f"{label} {100 * shares[name]['median']:.2g}% (worst cell {100 * shares[name]['worst']:.2g}%)"
        for name, label in SHOWN.items()
        if name in shares
    )
    lines.append(
        f"False alarms: fewer than {FALSE_ALARM:g} a run, over all tests together, the baseline's errors counted."
    )
    lines.append(f"Found with probability {POWER:g} in a typical cell: a shift of {reach}.")
    if not found.passed:
        lines.append(
            "A real change fails with any --seed too. After an intended one: saddlecheck regress --update REASON."
        )
    return lines
