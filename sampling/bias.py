"""Step-size study of unadjusted Langevin: runs at eps, eps/2, ..., the bias of each, and Richardson's extrapolation to eps = 0."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from data.errors import InputError
from data.problem import Problem
from sampling.chains import run
from sampling.diagnostics import Diagnosis, assess
from sampling.run import Run

if TYPE_CHECKING:
    import pandas

SCALARS = ("d2", "Q", "residual", "fbar_a")


@dataclass(frozen=True, eq=False)
class StepSizeStudy:
    """Unadjusted runs at steps eps_0 > eps_1 = eps_0/2 > ...; see `table` and `extrapolated`."""

    steps: tuple[float, ...]
    runs: tuple[Run, ...]
    diagnoses: tuple[Diagnosis, ...]

    def value(self, name: str, index: int) -> tuple[float, float]:
        """Mean and its standard error at steps[index]: the larger of the autocorrelation-aware and the between-chain error."""
        one = self.diagnoses[index].table[name]
        return one.mean, max(one.mcse, one.mcse_between)

    def extrapolated(self, name: str) -> tuple[float, float]:
        """Richardson: 2 m(eps/2) - m(eps) from the two smallest steps, exact to O(eps^2), with its error."""
        (coarse, coarse_se), (fine, fine_se) = self.value(name, -2), self.value(name, -1)
        return 2.0 * fine - coarse, math.hypot(2.0 * fine_se, coarse_se)

    def table(self, truth: dict[str, tuple[float, float]] | None = None) -> pandas.DataFrame:
        """One row a step and scalar: mean, se, and the bias against `truth` (name -> (value, se), e.g. an hmc run's), or against
        the extrapolation where none is given. Row step = 0 is the extrapolation itself."""
        import pandas

        rows: list[dict[str, Any]] = []
        for name in SCALARS:
            limit = self.extrapolated(name)
            reference = limit if truth is None else truth[name]
            values = [self.value(name, i) for i in range(len(self.steps))]
            for step, (mean, se) in zip([*self.steps, 0.0], [*values, limit], strict=True):
                own = truth is None and step == 0.0
                bias = 0.0 if own else mean - reference[0]
                error = 0.0 if own else math.hypot(se, reference[1])
                rows.append({"scalar": name, "step": step, "mean": mean, "se": se, "bias": bias, "bias_se": error})
        return pandas.DataFrame(rows)

    @property
    def ok(self) -> bool:
        """Whether every run converged, to its own biased density."""
        return all(one.ok for one in self.diagnoses)


def step_size_study(
    problem: Problem, *, step: float | None = None, halvings: int = 2, draws: int = 4000, seed: int = 0, **options: Any
) -> StepSizeStudy:
    """Run `langevin` at step, step/2, ..., step/2^halvings, with twice as many steps a draw each time.

    step   the largest eps (theta += eps grad log p + sqrt(2 eps) xi); by default what a warm-up finds (sampling.langevin)
    draws  a chain, each `thin` steps apart, thin doubling with every halving so that all runs cover the same physical time
    options  go to `sampling.run` (chains, warmup, thin, starts, density, device, ...)
    """
    if halvings < 1:
        raise InputError(f"halvings = {halvings}: Richardson's extrapolation needs at least two step sizes")
    thin = int(options.pop("thin", 4))
    warmup = int(options.pop("warmup", 2000))
    if step is None:
        pilot = run(problem, "langevin", seed=seed, warmup=warmup, draws=4, **options)
        step = float(pilot.manifest["settings"]["step_size"])
    steps = tuple(step / 2**k for k in range(halvings + 1))
    runs = tuple(
        run(
            problem, "langevin", step=eps, thin=thin * 2**k, warmup=warmup * 2**k, seed=seed + k, draws=draws, **options
        )
        for k, eps in enumerate(steps)
    )
    if not all(np.isfinite(one.series["d2"]).all() for one in runs):
        raise InputError(f"step = {step}: the Euler scheme is unstable at this step; take a smaller one")
    return StepSizeStudy(steps=steps, runs=runs, diagnoses=tuple(assess(one) for one in runs))
