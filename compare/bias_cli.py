"""The `saddlecheck bias` command: unadjusted Langevin at eps, eps/2, ...: its bias against eps, and Richardson's extrapolation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from compare import flags
from compare.command import NOT_CONVERGED, emit, one_problem, stoppable

if TYPE_CHECKING:
    import pandas

    from compare.report.shown import Shown

EPILOG = (
    "Example: [bold]saddlecheck bias --P 20 --N1 10 --T 0.1[/bold]. The truth is an hmc run of the same problem; with --no-truth the "
    "bias is told against the extrapolation. A step means theta += eps grad log p + sqrt(2 eps) xi, on (w, v); older codes of the "
    "field call eps/T the step. Exit status: 0 done, 2 bad input, 3 chains not converged."
)
SHOWN = {"d2": "⟨D²⟩", "Q": "Q", "residual": "Σ(y−f)²", "fbar_a": "a·f"}


def bias(
    data: flags.Data = "digits",
    classes: flags.Classes = None,
    P: flags.P = None,
    labels: flags.Labels = "true",
    label_seed: flags.LabelSeed = 0,
    subset_seed: flags.SubsetSeed = None,
    balanced: flags.Balanced = None,
    standardise: flags.Standardise = None,
    N1: flags.N1 = None,
    alpha: flags.Alpha = None,
    T: flags.T = "0.1",
    lambda0: flags.Lambda0 = 1.0,
    lambda1: flags.Lambda1 = 1.0,
    activation: flags.Activation = "erf",
    step: Annotated[
        float | None, typer.Option("--step", help="Largest eps. [default: where 80% of the moves would pass a test]")
    ] = None,
    halvings: Annotated[int, typer.Option("--halvings", help="How often eps is halved.")] = 2,
    chains: flags.Chains = 32,
    draws: Annotated[int, typer.Option("--draws", help="Draws a chain, four steps apart at the largest eps.")] = 2000,
    warmup: Annotated[int, typer.Option("--warmup", help="Warm-up steps at the largest eps.")] = 2000,
    truth: Annotated[bool, typer.Option("--truth/--no-truth", help="Sample the truth with hmc, too.")] = True,
    seed: flags.Seed = 0,
    json: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """Unadjusted Langevin: its bias against the step size, and Richardson's extrapolation to step 0."""
    values = dict(locals())
    from compare.payload import cell_problem, plain
    from compare.terminal import Progress, print_table
    from sampling.bias import SCALARS, step_size_study
    from sampling.chains import run
    from sampling.diagnostics import assess

    problem, exact, ok = one_problem(values, "bias"), None, True
    with stoppable(), Progress(quiet=quiet) as progress:
        if truth:
            stage = progress.stage("truth, by hmc")
            diagnosis = assess(run(problem, "hmc", chains=chains, draws=draws, seed=seed, progress=stage))
            table = diagnosis.table
            exact = {name: (table[name].mean, max(table[name].mcse, table[name].mcse_between)) for name in SCALARS}
            ok = diagnosis.ok
        study = step_size_study(
            problem,
            step=step,
            halvings=halvings,
            draws=draws,
            warmup=warmup,
            chains=chains,
            seed=seed + 1,
            progress=progress.stage("langevin"),
        )
    found = study.table(exact)
    ok = ok and study.ok
    if json:
        about = {"problem": cell_problem(problem), "N1": problem.N1, "T": problem.T, "steps": list(study.steps)}
        reasons = [list(one.reasons) for one in study.diagnoses]
        told = {"truth": exact, "status": "ok" if ok else "inconclusive", "reasons": reasons}
        emit(plain(about | told | {"table": found.to_dict(orient="records")}))
    else:
        if not quiet:
            print_table(shown(found, truth))
        print(summary(found, study.steps, truth, ok))
    if not ok:
        raise typer.Exit(NOT_CONVERGED)


def shown(table: pandas.DataFrame, truth: bool) -> Shown:
    """The study as a table: one row a scalar and step, step 0 the extrapolation."""
    from compare.report.shown import Cell, Shown
    from compare.report.wording import number, with_error

    columns = [("scalar", ""), ("eps", ""), ("mean", ""), ("bias", ""), ("bias/se", "")]
    rows = []
    for row in table.itertuples():
        z = row.bias / row.bias_se if row.bias_se > 0 else 0.0
        step = "→ 0" if row.step == 0 else number(row.step, 3)
        entries = [with_error(row.mean, row.se), with_error(row.bias, row.bias_se, sign=True), f"{z:+.1f}"]
        rows.append(
            [Cell(SHOWN[row.scalar]), Cell(step, row.step, "num"), *(Cell(one, None, "num") for one in entries)]
        )
    against = "an hmc run" if truth else "the extrapolation"
    return Shown("bias", f"Unadjusted Langevin: bias against {against}", columns, rows)


def summary(table: pandas.DataFrame, steps: tuple[float, ...], truth: bool, ok: bool) -> str:
    """How biased <D^2> was at the largest step, in a line."""
    rows: dict[float, Any] = {row.step: row for row in table.itertuples() if row.scalar == "d2"}
    first = rows[steps[0]]
    said = f"langevin at eps = {steps[0]:.3g}: <D^2> is off by {first.bias:+.3g} +- {first.bias_se:.2g}"
    if truth:
        last = rows[0.0]
        said += f"; extrapolated to eps = 0: {last.bias:+.3g} +- {last.bias_se:.2g}"
    return said + ("" if ok else ". Some chains did not converge: no number here may be relied on")
