"""Effective draws of D^2 a second on digits even/odd, P = N1 = 100: hmc against its peers, in one run, as ratios.

Everything may use every core of the machine. Each sampler is run `REPEATS` times, in turns, and the median is taken. Peers: NumPyro
NUTS on (w, v); unadjusted Langevin as published (the update of deepbays' LangevinOpt, theta -= lr grad - sqrt(2 lr T) xi, here
batched and with hand-written gradients, which is kinder to it than its own code), at the best of several steps; blackjax NUTS
on (w, v). Run as: python tests/benchmarks/bench_samplers.py [T ...]
"""

from __future__ import annotations

import statistics
import sys
import time
import warnings

import numpy as np

import sampling
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


def rate(run: sampling.Run) -> float:
    """Effective draws of D^2 a second of sampling, warm-up left out."""
    one = estimate(run.series["d2"])
    return (one.sd / one.mcse) ** 2 / run.manifest["seconds"]["sample"] if one.mcse > 0 else 0.0


def hmc(problem: Problem, seed: int, dtype: str = "float64") -> float:
    return rate(sampling.run(problem, "hmc", chains=CHAINS, warmup=200, draws=200, seed=seed, dtype=dtype))


def nuts(problem: Problem, seed: int) -> float:
    return rate(sampling.run(problem, "nuts", chains=2, warmup=200, draws=150, seed=seed, starts=("prior",)))


def langevin(problem: Problem, seed: int, step: float | None = None) -> float:
    run = sampling.run(
        problem, "langevin", chains=CHAINS, warmup=200, draws=600, thin=20, seed=seed, step=step, starts=("prior",)
    )
    return rate(run)


def published(problem: Problem, seed: int) -> float:
    """The best of the published scheme's step sizes."""
    rates = []
    for lr in LEARNING_RATES:
        try:
            rates.append(langevin(problem, seed, lr * problem.T))
        except sampling.chains.InputError:
            continue  # unstable from the start
    return max(rates)


def blackjax_nuts(problem: Problem, seed: int) -> float:
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
    return (one.sd / one.mcse) ** 2 / seconds


PEERS = {"NumPyro NUTS, joint": nuts, "Langevin as published": published, "blackjax NUTS, joint": blackjax_nuts}
OURS = {"hmc float64": hmc, "hmc float32": lambda problem, seed: hmc(problem, seed, "float32")}


def main() -> None:
    warnings.simplefilter("ignore")
    digits = load("digits", classes="even/odd", P=100)
    for T in [float(word) for word in sys.argv[1:]] or [0.1, 0.01]:
        problem = Problem(digits, 100, T)
        found: dict[str, list[float]] = {name: [] for name in OURS | PEERS}
        for seed in range(REPEATS):
            for name, sampler in (OURS | PEERS).items():
                found[name].append(sampler(problem, seed))
        medians = {name: statistics.median(values) for name, values in found.items()}
        print(f"T = {T:g}: effective draws of D^2 a second, median of {REPEATS} (all)")
        for name, value in medians.items():
            ratio = "" if name in OURS else f"   hmc float64 / this = {medians['hmc float64'] / value:.0f}x"
            print(f"  {name:24s} {value:8.1f}  {[round(v, 1) for v in found[name]]}{ratio}", flush=True)


if __name__ == "__main__":
    main()
