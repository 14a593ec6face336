"""What one effective draw of D^2 costs hmc against P and against N1, with fitted exponents; on a GPU also against the chains.

Run as: python tests/benchmarks/bench_cost.py [cpu|cuda]. Digits even/odd at T = 0.1. Cost is device seconds (cores x wall time on a CPU).
"""

from __future__ import annotations

import os
import sys
import warnings

import numpy as np

import sampling
from data.problem import Problem
from data.registry import load
from sampling.diagnostics import estimate

SIZES = (50, 100, 200, 400)
FIXED = 100
T = 0.1


def cost(P: int, N1: int, device: str, chains: int, draws: int) -> tuple[float, float, float]:
    """Seconds an effective draw, effective draws a gradient, and seconds a gradient of one chain."""
    problem = Problem(load("digits", classes="even/odd", P=P), N1, T)
    run = sampling.run(problem, "hmc", chains=chains, warmup=150, draws=draws, seed=0, device=device)
    one = estimate(run.series["d2"])
    seconds = run.manifest["seconds"]["sample"] * (len(os.sched_getaffinity(0)) if device == "cpu" else 1)
    gradients = run.manifest["gradients_per_chain"] * chains
    effective = (one.sd / one.mcse) ** 2
    return seconds / effective, effective / gradients, seconds / gradients


def table(title: str, cells: list[tuple[int, int]], along: int, device: str, chains: int) -> None:
    print(f"{title}\n   P    N1   ms an effective draw   effective draws a gradient   ms a gradient")
    rows = []
    for P, N1 in cells:
        found = cost(P, N1, device, chains, draws=max(40, 12000 // (P + N1)))
        rows.append(found[0])
        print(f"{P:4d}  {N1:4d}   {1e3 * found[0]:20.3f}   {found[1]:26.3f}   {1e3 * found[2]:13.3f}", flush=True)
    sizes = np.log([cell[along] for cell in cells])
    slope, _ = np.polyfit(sizes, np.log(rows), 1)
    print(f"cost ~ {'P' if along == 0 else 'N1'}^{slope:.2f}\n")


def main() -> None:
    warnings.simplefilter("ignore")
    device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
    chains = 16 if device == "cpu" else 64
    table(f"against P at N1 = {FIXED}", [(P, FIXED) for P in SIZES], 0, device, chains)
    table(f"against N1 at P = {FIXED}", [(FIXED, N1) for N1 in SIZES], 1, device, chains)
    table("at alpha = 1", [(n, n) for n in SIZES], 0, device, chains)
    if device != "cpu":
        print("chains   ms an effective draw (P = N1 = 100)")
        for count in (4, 16, 64, 256):
            print(f"{count:6d}   {1e3 * cost(FIXED, FIXED, device, count, 100)[0]:.3f}", flush=True)


if __name__ == "__main__":
    main()
