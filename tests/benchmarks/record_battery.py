"""Record of the sampler battery, every check on every sampler, in reports/battery: one JSON file a sampler, and table.csv.

Run as: python tests/benchmarks/record_battery.py [SAMPLER ...] [--controls] [--out DIR]. Each check is written as it ends, and what is
recorded already is not done again, so a run that was stopped goes on. The dear check, pairwise, comes last for all samplers.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from pathlib import Path
from typing import Any

from data.provenance import git_commit, versions
from sampling import battery
from sampling.provenance import PACKAGES, device_name

HERE = Path(__file__).resolve().parents[2] / "reports" / "battery"
SAMPLERS = ("hmc", "gibbs", "underdamped", "mala", "tempering", "langevin", "nuts")
COLUMNS = ("sampler", "name", "passed", "statistic", "threshold", "false_alarm", "seconds", "cpu_seconds", "detail")


def applicable(name: str) -> list[str]:
    """The checks that have a meaning for a sampler."""
    return [check for check in battery.CHECKS if check not in battery.skipped(name)]


def load(name: str, out: Path, seed: int) -> dict[str, Any]:
    """What is recorded of a sampler, or an empty record."""
    path = out / f"{name}.json"
    if path.exists():
        found: dict[str, Any] = json.loads(path.read_text())
        return found
    about = {"sampler": name, "seed": seed, "effort": 1.0, "false_alarm": battery.FALSE_ALARM}
    return about | {"left_out": battery.skipped(name), "checks": []}


def record(name: str, check: str, seed: int, controls: bool, shared: dict[Any, Any], out: Path) -> None:
    """Do one check, at its share of the battery's false-alarm rate, and write it down."""
    found = load(name, out, seed)
    if any(one["name"] == check for one in found["checks"]):
        return
    chance = sum(one != "density" for one in applicable(name))
    begun = time.process_time()
    share = battery.FALSE_ALARM / chance
    results = battery.run(name, checks=[check], seed=seed, controls=controls, false_alarm=share, shared=shared)
    cpu = time.process_time() - begun
    found["checks"] += [vars(one) | {"cpu_seconds": cpu / len(results)} for one in results]
    names = list(battery.CHECKS)
    found["checks"].sort(key=lambda one: (names.index(one["name"].removesuffix(" control")), one["name"]))
    found["complete"] = {one["name"] for one in found["checks"]} >= set(applicable(name))
    found["passed"] = all(one["passed"] for one in found["checks"])
    found |= {"device": device_name("cpu"), "versions": versions(PACKAGES), "git_commit": git_commit()}
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")


def table(out: Path) -> None:
    """OUT/table.csv: one row a sampler and check."""
    with (out / "table.csv").open("w", newline="") as target:
        writer = csv.DictWriter(target, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for path in (out / f"{name}.json" for name in SAMPLERS):
            if path.exists():
                found = json.loads(path.read_text())
                for one in found["checks"]:
                    row = {"sampler": found["sampler"]} | one
                    writer.writerow({k: f"{v:.4g}" if isinstance(v, float) else v for k, v in row.items()})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("samplers", nargs="*", help=", ".join(SAMPLERS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--controls", action="store_true", help="also spoil the sampler, check by check")
    parser.add_argument("--out", type=Path, default=HERE)
    chosen = parser.parse_args()
    shared: dict[Any, Any] = {}
    names = chosen.samplers or list(SAMPLERS)
    jobs = [(name, check) for name in names for check in applicable(name)]
    for name, check in sorted(jobs, key=lambda job: job[1] == "pairwise"):
        record(name, check, chosen.seed, chosen.controls, shared, chosen.out)
        print(f"{name} {check} done", flush=True)
        table(chosen.out)


if __name__ == "__main__":
    main()
