"""The gradient of the collapsed density at P = 1000 against the matrix-multiply rate of the same run, device and precision.

Run as: python tests/benchmarks/bench_gradient.py [cpu|cuda]
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np
import torch

from data.problem import Dataset, Problem
from sampling.model import Model
from sampling.posterior import Collapsed

CHAINS = 2


def seconds(work: Callable[[], object], device: str, repeats: int = 5) -> float:
    """Median time of one call, after one call that does not count."""
    times = []
    for _ in range(repeats + 1):
        if device != "cpu":
            torch.cuda.synchronize()
        begun = time.perf_counter()
        work()
        if device != "cpu":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - begun)
    return statistics.median(times[1:])


def operations(P: int, N1: int, r: int) -> float:
    """Floating-point operations of one gradient: h and back (2 x 2 N1 P r), Gram and s A^{-1} (2 x 2 N1 P n), inverse (n^3)."""
    n = min(P, N1)
    return 4.0 * N1 * P * r + 4.0 * N1 * P * n + n**3


def main() -> None:
    device = sys.argv[1] if len(sys.argv) > 1 else "cpu"
    rng = np.random.default_rng(0)
    P, N0 = 1000, 1024
    y = np.where(np.arange(P) < P // 2, 1.0, -1.0)
    data = Dataset(rng.normal(size=(P, N0)), y, y)
    for dtype in (torch.float64, torch.float32):
        A = torch.randn(2000, 2000, dtype=dtype, device=device)
        product = 2 * 2000**3 / seconds(lambda A=A: A @ A, device)
        print(f"{device} {dtype}: matrix multiply {product / 1e9:.0f} Gflop/s")
        for N1 in (500, 1000):
            target = Collapsed(Model.of(Problem(data, N1, 0.1), device, dtype))
            g = torch.randn(CHAINS, N1, target.model.r, dtype=dtype, device=device)
            one = seconds(lambda g=g, target=target: target.likelihood(g), device) / CHAINS
            speed = operations(P, N1, target.model.r) / one
            print(
                f"  P = {P}, N1 = {N1}: {one * 1e3:.1f} ms a gradient, {speed / 1e9:.0f} Gflop/s, {speed / product:.0%} of it"
            )


if __name__ == "__main__":
    main()
