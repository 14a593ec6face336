"""The `saddlecheck figures` command: the paper's figures, with theory of every level and measured points where there are chains."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from compare import flags
from compare.command import NOT_CONVERGED, emit, sampling, stoppable
from data.errors import InputError

EPILOG = (
    "Examples: [bold]saddlecheck figures[/bold], theory only; [bold]saddlecheck figures OUT --runs saddlecheck-report[/bold], with the "
    "points of a folder of verify, sample or a campaign; [bold]saddlecheck figures OUT --sample --budget 20[/bold] makes chains: "
    "Ctrl-C stops at a checkpoint, the same command goes on. CIFAR-10 and MNIST are read from the folder that SADDLECHECK_DATA names; "
    "embedded sets stand in for them, and the page says so."
)
FIGURES = "Figures"


def figures(
    out: Annotated[Path, typer.Argument(metavar="DIR", help="Folder for figures.html and figures/.")] = Path(
        "saddlecheck-figures"
    ),
    only: Annotated[
        str | None,
        typer.Option("--only", rich_help_panel=FIGURES, help="Some of d2, lambda2, scaling, kernels. [default: all]"),
    ] = None,
    runs: Annotated[
        Path | None,
        typer.Option(
            "--runs", rich_help_panel=FIGURES, help="Folder with runs: their data, widths and temperatures are drawn."
        ),
    ] = None,
    sample: Annotated[
        bool,
        typer.Option(
            "--sample/--no-sample", rich_help_panel=FIGURES, help="Make chains for measured points, kept in DIR/chains."
        ),
    ] = False,
    data: flags.Data = "cifar10",
    classes: flags.Classes = None,
    P: flags.P = 200,
    label_seed: flags.LabelSeed = 0,
    subset_seed: flags.SubsetSeed = None,
    alpha: Annotated[
        str, typer.Option("--alpha", rich_help_panel=flags.NETWORK, help="Loads P/N1 of D^2 against T.")
    ] = "0.5,1,2,4",
    T: Annotated[
        str,
        typer.Option("--T", rich_help_panel=flags.NETWORK, help="Temperatures of D^2 against T: a list or a range."),
    ] = "0.001..10",
    T_points: flags.TPoints = 9,
    at_alpha: Annotated[
        float,
        typer.Option(
            "--at-alpha", rich_help_panel=flags.NETWORK, help="Load of the heat maps, the scaling and the kernels."
        ),
    ] = 2.0,
    at_T: Annotated[
        float,
        typer.Option(
            "--at-T", rich_help_panel=flags.NETWORK, help="Temperature of Lambda2, the scaling and the kernels."
        ),
    ] = 0.1,
    sizes: Annotated[
        str, typer.Option("--sizes", rich_help_panel=FIGURES, help="Numbers of patterns of the scaling.")
    ] = "50,100,200,400,800",
    activation: flags.Activation = "erf",
    lambda0: flags.Lambda0 = 1.0,
    lambda1: flags.Lambda1 = 1.0,
    first_order: flags.FirstOrder = True,
    error: Annotated[
        float,
        typer.Option(
            "--error", rich_help_panel=flags.NETWORK, help="Standard error of level 4, relative to the effect."
        ),
    ] = 0.03,
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
    json: flags.Json = False,
    quiet: flags.Quiet = False,
) -> None:
    """The figures of the paper: SVG, PDF and CSV of each, and a page that explains them."""
    values = dict(locals())
    from compare import options
    from compare.paper import job
    from compare.paper.settings import FIGURES as ALL
    from compare.paper.settings import Settings
    from compare.terminal import Progress

    if runs is not None and not runs.is_dir():
        raise InputError(f"--runs {runs}: there is no such folder")
    patterns = options.numbers("--sizes", sizes)
    if any(one != int(one) for one in patterns):
        raise InputError(f"--sizes {sizes}: whole numbers of patterns, as in --sizes 50,100,200")
    T_range = T_points if ".." in T else None
    default = "even/odd" if data in ("cifar10", "mnist", "digits", "fashion-mnist") else None
    settings = Settings(
        data=data,
        classes=default if classes is None else classes,
        P=P or options.DEFAULT_P,
        seed=subset_seed,
        label_seed=label_seed,
        alphas=tuple(options.numbers("--alpha", alpha)),
        temperatures=tuple(options.temperatures(T, T_range)),
        alpha=at_alpha,
        T=at_T,
        sizes=tuple(int(one) for one in patterns),
        activation=activation,
        lambda0=lambda0,
        lambda1=lambda1,
        first_order=first_order,
        rel_error=error,
        draw_seed=seed,
        only=ALL if only is None else tuple(one.strip() for one in only.split(",") if one.strip()),
    )
    made_chains: dict[str, Any] | None = sampling(values) if sample else None
    with stoppable(), Progress(quiet=quiet) as progress:
        made = job.make(settings, runs=runs, chains=made_chains, out=out, stage=None if quiet else progress.stage)
        for note in dict.fromkeys(note for one in made for note in one.notes):
            progress.say(f"note: {note}")
    page = job.write(made, out, settings)
    doubtful = sum(
        int((t["status"] != "ok").sum()) for one in made for name, t in one.tables.items() if name.endswith("-measured")
    )
    if json:
        emit({"page": str(page), "inconclusive": doubtful, "figures": [_told(one, out / job.FOLDER) for one in made]})
    else:
        if not quiet:
            for one in made:
                print(f"{one.figure.title}: {out / job.FOLDER / one.figure.name}.svg, .pdf, .csv")
        print(f"Figures: {page}")
    if doubtful:
        raise typer.Exit(NOT_CONVERGED)


def _told(one: Any, folder: Path) -> dict[str, Any]:
    files = [f"{one.figure.name}.svg", f"{one.figure.name}.pdf", *(f"{name}.csv" for name in one.tables)]
    return {
        "name": one.key,
        "title": one.figure.title,
        "caption": one.figure.caption,
        "settings": one.settings,
        "notes": list(one.notes),
        "files": [str(folder / file) for file in files],
    }
