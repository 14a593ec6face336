"""Synthetic runs with known truth: AR(1) chains of D^2, Q, a.f with known means, autocorrelation and control variates."""

import numpy as np

from sampling.run import Run


def ar1(rng, shape, rho):
    """(..., chains, draws) stationary AR(1) of variance 1 and integrated autocorrelation time (1 + rho)/(1 - rho)."""
    noise = rng.normal(size=shape)
    out = np.empty(shape)
    out[..., 0] = noise[..., 0]
    for t in range(1, shape[-1]):
        out[..., t] = rho * out[..., t - 1] + np.sqrt(1 - rho * rho) * noise[..., t]
    return out


def run(
    rng, *, d2=10.0, Q=1.2, fbar_a=1.8, sd=0.5, chains=16, draws=400, rho=0.3, control=0.9, lambda1=1.0, biased=False
):
    """A Run whose d2 has mean `d2` and sd `sd`; its control variate explains the share `control` of its standard deviation."""
    shared = ar1(rng, (chains, draws), rho)
    own = ar1(rng, (chains, draws), rho)
    series = {
        "d2": d2 + sd * (control * shared + np.sqrt(1 - control**2) * own),
        "d2_stein": -2.0 * shared,
        "Q": Q + 0.05 * ar1(rng, (chains, draws), rho),
        "fbar_a": fbar_a + 0.02 * (0.8 * own + 0.6 * ar1(rng, (chains, draws), rho)),
        "residual": 5.0 + 0.4 * ar1(rng, (chains, draws), rho),
        "loglik": -20.0 + 2.0 * ar1(rng, (chains, draws), rho),
    }
    k = 3
    sums = {"ww_stein": np.eye(k) + 0.01 * rng.normal(size=(chains, k, k))}
    starts = ["prior", "aligned"] * (chains // 2)
    manifest = {"problem": {"lambda1": lambda1}, "nan_share": 0.0}
    return Run(series, sums, np.eye(k), np.arange(2), starts[:chains], manifest, biased)
