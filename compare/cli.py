"""The `saddlecheck` command. Heavy packages are imported inside commands, so that `--help` is instant."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from compare import bias_cli, evidence_cli, figures_cli, flags
from compare.campaign_cli import app as campaign_app
from compare.command import BAD_INPUT, FAILED, INTERRUPTED, NOT_CONVERGED, emit, sampling, stoppable
from compare.command import problems as problems_of
from compare.regress import command as regression
from data.errors import InputError

DEFAULT_T = "0.01,0.03,0.1,0.3,1"
DEFAULT_OUT = Path("saddlecheck-report")
# typer carries its own copy of click in some versions: the base of all usage errors is found without importing either.
_UsageError: Any = typer.BadParameter.__mro__[2]


class _Group(TyperGroup):
    """Turns bad input into one line on stderr and exit status 2, whether typer or saddlecheck found it."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        try:
            status = super().main(args, prog_name, complete_var, False, windows_expand_args, **extra)
        except InputError as error:
            status = _refuse(str(error))
        except _UsageError as error:
            message = error.format_message()
            if not message:  # no command given: typer has printed the help
                status = BAD_INPUT
            else:
                status = _refuse(message)
        except (typer.Abort, KeyboardInterrupt):
            print("interrupted", file=sys.stderr)
            status = INTERRUPTED
        if standalone_mode:
            sys.exit(status if isinstance(status, int) else 0)
        return status


def _refuse(message: str) -> int:
    print("error: " + " ".join(message.split()), file=sys.stderr)
    return BAD_INPUT


app = typer.Typer(
    cls=_Group,
    name="saddlecheck",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Monte Carlo verification of the saddle-point theory of Bayesian one-hidden-layer networks (arXiv:2508.20989).",
    epilog="Exit status: 0 done, whatever the verdict; 2 bad input; 3 chains not converged (the result is written, marked "
    "inconclusive). First steps: [bold]saddlecheck verify[/bold]",
)


def _version(show: bool) -> None:
    if show:
        from data.provenance import version

        print(f"saddlecheck {version()}")
        raise typer.Exit()


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass


