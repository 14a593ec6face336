"""The flags that commands share: one name, help text and place in `--help` for each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DATA, NETWORK, SAMPLING, OUTPUT = "Data", "Network and temperature", "Sampling", "Output"

Data = Annotated[
    str,
    typer.Option(
        "--data", rich_help_panel=DATA, help="A data set's name (`saddlecheck data` lists them) or an .npz with X, y."
    ),
]
Classes = Annotated[
    str | None,
    typer.Option("--classes", rich_help_panel=DATA, help="Which classes: even/odd, 0/1, first/second half, ..."),
]
P = Annotated[
    int | None, typer.Option("--P", rich_help_panel=DATA, help="Number of patterns. [default: 100; a file: all rows]")
]
PTest = Annotated[
    int, typer.Option("--P-test", rich_help_panel=DATA, help="Held-out patterns: generalisation error, <D^2> on them.")
]
Labels = Annotated[str, typer.Option("--labels", rich_help_panel=DATA, help="true, random (a permutation) or zero.")]
LabelSeed = Annotated[int, typer.Option("--label-seed", rich_help_panel=DATA, help="Seed of --labels random.")]
SubsetSeed = Annotated[
    int | None, typer.Option("--subset-seed", rich_help_panel=DATA, help="Seed of the subset. [default: file order]")
]
Balanced = Annotated[
    bool | None,
    typer.Option(
        "--balanced/--no-balanced", rich_help_panel=DATA, help="Equal class sizes. [default: the data set's own]"
    ),
]
Standardise = Annotated[
    str | None,
    typer.Option("--standardise", rich_help_panel=DATA, help="global, feature or none. [default: global for images]"),
]
N1 = Annotated[
    str | None,
    typer.Option("--N1", rich_help_panel=NETWORK, help="Hidden units, one number or a list: 50,100. [default: 100]"),
]
Alpha = Annotated[
    str | None,
    typer.Option("--alpha", rich_help_panel=NETWORK, help="Load P/N1, in place of --N1; one number or a list."),
]
T = Annotated[
    str, typer.Option("--T", rich_help_panel=NETWORK, help="Temperatures: a list, 0.01,0.1,1, or a range, 0.001..10.")
]
TPoints = Annotated[
    int | None,
    typer.Option(
        "--T-points", rich_help_panel=NETWORK, help="How many temperatures of a range, even in log T. [default: 7]"
    ),
]
Lambda0 = Annotated[
    float, typer.Option("--lambda0", rich_help_panel=NETWORK, help="Precision of the hidden weights' prior.")
]
Lambda1 = Annotated[float, typer.Option("--lambda1", rich_help_panel=NETWORK, help="Precision of the readout's prior.")]
Activation = Annotated[str, typer.Option("--activation", rich_help_panel=NETWORK, help="erf, linear, tanh or sin.")]
FirstOrder = Annotated[
    bool,
    typer.Option(
        "--first-order/--no-first-order", rich_help_panel=NETWORK, help="Compute the first-order-exact level (level 4)."
    ),
]
Seed = Annotated[int, typer.Option("--seed", rich_help_panel=SAMPLING, help="Seed of the chains and of level 4.")]
Sampler = Annotated[str, typer.Option("--sampler", rich_help_panel=SAMPLING, help="hmc, mala, langevin (biased), ...")]
Chains = Annotated[int, typer.Option("--chains", rich_help_panel=SAMPLING, help="Number of chains a cell.")]
Draws = Annotated[
    int | None,
    typer.Option("--draws", rich_help_panel=SAMPLING, help="Draws a chain, in place of --target and --budget."),
]
Warmup = Annotated[
    int | None,
    typer.Option("--warmup", rich_help_panel=SAMPLING, help="Warm-up steps a chain. [default: the sampler's own]"),
]
Target = Annotated[
    float,
    typer.Option("--target", rich_help_panel=SAMPLING, help="Wanted standard error of <D^2>, relative to <D^2>."),
]
Budget = Annotated[
    float,
    typer.Option(
        "--budget", rich_help_panel=SAMPLING, help="Most seconds to sample a temperature, whatever the error."
    ),
]
Starts = Annotated[
    str, typer.Option("--starts", rich_help_panel=SAMPLING, help="Where chains begin, in turn: prior, aligned, ...")
]
Device = Annotated[str, typer.Option("--device", rich_help_panel=SAMPLING, help="cpu or cuda.")]
Dtype = Annotated[str, typer.Option("--dtype", rich_help_panel=SAMPLING, help="float64 or float32.")]
Margin = Annotated[
    float,
    typer.Option("--margin", rich_help_panel=OUTPUT, help="Of the verdicts: a share of the effect, measured - prior."),
]
Subsets = Annotated[
    int | None,
    typer.Option(
        "--subsets", rich_help_panel=DATA, help="Data subsets: everything on each, verdicts over all. 3 or more."
    ),
]
Controls = Annotated[
    str | None,
    typer.Option("--controls", rich_help_panel=DATA, help="The same on random-labels, small-alpha, gaussian, or all."),
]
Out = Annotated[
    Path, typer.Option("--out", rich_help_panel=OUTPUT, help="Folder for report, tables, figures and runs.")
]
Json = Annotated[
    bool,
    typer.Option("--json", rich_help_panel=OUTPUT, help="Print one JSON object to stdout, and nothing else there."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", rich_help_panel=OUTPUT, help="No progress and no tables.")]
