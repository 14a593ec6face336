"""Campaigns of many cells: time to plan, track and tabulate, and peak memory, against the number of cells; sampling is stubbed.

    python tests/benchmarks/bench_campaign.py [1000 10000 100000]

Each size runs in a process of its own, so that its peak memory is its own. `plan` writes the catalogue and lists the missing cells;
`engine` is the stub behind the public engine interface, writing a result for every cell by the store's own writer without fsync;
`status` reads all results; `table` makes the pandas table. Seconds are wall time, with processor time in parentheses.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SIZES = (1000, 10_000, 100_000)
SPEC = """
title = "benchmark"
[grid]
data = "digits"
P = [20, 40]
alpha = [0.5, 1, 2, 4, 8]
T = {{ low = 0.001, high = 10, points = 50 }}
labels = ["true", "random"]
subset_seed = {seeds}
"""


def timed(function: Callable[[], Any]) -> tuple[str, Any]:
    """`wall (cpu)` in seconds, and the value."""
    wall, cpu = time.perf_counter(), time.process_time()
    value = function()
    return f"{time.perf_counter() - wall:.1f} ({time.process_time() - cpu:.1f})", value


def one(count: int) -> None:
    """One size: prints a row."""
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    from tests_support.campaign import Stub

    from sampling.campaign import runner, spec
    from sampling.campaign.engines import Plan
    from sampling.campaign.source import parse_toml

    campaign = spec.validate(parse_toml(SPEC.format(seeds=list(range(count // 1000)))))
    assert campaign.size == count

    def peak() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    before = peak()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def plan() -> int:
            runner.prepare(campaign, folder)
            return sum(1 for _ in runner.missing(folder))

        planning, missing = timed(plan)
        assert missing == count
        print(f"{count:8d}  {planning:>16}", end="", flush=True)
        engine = Stub(failing=1000, coarse=100, flush=False)
        working, _ = timed(lambda: sum(1 for _ in engine.run(Plan(folder, campaign, lambda: runner.missing(folder)))))
        print(f"  {working:>16}", end="", flush=True)
        tracking, found = timed(lambda: runner.status(folder))
        assert found.finished
        assert found.counts["failed"] == count // 1000
        print(f"  {tracking:>16}  {peak() - before:10.0f}", end="", flush=True)
        tabulating, frame = timed(lambda: runner.table(folder))
        assert len(frame) == count
    print(f"  {tabulating:>16}  {peak() - before:10.0f}", flush=True)


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        one(int(sys.argv[2]))
        return
    sizes = [int(word) for word in sys.argv[1:]] or SIZES
    print(
        f"{'cells':>8}  {'plan, s':>16}  {'engine, s':>16}  {'status, s':>16}  {'MiB':>10}  {'table, s':>16}  {'MiB':>10}",
        flush=True,
    )
    for size in sizes:
        subprocess.run([sys.executable, __file__, "--one", str(size)], check=True)


if __name__ == "__main__":
    main()
