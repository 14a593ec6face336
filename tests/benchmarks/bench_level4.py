"""Level 4 on a grid of 12 temperatures at P = 1000: seconds until every standard error is below 1% of the effect.

Run as: python tests/benchmarks/bench_level4.py. Target: one minute on two cores. CIFAR-10 and MNIST are taken where they are found
(SADDLECHECK_DATA, or the cache); Fashion-MNIST is embedded.
"""

from __future__ import annotations

import time

import numpy as np

from data.errors import InputError
from data.registry import load
from theory import Spectrum
from theory.action import solve_grid
from theory.first_order import Settings, first_order

P, N1, TARGET = 1000, 500, 60.0
SETS = (("cifar10", "even/odd"), ("mnist", "0/1"), ("fashion-mnist", None))


def main() -> None:
    T = [float(t) for t in np.geomspace(1e-3, 10.0, 12)]
    print(f"12 temperatures from {T[0]:g} to {T[-1]:g}, P = {P}, N1 = {N1}")
    print("data            kernel s   level 4 s   cpu s     draws   worst se/effect   target")
    for name, classes in SETS:
        try:
            data = load(name, classes=classes, P=P)
        except (InputError, OSError) as error:
            print(f"{name:14s}  left out: {error}")
            continue
        begun = time.perf_counter()
        spectrum = Spectrum.of(data, "erf")
        kernel = time.perf_counter() - begun
        saddles = solve_grid(spectrum, [(N1, t, 1.0) for t in T])
        begun, cpu = time.perf_counter(), time.process_time()
        found = first_order(spectrum, saddles, Settings(rel_error=0.01))
        seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
        worst = max(one.se / abs(one.effect) for one in found)
        met = worst <= 0.01 and kernel + seconds <= TARGET
        print(
            f"{name:14s}{kernel:10.2f}{seconds:12.1f}{cpu:8.1f}{found.samples:10d}{worst:18.4f}   {'met' if met else 'MISSED'}",
            flush=True,
        )


if __name__ == "__main__":
    main()
