"""Record of the sampler battery: every check on every sampler, with its control, into reports/battery (JSON and README.md)."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from sampling import battery
from sampling.battery.mutations import mutations
from sampling.provenance import device_name, git_commit, versions

HERE = Path(__file__).resolve().parents[2] / "reports" / "battery"
SAMPLERS = ("hmc", "gibbs", "mala", "underdamped", "tempering", "nuts", "langevin")


def record(name: str, seed: int, controls: bool, shared: dict[Any, Any], out: Path) -> None:
    """Examine one sampler in full, and write OUT/NAME.json."""
    begun, cpu = time.monotonic(), time.process_time()
    results = battery.run(name, seed=seed, controls=controls, shared=shared)
    found = {
        "sampler": name,
        "seed": seed,
        "effort": 1.0,
        "false_alarm": battery.FALSE_ALARM,
        "passed": all(one.passed for one in results),
        "seconds": time.monotonic() - begun,
        "cpu_seconds": time.process_time() - cpu,
        "checks": [vars(one) for one in results],
        "left_out": battery.skipped(name),
        "mutations": list(mutations(name)),
        "device": device_name("cpu"),
        "versions": versions(),
        "git_commit": git_commit(),
    }
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")


def main() -> None:
    """Record the samplers named, or all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("samplers", nargs="*", help=", ".join(SAMPLERS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--controls", action="store_true", help="also spoil the sampler, check by check")
    parser.add_argument("--out", type=Path, default=HERE)
    chosen = parser.parse_args()
    shared: dict[Any, Any] = {}
    for name in chosen.samplers or SAMPLERS:
        record(name, chosen.seed, chosen.controls, shared, chosen.out)
        print(f"{name} done", flush=True)


if __name__ == "__main__":
    main()
