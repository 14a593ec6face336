"""`saddlecheck campaign`: plan, run, status, report, export. Heavy packages are imported inside commands."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from compare import flags
from compare.command import BAD_INPUT, FAILED, INTERRUPTED, NOT_CONVERGED, emit
from data.errors import InputError

AGAIN = ("failed", "inconclusive", "other-version")

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Grids of cells from one file: planned, run anywhere, tracked, and compared with the theory.",
    epilog="First steps: [bold]saddlecheck campaign plan SPEC.toml --out DIR[/bold], then [bold]run[/bold], [bold]status DIR[/bold], "
    "[bold]report DIR[/bold]. Specs of the paper's figures are in docs/campaigns.",
)

SpecFile = Annotated[Path, typer.Argument(metavar="SPEC", help="A .toml (or .yaml) file that describes the grid.")]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of a campaign.")]
Out = Annotated[Path, typer.Option("--out", help="Folder of the campaign: cells, catalogue, logs, reports.")]
DEFAULT_OUT = Path("saddlecheck-campaign")


def _load(spec: Path, out: Path) -> Any:
    """The checked spec; its errors one a line on stderr and exit status 2."""
    from sampling.campaign.check import load
    from sampling.campaign.spec import SpecError

    try:
        return load(spec, out)
    except SpecError as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(BAD_INPUT) from None


@app.command(epilog="Example: [bold]saddlecheck campaign plan docs/campaigns/d2-against-T.toml --out DIR[/bold]")
def plan(
    spec: SpecFile,
    out: Out = DEFAULT_OUT,
    calibrate: Annotated[
        bool,
        typer.Option("--calibrate/--no-calibrate", help="Run some cells for two seconds each to learn their cost."),
    ] = True,
    json: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """Dry run: check the spec, count its cells, estimate the cost of each class of cell and of all that are missing."""
    from compare.campaign_tables import classes, sentence
    from compare.payload import plain
    from compare.terminal import Progress, duration, print_table
    from sampling.campaign import runner
    from sampling.campaign.costs import Costs
    from sampling.campaign.costs import calibrate as run_trials

    checked = _load(spec, out)
    runner.prepare(checked, out)
    if calibrate:
        with Progress(quiet=quiet) as progress:
            known = runner.known_costs(out)
            tell = progress.say
            todo = (cell for cell, record in runner.records(out) if record.state in ("missing", "damaged"))
            run_trials(todo, out, known, report=lambda what, at, of: tell(f"calibration {at}/{of}: {what}"))
    found = runner.status(out)
    if json:
        emit(dict(plain(found.to_dict() | {"calibrated": bool(Costs.load(out).calibrated)})))
        return
    if not quiet:
        print_table(classes(found))
    print(sentence(found))
    print(f"Total: {found.cells} cells; work of the missing ones about {duration(found.work_left)} on one core or GPU.")


@app.command(
    epilog="Examples: [bold]saddlecheck campaign run SPEC.toml --out DIR[/bold]; [bold]... --engine local:4[/bold]; "
    "[bold]... --engine slurm[/bold]; [bold]... --engine dask:tcp://HOST:8786[/bold]. Running it again does just what is missing; "
    "without a SPEC it goes on with the campaign in DIR. Exit status: 0 done, 1 cells failed, 3 cells are inconclusive."
)
def run(
    spec: Annotated[Path | None, typer.Argument(metavar="[SPEC]", help="The file that describes the grid.")] = None,
    out: Out = DEFAULT_OUT,
    engine: Annotated[
        str, typer.Option("--engine", help="local, local:PROCESSES, serial, slurm, slurm:wait, dask:ADDRESS.")
    ] = "local",
    again: Annotated[
        str | None, typer.Option("--again", help=f"States whose cells are done again: {', '.join(AGAIN)}.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check/--no-check", help="First compare the checksum of every stored run.")
    ] = True,
    json: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """Have the missing cells done."""
    from compare.campaign_tables import sentence, states, worst
    from compare.payload import plain
    from compare.terminal import Progress, print_table
    from sampling.campaign import engines, runner

    asked = [one.strip() for one in (again or "").split(",") if one.strip()]
    for state in asked:
        if state not in AGAIN:
            raise InputError(f"--again {state}: choose among {', '.join(AGAIN)}")
    worker = engines.get(engine)
    checked = None if spec is None else _load(spec, out)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with Progress(quiet=quiet) as progress:
            told = Teller(progress)
            found = runner.run(checked, out, worker, report=told, again=asked, deep=check)
    except KeyboardInterrupt:
        print(f"stopped; `saddlecheck campaign run --out {out}` goes on from the checkpoints", file=sys.stderr)
        raise typer.Exit(INTERRUPTED) from None
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL if before is None else before)
    if json:
        emit(dict(plain(found.to_dict())))
    else:
        if not quiet:
            print_table(states(found))
            if found.worst:
                print_table(worst(found))
        print(sentence(found))
    if found.counts["failed"]:
        raise typer.Exit(FAILED)
    if found.counts["inconclusive"]:
        raise typer.Exit(NOT_CONVERGED)


class Teller:
    """Events of a campaign as one bar or one line an event: cells that ended, of those to do; notes as lines."""

    def __init__(self, progress: Any):
        self.progress = progress
        self.total = self.ended = 0
        self.bar: Any = None
        self.began = 0.0

    def __call__(self, event: Any) -> None:
        import time

        if event.kind == "submitted":
            self.total = self.ended + int(event.data.get("cells", 0))
            self.began = self.began or time.monotonic()
            self.progress.say(event.text)
        elif event.kind == "note":
            self.progress.say(event.text)
        elif event.kind == "finished":
            state = event.data.get("state")
            if state in ("failed", "again"):
                self.progress.say(
                    f"cell {event.cell} {'failed' if state == 'failed' else 'is tried again'}: {event.text}"
                )
            if state in ("done", "inconclusive", "failed"):
                self.ended += 1
                self._show(time.monotonic() - self.began)

    def _show(self, elapsed: float) -> None:
        self.bar = self.bar or self.progress.stage("campaign")
        total = max(self.total, self.ended)
        eta = elapsed / self.ended * (total - self.ended) if self.total else None
        self.bar({"phase": "cells", "done": self.ended, "total": self.total and total, "eta_s": eta})


@app.command(epilog="Example: [bold]saddlecheck campaign status DIR[/bold], from any shell that sees the folder.")
def status(
    folder: Folder,
    check: Annotated[bool, typer.Option("--check", help="Read every stored run and compare its checksum.")] = False,
    json: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """Where a campaign stands: done, running, failed, inconclusive, time left, and the cells that need a look."""
    from compare.campaign_tables import classes, sentence, states, worst
    from compare.payload import plain
    from compare.terminal import print_table
    from sampling.campaign import runner

    found = runner.status(folder, deep=check)
    if json:
        emit(dict(plain(found.to_dict())))
        return
    if not quiet:
        print_table(states(found))
        print_table(classes(found))
        if found.worst:
            print_table(worst(found))
    print(sentence(found))


@app.command(epilog="Example: [bold]saddlecheck campaign report DIR[/bold]")
def report(
    folder: Folder,
    first_order: flags.FirstOrder = True,
    margin: flags.Margin = 0.10,
    versions: Annotated[
        str,
        typer.Option("--versions", help="this: results of the present version only; any: all, marked in the table."),
    ] = "this",
    seed: flags.Seed = 0,
    json: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """Compare what is there with the theory: a report for each data set and one table of all cells."""
    from compare import campaign
    from compare.terminal import Progress

    with Progress(quiet=quiet) as progress:
        groups, frame = campaign.write(
            folder, stage=progress.stage, first_order=first_order, margin=margin, versions=versions, seed=seed
        )
    table = folder / campaign.FOLDER / f"{campaign.TABLE}.parquet"
    left_out = {name: why for group in groups for name, why in group.left_out.items()}
    made = [group for group in groups if group.ids]
    if json:
        shown = [{"name": one.name, "facts": one.facts, "cells": one.ids, "left_out": one.left_out} for one in groups]
        emit({"groups": shown, "table": str(table), "cells": len(frame), "left_out": len(left_out)})
        return
    if not quiet:
        for group in made:
            print(f"{folder / campaign.FOLDER / group.name}: {len(group.ids)} cells")
        for name, why in list(left_out.items())[:20]:
            print(f"left out: {name[:12]} {why}", file=sys.stderr)
    print(
        f"{len(made)} reports of {len(groups)} groups; {len(left_out)} of {len(frame)} cells left out. Table: {table}\n"
        f"Page: {folder / campaign.FOLDER / 'index.html'}"
    )


@app.command(epilog="Example: [bold]saddlecheck campaign collect REPORT1 REPORT2 --out DIR[/bold]")
def collect(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders that `saddlecheck verify` wrote.")],
    out: Annotated[Path, typer.Option("--out", help="Where index.html, its tables and its figures go.")],
    title: Annotated[str, typer.Option("--title", help="Title of the page.")] = "Reports",
    quiet: flags.Quiet = False,
) -> None:
    """One page over several reports of `verify`: outcomes, error of Eq. (4), peaks, every cell, with links to the reports."""
    from compare.report.collect import collect_folders
    from compare.terminal import Progress

    with Progress(quiet=quiet) as progress:
        page = collect_folders(folders, out, title=title, stage=progress.stage)
    print(f"Page: {page}")


@app.command(epilog="Example: [bold]saddlecheck campaign export DIR cells.parquet --theory[/bold]")
def export(
    folder: Folder,
    target: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write the table: .parquet or .csv.")],
    theory: Annotated[
        bool, typer.Option("--theory/--no-theory", help="Also levels, verdicts and budget, computed now.")
    ] = False,
    first_order: flags.FirstOrder = True,
    versions: Annotated[str, typer.Option("--versions", help="Whose results are compared: this or any.")] = "this",
    quiet: flags.Quiet = False,
) -> None:
    """Write one table of all cells: what was asked, state, numbers, versions."""
    from compare import campaign
    from compare.terminal import Progress

    with Progress(quiet=quiet) as progress:
        options: dict[str, Any] = {"first_order": first_order, "versions": versions, "stage": progress.stage}
        frame = campaign.table(folder, theory=theory, **(options if theory else {}))
    campaign.write_table(frame, target)
    print(f"{len(frame)} cells: {target}")
