"""identities: what holds in the exact posterior at any size (physics.md section 5.5), evaluated with the true problem's constants."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np
import torch

from data.problem import Problem
from sampling.battery import worlds
from sampling.battery.result import CheckResult, judge, mean_z
from sampling.battery.setting import Sample, Setting, components, sample
from sampling.battery.subject import Chains, Subject
from sampling.observables import STEIN
from sampling.posterior import Collapsed

NAME = "identities"
CONTROL = "T halved"
BETA = (1.0, 3.0)  # range of inverse temperatures over which <D^2> is followed
NODES = 3  # Gauss-Legendre; its error on this range is 100 times below what the chains resolve (tests/sampling/test_battery.py)
FOLLOWED = (
    "d2",
    "norm_w",
)  # functions of the first layer, so that averaging over the readout leaves their covariance alone


def check(subject: Subject, setting: Setting) -> CheckResult:
    """Three families, all by chain means:

    energy      lambda1 <|v|^2> + <f.(f - y)>/T = N1
    score       <L q> = 0 for six functions q (Stein's identity; with odd sigma the bare score vanishes by symmetry in any
                density), and <w_h w_k> = (delta + <w_h d loglik/dw_k>)/lambda0, the second estimator, for every component
    derivative  <O>(beta2) - <O>(beta1) = -(1/2) int Cov(O, sum (y - f)^2) dbeta for O = D^2 and |w|^2
    """
    begun, problem = time.monotonic(), worlds.identities()
    truth = Collapsed.of(problem)

    def visit(chains: Chains, state: Any) -> dict[str, np.ndarray]:
        return _stein(truth, problem, chains.weights(state)[0])

    found = sample(subject, problem, setting.count(250), setting.seed, visit)
    half = problem.P / 2  # y.f = P (a.f)/2 on balanced classes trained on
    fit = half * found.means("fbar_a") - problem.P  # y.f - y.y
    energy = problem.N1 * found.means("Q") + (found.means("residual") + fit) / problem.T
    scores = {"energy": mean_z(energy, float(problem.N1))}
    scores |= {f"<{name}> = 0": mean_z(found.means(name)) for name in STEIN}
    second = np.stack([found.series[f"second{k}"].mean(1) for k in range(problem.N0**2)], 1)
    gap = found.ww - second.reshape(-1, problem.N0, problem.N0)
    scores |= {f"{name} twice": mean_z(value) for name, value in components(gap).items()}
    scores |= _derivative(subject, found, problem, setting)
    return judge(NAME, scores, setting.false_alarm, "erf, P = 8, N1 = 5, T = 0.5 and beta from 1 to 3", begun)


def _stein(truth: Collapsed, problem: Problem, w: np.ndarray) -> dict[str, np.ndarray]:
    """Stein variates and the second estimator of <w w>, from the true density's gradient at w (C, N1, N0)."""
    V = truth.model.reduction.V
    g = torch.tensor(math.sqrt(problem.lambda0) * w @ V)
    scalars = truth.observe(g)
    pull = math.sqrt(problem.lambda0) * truth.likelihood(g)[1].numpy() @ V.T  # d loglik/dw
    cross = np.einsum("cih,cik->chk", w, pull) / (problem.N1 * problem.lambda0)
    second = np.eye(problem.N0) / problem.lambda0 + 0.5 * (cross + np.swapaxes(cross, 1, 2))
    flat = second.reshape(len(w), -1)
    return {name: scalars[name].numpy() for name in STEIN} | {f"second{k}": flat[:, k] for k in range(flat.shape[1])}


def _derivative(subject: Subject, middle: Sample, problem: Problem, setting: Setting) -> dict[str, float]:
    """Both sides from separate runs; `middle` is the one at the range's middle, the problem's own T, which is a node."""
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    low, high = BETA
    draws = setting.count(160)

    def at(beta: float, seed: int) -> Sample:
        return sample(subject, problem.replace(T=1.0 / beta), draws, setting.seed + seed)

    runs = [
        middle if node == 0 else at(0.5 * (high - low) * node + 0.5 * (high + low), 23 + k)
        for k, node in enumerate(nodes)
    ]
    first, last = at(low, 21), at(high, 22)
    scores = {}
    for name in FOLLOWED:
        # Chain c of one run is paired with chain c of another, which is independent of it.
        gap = last.means(name) - first.means(name)
        for weight, run in zip(weights, runs, strict=True):
            residual = run.series["residual"]
            product = (run.series[name] - run.series[name].mean()) * (residual - residual.mean())
            gap = gap + 0.25 * (high - low) * weight * product.mean(1)
        scores[f"d<{name}>/dbeta"] = mean_z(gap)
    return scores
