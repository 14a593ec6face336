"""Record of the teacher case (physics.md section 8) and its multiples, from every kind of start and by tempering: reports/teacher-case.

Run as: python tests/benchmarks/record_teacher_case.py [CASE ...] [--out DIR]. One JSON file a case; table.csv is made of all of them.
"""

from __future__ import annotations

import argparse
import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import sampling
import theory
from data.problem import Problem
from data.synthetic import linear_teacher, network_teacher
from sampling.diagnostics import Estimate, assess, estimate
from sampling.run import Run
from theory.first_order import Settings as FirstOrderSettings

HERE = Path(__file__).resolve().parents[2] / "reports" / "teacher-case"
T = 0.01
SEED = 0
COMMON = ("prior", "aligned", "hot", "cold")
COLUMNS = ("labels", "P", "N0", "N1", "sampler", "start", "chains", "draws", "mean", "se", "ess_bulk", "rhat", "status")


def sign_labels(size: int) -> Problem:
    """y = sign(teacher . x), x ~ N(0, 1): P, N0, N1 = 50, 30, 20 times `size`."""
    return Problem(linear_teacher(P=50 * size, N0=30 * size, seed=SEED), 20 * size, T)


def network_labels(size: int) -> Problem:
    """y = f(x) + sqrt(T) noise with f a network drawn from the prior, which is then an exact posterior draw."""
    return Problem(network_teacher(P=50 * size, N0=30 * size, N1=20 * size, T=T, seed=SEED), 20 * size, T)


# name -> labels, size, sampler, starts in turn, chains, seconds of sampling
CASES: dict[str, tuple[str, int, str, tuple[str, ...], int, float]] = {
    "sign-x1-hmc": ("sign", 1, "hmc", COMMON, 32, 120),
    "sign-x2-hmc": ("sign", 2, "hmc", COMMON, 32, 180),
    "sign-x3-hmc": ("sign", 3, "hmc", COMMON, 32, 300),
    "network-x1-hmc": ("network", 1, "hmc", (*COMMON, "teacher"), 40, 120),
    "network-x2-hmc": ("network", 2, "hmc", (*COMMON, "teacher"), 40, 180),
    "sign-x1-tempering": ("sign", 1, "tempering", ("prior", "aligned"), 16, 180),
    "sign-x2-tempering": ("sign", 2, "tempering", ("prior", "aligned"), 16, 240),
    "sign-x3-tempering": ("sign", 3, "tempering", ("prior", "aligned"), 16, 300),
}


def only(run: Run, kind: str) -> Run:
    """The chains of one kind of start."""
    rows = [chain for chain, start in enumerate(run.starts) if start == kind]
    series = {name: value[rows] for name, value in run.series.items()}
    return replace(run, series=series, sums={}, starts=[kind] * len(rows))


def numbers(one: Estimate) -> dict[str, float]:
    """What is told of one mean; the error is the larger of that within chains and that between them."""
    return {"mean": one.mean, "se": max(one.mcse, one.mcse_between), "ess_bulk": one.ess_bulk, "rhat": one.rhat}


def record(name: str, out: Path) -> None:
    """Run one case and write OUT/NAME.json."""
    labels, size, sampler, starts, chains, seconds = CASES[name]
    problem = sign_labels(size) if labels == "sign" else network_labels(size)
    run = sampling.run(problem, sampler, chains=chains, seed=SEED, starts=starts, target=1e-3, budget_seconds=seconds)
    diagnosis = assess(run)
    prediction = theory.predict(problem, first_order=FirstOrderSettings(seed=SEED))
    values = run.series["d2"]
    found: dict[str, Any] = {
        "case": name,
        "labels": labels,
        "P": problem.P,
        "N0": problem.N0,
        "N1": problem.N1,
        "T": T,
        "data_seed": SEED,
        "sampler": sampler,
        "seed": SEED,
        "chains": run.chains,
        "draws": run.manifest["draws"],
        "warmup": run.manifest["warmup"],
        "seconds": run.manifest["seconds"],
        "levels": {key: {"value": level.value, "se": level.se} for key, level in prediction.levels.items()},
        "status": diagnosis.status,
        "reasons": list(diagnosis.reasons),
        "scalars": {key: numbers(diagnosis.table[key]) for key in ("d2", "Q", "residual", "loglik")},
        "d2_by_start": {kind: numbers(estimate(only(run, kind).series["d2"])) for kind in dict.fromkeys(run.starts)},
        "d2_by_chain": [
            {"start": kind, "mean": float(row.mean())} for kind, row in zip(run.starts, values, strict=True)
        ],
        "acceptance": float(sum(run.manifest["acceptance"]) / run.chains),
        "settings": run.manifest["settings"],
        "tempering": run.manifest.get("tempering"),
        "device": run.manifest["device"],
        "versions": run.manifest["versions"],
        "git_commit": run.manifest["git_commit"],
    }
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")


def table(out: Path) -> None:
    """OUT/table.csv: <D^2> by case and kind of start, "all" for the whole run."""
    rows: list[dict[str, Any]] = []
    for path in (out / f"{name}.json" for name in CASES):
        if not path.exists():
            continue
        case = json.loads(path.read_text())
        starts = [one["start"] for one in case["d2_by_chain"]]
        for kind, one in [*case["d2_by_start"].items(), ("all", case["scalars"]["d2"])]:
            chains = len(starts) if kind == "all" else starts.count(kind)
            row = {key: case[key] for key in ("labels", "P", "N0", "N1", "sampler", "draws")} | one
            status = case["status"] if kind == "all" else ""
            rows.append(row | {"start": kind, "chains": chains, "status": status})
    with (out / "table.csv").open("w", newline="") as target:
        writer = csv.DictWriter(target, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({k: f"{v:.5g}" if isinstance(v, float) else v for k, v in row.items()})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", help=", ".join(CASES))
    parser.add_argument("--out", type=Path, default=HERE)
    chosen = parser.parse_args()
    for name in chosen.cases or CASES:
        record(name, chosen.out)
        print(f"{name} done", flush=True)
    table(chosen.out)


if __name__ == "__main__":
    main()
