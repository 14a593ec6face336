"""Effective draws of D^2 a second on digits even/odd, P = N1 = 100: hmc against its peers, in one run, as ratios.

Everything may use every core of the machine. Each sampler is run `REPEATS` times, in turns, and the median is taken. Two rates
are printed. `draws`: effective draws of D^2 from its autocorrelation alone. `worth`: independent draws that would give the standard
error of the <D^2> which saddlecheck reports, (sd/se)^2, control variates included; peers have none, so theirs is the same as
`draws`. Peers: NumPyro NUTS on (w, v); unadjusted Langevin as published (the update of deepbays' LangevinOpt, theta -= lr grad -
sqrt(2 lr T) xi, here batched and with hand-written gradients, which is kinder to it than its own code), at the best of
several steps; blackjax NUTS on (w, v). Run as: python tests/benchmarks/bench_samplers.py [--repeats N] [T ...]
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings

import numpy as np

import sampling
from compare.measure import Measurement
from data.errors import InputError
from data.problem import Problem
from data.registry import load
from sampling.diagnostics import estimate

REPEATS = 3
CHAINS = 16
LEARNING_RATES = (
    0.003,
    0.01,
    0.03,
    0.06,
)  # published convention, eps = lr T; unstable ones show as NaN and are skipped


Rates = tuple[float, float]  # draws and worth


def rate(run: sampling.Run) -> Rates:
    """Effective draws of D^2 a second of sampling, warm-up left out; a biased run has no control variates to use."""
    one = estimate(run.series["d2"])
    if not one.mcse > 0:
        return 0.0, 0.0
    seconds = run.manifest["seconds"]["sample"]
    raw = (one.sd / one.mcse) ** 2 / seconds
    return raw, raw if run.biased else (one.sd / Measurement.of(run).quantities["d2"].se) ** 2 / seconds


def hmc(problem: Problem, seed: int, dtype: str = "float64") -> Rates:
    return rate(sampling.run(problem, "hmc", chains=CHAINS, warmup=200, draws=300, seed=seed, dtype=dtype))


def nuts(problem: Problem, seed: int) -> Rates:
    raw, _ = rate(sampling.run(problem, "nuts", chains=2, warmup=200, draws=150, seed=seed, starts=("prior",)))
    return raw, raw


def langevin(problem: Problem, seed: int, step: float | None = None) -> Rates:
    run = sampling.run(
        problem, "langevin", chains=CHAINS, warmup=200, draws=600, thin=20, seed=seed, step=step, starts=("prior",)
    )
    return rate(run)


def published(problem: Problem, seed: int) -> Rates:
    """The best of the published scheme's step sizes."""
    rates = []
    for lr in LEARNING_RATES:
        try:
            rates.append(langevin(problem, seed, lr * problem.T))
        except InputError:
            continue  # unstable from the start
    return max(rates, default=(0.0, 0.0))


def blackjax_nuts(problem: Problem, seed: int) -> Rates:
    """blackjax's NUTS with window adaptation on the joint density of sampling.reference, two chains one after the other."""
    import blackjax
    import jax

    from sampling import reference

    with reference.double():
        data = reference.Data.of(problem)
        logdensity = lambda z: reference.joint_logp(z["w"], z["v"], data, problem.activation)  # noqa: E731
        series, seconds = [], 0.0
        for chain in range(2):
            key = jax.random.key(1000 * seed + chain)
            first, second, third, fourth = jax.random.split(key, 4)
            start = {
                "w": jax.random.normal(first, (problem.N1, problem.N0)),
                "v": jax.random.normal(second, (problem.N1,)),
            }
            warm = blackjax.window_adaptation(blackjax.nuts, logdensity)
            (state, settings), _ = warm.run(third, start, num_steps=200)
            step = jax.jit(blackjax.nuts(logdensity, **settings).step)
            state, _ = step(fourth, state)  # compiled before the clock starts
            values = []
            begun = time.perf_counter()
            for one in jax.random.split(fourth, 150):
                state, _ = step(one, state)
                values.append(state.position["w"])
            seconds += time.perf_counter() - begun
            s = np.asarray(jax.scipy.special.erf(np.asarray(values) @ problem.dataset.X.T / np.sqrt(problem.N0)))
            series.append(((s @ problem.a) ** 2).sum(-1))
    one = estimate(np.array(series))
    raw = (one.sd / one.mcse) ** 2 / seconds
    return raw, raw


PEERS = {"NumPyro NUTS, joint": nuts, "Langevin as published": published, "blackjax NUTS, joint": blackjax_nuts}
OURS = {"hmc float64": hmc, "hmc float32": lambda problem, seed: hmc(problem, seed, "float32")}


def main() -> None:
    parser = argparse.ArgumentParser(description="Effective draws of D^2 a second against peers")
    parser.add_argument("T", type=float, nargs="*", default=[0.1, 0.01])
    parser.add_argument("--repeats", type=int, default=REPEATS)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    digits = load("digits", classes="even/odd", P=100)
    for T in asked.T:
        problem = Problem(digits, 100, T)
        found: dict[str, list[Rates]] = {name: [] for name in OURS | PEERS}
        for seed in range(asked.repeats):
            for name, sampler in (OURS | PEERS).items():
                found[name].append(sampler(problem, seed))
        print(f"T = {T:g}: effective draws of D^2 a second, median of {asked.repeats}")
        medians = {
            name: [statistics.median(column) for column in zip(*rows, strict=True)] for name, rows in found.items()
        }
        draws, worth = medians["hmc float64"]
        for name, (raw, reduced) in medians.items():
            line = f"  {name:24s} draws {raw:8.1f}   worth {reduced:8.1f}   all {[round(one, 1) for one, _ in found[name]]}"
            if name in PEERS:
                line += f"   hmc float64 / this: draws {draws / raw:.0f}x, worth {worth / raw:.0f}x"
            print(line, flush=True)


if __name__ == "__main__":
    main()
