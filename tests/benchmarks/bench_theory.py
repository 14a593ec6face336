"""A grid of 50 temperatures x 8 loads at P = 1000, on test patterns too, against deepbays; where our time goes.

Run as: python tests/benchmarks/bench_theory.py [P] [cells of theirs]. Each cell: order parameter, action, predictor, average loss.
Theirs are timed on a few cells spread over the grid and extrapolated; their `preprocess`, which serves a whole grid too, is counted once.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from data.registry import load
from theory import Spectrum, predictor
from theory.action import action, solve_grid

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests_support import peer

LOADS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 8.0)
TEMPERATURES = np.geomspace(1e-3, 10.0, 50)
TEST = 200
TARGET = 100.0


def main() -> None:
    P = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    few = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    data = load("fashion-mnist", P=P, P_test=TEST)
    y = data.y_test
    grid = [(round(P / load_), float(T), 1.0) for load_ in LOADS for T in TEMPERATURES]

    parts, begun = {}, time.perf_counter()

    def lap(name: str) -> None:
        parts[name] = time.perf_counter() - begun - sum(parts.values())

    spectrum = Spectrum.of(data, "erf")
    lap("kernel and eigendecomposition")
    saddles = solve_grid(spectrum, grid)
    lap("saddle points, certified")
    actions = [float(action(spectrum, s.value, s.N1, s.T)) for s in saddles]
    lap("actions")
    predictor.Projection.of(spectrum, data.X_test)
    lap("kernel to the test patterns, projected")
    found = [
        predictor.Predictor(
            *(f(spectrum, s.value, s.T, 1.0, data.X_test) for f in (predictor.mean, predictor.variance))
        )
        for s in saddles
    ]
    losses = [one.loss(y) for one in found]
    lap("predictors and losses")
    ours = sum(parts.values())
    print(f"ours: {len(grid)} cells at P = {P}, {TEST} test patterns, in {ours:.2f} s")
    for name, seconds in parts.items():
        print(f"  {name:40s}{seconds:8.3f} s  {100 * seconds / ours:5.1f} %")

    model = peer.one_hidden_layer()(N1=P, T=1.0)
    begun = time.perf_counter()
    model.preprocess(data.X, data.y)
    once = time.perf_counter() - begun
    seconds, worst = [], 0.0
    for index in np.linspace(0, len(grid) - 1, few).round().astype(int):
        model.N1, model.T, _ = grid[index]
        begun = time.perf_counter()
        model.optimize()
        model.predict(data.X_test)
        loss = model.averageLoss(y)[0]
        seconds.append(time.perf_counter() - begun)
        pairs = (
            (model.optQ, saddles[index].value),
            (loss, losses[index]),
            (float(model.effectiveAction(model.optQ)), actions[index]),
        )
        worst = max(worst, *(abs(theirs / our - 1.0) for theirs, our in pairs))
        print(f"theirs: N1 = {model.N1}, T = {model.T:.3g}: {seconds[-1]:.2f} s", flush=True)
    theirs = once + len(grid) * float(np.mean(seconds))
    print(
        f"theirs, extrapolated from {few} cells: {theirs:.0f} s ({once:.2f} s of it once); largest relative difference {worst:.1e}"
    )
    print(f"ratio {theirs / ours:.0f} (target {TARGET:.0f}): {'met' if theirs / ours >= TARGET else 'MISSED'}")


if __name__ == "__main__":
    main()
