"""The summary of a cell: numbers and facts of its Run that status and tables need, so that they read no NetCDF."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from sampling.campaign.cell import Cell
from sampling.campaign.precision import Outcome

if TYPE_CHECKING:
    from data.problem import Problem

SHOWN = ("d2", "d2_labels", "Q", "fbar_a", "residual", "loglik", "norm_w")


def of(cell: Cell, problem: Problem, found: Outcome) -> dict[str, Any]:
    """The body of a summary as JSON can hold it; what cannot be told is None.

    outcome is `done` when the run is acceptable (sampling.diagnostics) and, unless draws were prescribed, the error of <D^2> is at
    most the target's share of the effect; else `inconclusive`. `reasons` are those of the diagnosis alone: whether the error is
    small enough depends on who asks.
    """
    from sampling.diagnostics import assess

    run, manifest = found.run, found.run.manifest
    diagnosis = assess(run)
    numbers: dict[str, Any] = {
        "prior": found.prior,
        "prior_se": found.prior_se,
        "effect": found.effect,
        "relative_error": found.relative_error,
        "asked": found.asked,
        "rounds": found.rounds,
        "draws": int(manifest["draws"]),
        "nan_share": float(manifest.get("nan_share", 0.0)),
        "acceptance": _mean(manifest.get("acceptance")),
        "gradients_per_chain": manifest.get("gradients_per_chain"),
    }
    for name in SHOWN:
        if name in diagnosis.table:
            one = diagnosis.table[name]
            numbers |= {
                f"{name}_mean": one.mean,
                f"{name}_mcse": one.mcse,
                f"{name}_ess_bulk": one.ess_bulk,
                f"{name}_ess_tail": one.ess_tail,
                f"{name}_rhat": one.rhat,
            }
    met = cell.identity["draws"] is not None or (
        found.relative_error is not None and found.relative_error <= float(cell.effort["target"])
    )
    described = problem.describe()
    return {
        "outcome": "done" if diagnosis.ok and met else "inconclusive",
        "reasons": list(diagnosis.reasons),
        "numbers": {key: _finite(value) for key, value in numbers.items()},
        "problem": {
            key: described[key] for key in ("P", "P_plus", "N0", "N1", "alpha", "fingerprint", "dataset_fingerprint")
        }
        | {"name": described["data"]},
        "provenance": {
            key: manifest.get(key) for key in ("versions", "git_commit", "device", "dtype", "seed", "resumed")
        }
        | {"biased": bool(run.biased)},
        "seconds": float(sum(manifest["seconds"].values())),
        "finished": time.time(),
    }


def _mean(values: Any) -> float | None:
    return float(sum(values) / len(values)) if values else None


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