@app.command(
    epilog="Examples: [bold]saddlecheck predict --data digits --P 100 --N1 50,100 --T 0.01,0.1,1[/bold]; "
    "[bold]saddlecheck predict --data mine.npz --alpha 1 --T 0.001..10 --json[/bold]"
)
def predict(
    data: flags.Data = "digits",
    classes: flags.Classes = None,
    P: flags.P = None,
    P_test: flags.PTest = 0,
    labels: flags.Labels = "true",
    label_seed: flags.LabelSeed = 0,
    subset_seed: flags.SubsetSeed = None,
    balanced: flags.Balanced = None,
    standardise: flags.Standardise = None,
    N1: flags.N1 = None,
    alpha: flags.Alpha = None,
    T: flags.T = DEFAULT_T,
    T_points: flags.TPoints = None,
    lambda0: flags.Lambda0 = 1.0,
    lambda1: flags.Lambda1 = 1.0,
    activation: flags.Activation = "erf",
    first_order: flags.FirstOrder = True,
    seed: flags.Seed = 0,
    json: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """Theory only: saddle point, every level of the ladder for <D^2>, and the weights."""
    values = dict(locals())
    from compare.payload import common_problem, prediction_cell
    from compare.terminal import Progress, print_table

    problems = problems_of(values)
    with Progress(quiet=quiet) as progress:
        predictions = _predict(problems, first_order, seed, progress)
    if json:
        cells = [prediction_cell(one) for one in predictions]
        emit({"problem": common_problem(problems), "cells": cells})
    else:
        from compare.report.terminal_tables import predicted, predicted_held_out

        print_table(predicted(predictions))
        if predictions[0].generalisation is not None:
            print_table(predicted_held_out(predictions))


def _predict(problems: list[Any], first_order: bool, seed: int, progress: Any) -> list[Any]:
    """Predictions of all cells, in their order; level 4 drawn once for all of them."""
    from theory import predict_grid
    from theory.first_order import Settings

    one = problems[0]
    settings = Settings(seed=seed, progress=progress.stage("theory")) if first_order else None
    return predict_grid(
        one.dataset,
        N1=dict.fromkeys(p.N1 for p in problems),
        T=dict.fromkeys(p.T for p in problems),
        lambda1=[one.lambda1],
        lambda0=one.lambda0,
        activation=one.activation,
        first_order=settings,
    )


@app.command(
    epilog="With no arguments: digits, even against odd, P = N1 = 100, five temperatures; a few minutes on two cores. Examples: "
    "[bold]saddlecheck verify[/bold]; [bold]saddlecheck verify --data cifar10 --classes even/odd --P 1000 --N1 500 "
    "--T 0.01,0.1,1 --device cuda --out DIR[/bold]; [bold]saddlecheck verify --T 0.001..10 --subsets 10 --controls all[/bold]. "
    "Ctrl-C stops at a checkpoint; the same command goes on from there."
)
def verify(
    data: flags.Data = "digits",
    classes: flags.Classes = None,
    P: flags.P = None,
    P_test: flags.PTest = 0,
    labels: flags.Labels = "true",
    label_seed: flags.LabelSeed = 0,
    subset_seed: flags.SubsetSeed = None,
    balanced: flags.Balanced = None,
    standardise: flags.Standardise = None,
    N1: flags.N1 = None,
    alpha: flags.Alpha = None,
    T: flags.T = DEFAULT_T,
    T_points: flags.TPoints = None,
    lambda0: flags.Lambda0 = 1.0,
    lambda1: flags.Lambda1 = 1.0,
    activation: flags.Activation = "erf",
    first_order: flags.FirstOrder = True,
    sampler: flags.Sampler = "hmc",
    chains: flags.Chains = 16,
    draws: flags.Draws = None,
    warmup: flags.Warmup = None,
    target: flags.Target = 0.003,
    budget: flags.Budget = 60.0,
    starts: flags.Starts = "prior,aligned",
    device: flags.Device = "cpu",
    dtype: flags.Dtype = "float64",
    seed: flags.Seed = 0,
    margin: flags.Margin = 0.10,
    subsets: flags.Subsets = None,
    controls: flags.Controls = None,
    out: flags.Out = DEFAULT_OUT,
    json: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """The main job: theory, chains, error budget, verdict, and an HTML report."""
    values = dict(locals())
    from compare.result import PAGE
    from compare.terminal import Progress, print_table
    from compare.verify import verify as job

    if subsets is not None or controls is not None:
        from compare import study_cli

        with stoppable(), Progress(quiet=quiet) as progress:
            study = study_cli.verify(values, sampling(values), progress)
        if not study_cli.finish(study, out / PAGE, json, quiet):
            raise typer.Exit(NOT_CONVERGED)
        return
    problems = problems_of(values)
    with stoppable(), Progress(quiet=quiet) as progress:
        more: dict[str, Any] = {"margin": margin, "first_order": first_order, "out": out, "stage": progress.stage}
        report = job(problems, **sampling(values), **more)
    _finish(report, out / PAGE, json, quiet, print_table)


def _finish(report: Any, page: Path, json: bool, quiet: bool, print_table: Any) -> None:
    """Print a report and exit: 3 where a run is inconclusive. A biased sampler's run is not an unconverged one."""
    if json:
        emit(report.to_dict())
    else:
        if not quiet:
            from compare.report.tables import shown

            tables = shown(report)
            for name in ("levels", "budget", "generalisation", "weights_fit", "peak", "runs"):
                if name in tables:
                    print_table(tables[name])
        print(report.sentence)
        print(f"Report: {page}")
    if any(cell.measurement.diagnosis.status != "ok" for cell in report.cells):
        raise typer.Exit(NOT_CONVERGED)


@app.command(
    epilog="Example: [bold]saddlecheck sample --data digits --N1 100 --T 0.1 --sampler gibbs --out DIR[/bold], and later "
    "[bold]saddlecheck report DIR[/bold]"
)
def sample(
    data: flags.Data = "digits",
    classes: flags.Classes = None,
    P: flags.P = None,
    P_test: flags.PTest = 0,
    labels: flags.Labels = "true",
    label_seed: flags.LabelSeed = 0,
    subset_seed: flags.SubsetSeed = None,
    balanced: flags.Balanced = None,
    standardise: flags.Standardise = None,
    N1: flags.N1 = None,
    alpha: flags.Alpha = None,
    T: flags.T = DEFAULT_T,
    T_points: flags.TPoints = None,
    lambda0: flags.Lambda0 = 1.0,
    lambda1: flags.Lambda1 = 1.0,
    activation: flags.Activation = "erf",
    sampler: flags.Sampler = "hmc",
    chains: flags.Chains = 16,
    draws: flags.Draws = None,
    warmup: flags.Warmup = None,
    target: flags.Target = 0.003,
    budget: flags.Budget = 60.0,
    starts: flags.Starts = "prior,aligned",
    device: flags.Device = "cpu",
    dtype: flags.Dtype = "float64",
    seed: flags.Seed = 0,
    out: flags.Out = DEFAULT_OUT,
    json: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """Chains only: one NetCDF file a cell, which `report` compares with the theory later."""
    values = dict(locals())
    from compare import store
    from compare.measure import Measurement
    from compare.payload import cell_problem, common_problem
    from compare.report.terminal_tables import measured
    from compare.terminal import Progress, print_table
    from compare.verify import sample as job

    problems = problems_of(values)
    with stoppable(), Progress(quiet=quiet) as progress:
        runs = job(problems, **sampling(values), out=out, stage=progress.stage)
    found = [Measurement.of(run) for run in runs]
    if json:
        cells = [
            {
                "problem": cell_problem(problem),
                "N1": problem.N1,
                "T": problem.T,
                "status": one.diagnosis.status,
                "reasons": list(one.diagnosis.reasons),
                "biased": one.biased,
                "measured": {name: vars(quantity) for name, quantity in one.quantities.items()},
                "run": str(store.run_path(out, problem)),
            }
            for problem, one in zip(problems, found, strict=True)
        ]
        emit({"problem": common_problem(problems), "cells": cells})
    elif not quiet:
        print_table(measured(problems, found))
        print(f"Runs: {out / store.RUNS}")
    if any(not one.diagnosis.ok for one in found):
        raise typer.Exit(NOT_CONVERGED)


@app.command(epilog="Example: [bold]saddlecheck report saddlecheck-report[/bold]")
def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that `verify` or `sample` wrote.")],
    json: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """Make the report again from stored runs: theory, budget and verdicts are computed anew."""
    from compare import study_cli
    from compare.result import PAGE
    from compare.terminal import Progress, print_table
    from compare.verify import reread

    with Progress(quiet=quiet) as progress:
        study = study_cli.report(folder, progress)
        found = None if study is not None else reread(folder, stage=progress.stage)
    if found is None:
        if not study_cli.finish(study, folder / PAGE, json, quiet):
            raise typer.Exit(NOT_CONVERGED)
        return
    _finish(found, found.write(folder), json, quiet, print_table)


@app.command(
    name="check-sampler",
    epilog="Examples: [bold]saddlecheck check-sampler hmc[/bold]; [bold]saddlecheck check-sampler gibbs --checks linear,geweke "
    "--controls[/bold]. Exit status 1 when a check fails; langevin, which is biased, must fail.",
)
def check_sampler(
    name: Annotated[str, typer.Argument(help="hmc, mala, underdamped, gibbs, tempering, nuts, langevin.")],
    checks: Annotated[str | None, typer.Option("--checks", help="Some of the checks, by name. [default: all]")] = None,
    effort: Annotated[float, typer.Option("--effort", help="Factor on the numbers of draws.")] = 1.0,
    controls: Annotated[
        bool,
        typer.Option("--controls/--no-controls", help="Also spoil the sampler, check by check: each must then fail."),
    ] = False,
    seed: flags.Seed = 0,
    json: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """Examine a sampler against exact answers and identities, at a stated false-alarm rate."""
    from compare.report.terminal_tables import checks as checks_table
    from compare.terminal import Progress, print_table
    from sampling import battery

    wanted = None if checks is None else [one.strip() for one in checks.split(",") if one.strip()]
    with stoppable(), Progress(quiet=quiet) as progress:
        results = battery.run(
            name, checks=wanted, seed=seed, effort=effort, controls=controls, progress=progress.stage(f"check {name}")
        )
    passed = all(one.passed for one in results)
    if json:
        about = {"sampler": name, "seed": seed, "effort": effort, "false_alarm": battery.FALSE_ALARM, "passed": passed}
        emit(about | {"checks": [vars(one) for one in results], "left_out": battery.skipped(name)})
    else:
        if not quiet and results:
            print_table(checks_table(results))
        failed = [one.name for one in results if not one.passed]
        print(f"{name}: " + (f"passed {len(results)} checks" if passed else f"failed {', '.join(failed)}"))
    if not passed:
        raise typer.Exit(FAILED)


@app.command(name="data")
def list_data(json: flags.Json = False) -> None:
    """List the data sets."""
    from data.registry import describe, names

    found = [describe(name) for name in names()]
    if json:
        emit({"data": found})
        return
    from compare.report.terminal_tables import data_sets
    from compare.terminal import print_table

    print_table(data_sets(found))
    print("Or give --data the path of an .npz with X (patterns, inputs), y (+1 and -1), and optionally classes.")


app.command(name="bias", epilog=bias_cli.EPILOG)(bias_cli.bias)
app.command(name="evidence", epilog=evidence_cli.EPILOG)(evidence_cli.evidence)
app.command(name="figures", epilog=figures_cli.EPILOG)(figures_cli.figures)
app.command(name="regress", epilog=regression.EPILOG)(regression.regress)


app.add_typer(campaign_app, name="campaign")


def main() -> None:
    """Entry point of the `saddlecheck` script."""
    app()


if __name__ == "__main__":
    main()
