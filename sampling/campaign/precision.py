"""Precision first: sample a cell until the error of <D^2> is the wanted share of the effect, or its budget is spent."""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import InputError
from sampling.atomic import replacing
from sampling.campaign.cell import Cell
from sampling.campaign.prior import prior_d2
from sampling.campaign.small import read_json
from sampling.campaign.store import CHECKPOINT, KEPT, ROUND

if TYPE_CHECKING:
    from data.problem import Problem
    from sampling.run import Run
    from sampling.settings import Settings

# The first round asks for no more than every acceptable run has anyway, 400 effective draws; it tells how large the effect is.
FIRST = 0.2
SAFETY = 0.97  # of the target of a later round, since the effect it is a share of is known with an error
ROUNDS = 6
CHECKPOINT_SECONDS = 10.0


@dataclass(frozen=True)
class Outcome:
    """A Run with what it says of the effect: prior (value, se), d2 (mean, mcse), effect = |d2 - prior|, relative_error = mcse/effect,
    None where the effect is 0; the target relative to <D^2> of the last round; number of rounds."""

    run: Run
    prior: float
    prior_se: float
    d2: float
    d2_se: float
    effect: float
    relative_error: float | None
    asked: float | None
    rounds: int


def sample(
    cell: Cell, problem: Problem, place: Path, *, device: str, threads: int, progress: Callable[[dict[str, Any]], None]
) -> Outcome:
    """Sample the cell in its folder, going on from what an interrupted attempt left there.

    sampling.run takes an error relative to <D^2>. What is wanted is one relative to the effect, which is not known before: so rounds,
    each going on from the last checkpoint of the one before. Every round's target is on disk before it begins, so that an
    interrupted cell ends with the numbers of an uninterrupted one.
    Raises sampling.Interrupted after a signal, InputError for a problem that cannot be sampled, OSError where the disk is full.
    """
    from sampling import run
    from sampling.diagnostics import estimate

    prior, prior_se = prior_d2(problem)
    identity, effort = cell.identity, cell.effort
    draws = identity["draws"]
    target, finest = float(effort["target"]), float(effort["finest"])
    checkpoint, kept = place / CHECKPOINT, place / KEPT
    rounds, asked = (0, None) if draws is not None else _round(place, max(FIRST, finest))
    while True:
        if not checkpoint.exists() and kept.exists():
            os.replace(kept, checkpoint)

        def keep(event: dict[str, Any]) -> None:
            # The run removes its checkpoint when it ends: a second name keeps it for the next round.
            _link(checkpoint, kept)
            progress(event)

        found = run(
            problem,
            identity["sampler"],
            chains=identity["chains"],
            seed=cell.chain_seed(),
            warmup=identity["warmup"],
            draws=draws,
            target=asked,
            budget_seconds=None if draws is not None else float(effort["budget_seconds"]),
            starts=identity["starts"],
            device=device,
            dtype=identity["dtype"],
            threads=threads,
            thin=identity["thin"],
            checkpoint=checkpoint,
            checkpoint_seconds=CHECKPOINT_SECONDS,
            progress=keep,
            temperatures=identity["reweight"] or None,
            max_kept=identity["max_kept"],
            **options(cell),
        )
        d2 = estimate(found.series["d2"])
        effect = abs(d2.mean - prior)
        relative = d2.mcse / effect if effect > 0 and math.isfinite(d2.mcse) else None
        outcome = Outcome(found, prior, prior_se, d2.mean, d2.mcse, effect, relative, asked, rounds + 1)
        if asked is None or (relative is not None and relative <= target) or not math.isfinite(d2.mcse):
            return outcome
        spent = float(found.manifest["seconds"]["sample"]) >= float(effort["budget_seconds"])
        if spent or asked <= finest or rounds + 1 >= ROUNDS:
            return outcome
        # While the effect drowns in its error it may be larger than it looks.
        size = effect * SAFETY if d2.mcse < 0.5 * effect else effect + 2 * d2.mcse
        wanted = max(finest, target * size / abs(d2.mean)) if d2.mean else finest
        rounds, asked = rounds + 1, min(wanted, SAFETY * asked)
        with replacing(place / ROUND) as temporary:
            temporary.write_text(json.dumps({"round": rounds, "target": asked}), encoding="utf-8")


def settings(cell: Cell, device: str) -> Settings:
    """The settings under which `sample` runs: what its checkpoint belongs to."""
    from sampling.settings import Settings

    identity = cell.identity
    names = ("sampler", "chains", "warmup", "thin", "starts", "dtype", "max_kept")
    return Settings.of(
        seed=cell.chain_seed(),
        device=device,
        temperatures=identity["reweight"] or None,
        options=options(cell),
        **{name: identity[name] for name in names},
    )


def options(cell: Cell) -> dict[str, Any]:
    """The sampler's own options of a cell.

    Raises InputError for a name that `sampling.run` takes itself: `save` or `checkpoint` from a spec would write anywhere.
    """
    import inspect

    from sampling import run

    found = dict(cell.identity["options"])
    taken = sorted(set(found) & set(inspect.signature(run).parameters))
    if taken:
        raise InputError(f"{taken[0]!r} is not an option of {cell.identity['sampler']}: leave it out")
    return found


def _round(place: Path, first: float) -> tuple[int, float]:
    """The round that an interrupted attempt was in, and its target."""
    told = read_json(place / ROUND)
    if isinstance(told, dict):
        number, target = told.get("round"), told.get("target")
        if isinstance(number, int) and isinstance(target, float) and number > 0 and 0 < target < 1:
            return number, target
    return 0, min(first, 0.999)


def _link(checkpoint: Path, kept: Path) -> None:
    """Give the checkpoint, where there is one, a second name; on a filesystem without links the next round begins anew."""
    other = kept.with_suffix(".new")
    with contextlib.suppress(OSError):
        if kept.exists() and os.path.samefile(checkpoint, kept):
            return
        other.unlink(missing_ok=True)
        os.link(checkpoint, other)
        os.replace(other, kept)
