"""The `saddlecheck evidence` command: log p(y) from S(Q) against thermodynamic integration over chains."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from compare import flags
from compare.command import NOT_CONVERGED, emit, one_problem, stoppable

if TYPE_CHECKING:
    from compare.evidence import Evidence
    from compare.report.shown import Shown

EPILOG = (
    "Example: [bold]saddlecheck evidence --P 100 --N1 100 --T 0.1[/bold]. Chains run at each temperature of a Gauss-Legendre ladder from "
    "T upwards. Exit status: 0 done, 2 bad input, 3 chains not converged."
)


def evidence(
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
    nodes: Annotated[int, typer.Option("--nodes", help="Temperatures of the ladder.")] = 12,
    sampler: flags.Sampler = "hmc",
    chains: flags.Chains = 16,
    draws: Annotated[int, typer.Option("--draws", help="Draws a chain at each temperature.")] = 200,
    warmup: flags.Warmup = None,
    seed: flags.Seed = 0,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the runs; the same command goes on from there.")
    ] = None,
    json: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """Log-evidence log p(y): the theory's, against thermodynamic integration over chains."""
    values = dict(locals())
    from compare.evidence import measure_evidence
    from compare.payload import cell_problem
    from compare.terminal import Progress, print_table

    problem = one_problem(values, "evidence")
    with stoppable(), Progress(quiet=quiet) as progress:
        more: dict[str, Any] = {"sampler": sampler, "chains": chains, "draws": draws, "warmup": warmup, "out": out}
        found = measure_evidence(problem, nodes=nodes, seed=seed, stage=progress.stage, **more)
    if json:
        about = {"problem": cell_problem(problem), "N1": problem.N1, "T": problem.T}
        emit(about | found.to_dict() | {"status": "ok" if found.converged else "inconclusive"})
    else:
        if not quiet:
            print_table(shown(found))
        print(summary(found))
    if not found.converged:
        raise typer.Exit(NOT_CONVERGED)


def shown(found: Evidence) -> Shown:
    """The integrand <sum (y - f)^2>/2 by temperature."""
    from compare.report.shown import Cell, Shown
    from compare.report.wording import number, with_error

    columns = [("T", ""), ("weight", ""), ("½⟨Σ(y − f)²⟩ measured", ""), ("theory", ""), ("z", "")]
    rows = []
    for T, weight, energy, se, theirs in zip(
        found.T, found.weights, found.energy, found.energy_se, found.energy_theory, strict=True
    ):
        entries = [number(T, 4), number(weight, 4), with_error(energy, se), number(theirs, 5)]
        rows.append([Cell(one, None, "num") for one in [*entries, f"{(energy - theirs) / se:+.1f}" if se > 0 else "–"]])
    return Shown("evidence", "The integrand of the log-evidence", columns, rows)


def summary(found: Evidence) -> str:
    """The evidence in a line."""
    from compare.report.wording import number, with_error

    difference, se = found.difference
    said = (
        f"log p(y) = {with_error(found.measured, se)} nats measured (quadrature {found.quadrature:.1g}), {number(found.theory, 7)} "
        f"from S(Q), {number(found.infinite_width, 7)} at infinite width; theory - measured = {with_error(difference, se, sign=True)}: "
        f"{found.verdict.outcome}"
    )
    return said + ("" if found.converged else ". Some chains did not converge: no number here may be relied on")
