"""Exact answers by other means than Markov chains: 1-D quadrature (linear sigma), importance sampling (P <= 8), exact draws.

Plain numpy, written apart from the samplers, so that a test against it is a test against something independent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import erf, gammaln, ndtri
from scipy.stats import qmc

from data.errors import InputError
from data.problem import Problem

SIGMA: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "erf": erf,
    "linear": lambda h: h,
    "tanh": np.tanh,
    "sin": np.sin,
}
SCALARS = ("d2", "Q", "fbar_a", "residual", "norm_w")
MAX_PATTERNS = 8  # beyond this the prior hardly ever proposes what the posterior wants
MIN_ESS = 1000.0
CHUNK = 1 << 14  # prior draws worked on at once


class Weights(NamedTuple):
    """First layers w (n, N1, N0) and readouts v (n, N1), in the conventions of physics.md section 1."""

    w: np.ndarray
    v: np.ndarray


def prior(problem: Problem, n: int, rng: np.random.Generator) -> Weights:
    """n independent draws of (w, v) from the prior."""
    w = rng.normal(size=(n, problem.N1, problem.N0)) / math.sqrt(problem.lambda0)
    return Weights(w, rng.normal(size=(n, problem.N1)) / math.sqrt(problem.lambda1))


def features(problem: Problem, w: np.ndarray) -> np.ndarray:
    """(n, P, N1): sigma(w_i . x_mu/sqrt(N0)) at w (n, N1, N0). Raises InputError for an activation that is not covered."""
    if problem.activation not in SIGMA:
        raise InputError(f"activation = {problem.activation!r}: the exact answers are for {', '.join(SIGMA)}")
    return SIGMA[problem.activation](np.einsum("mk,nik->nmi", problem.dataset.X, w) / math.sqrt(problem.N0))


def span(problem: Problem) -> np.ndarray:
    """(N0, r) orthonormal directions of input space that the data see; along the others w keeps its prior."""
    _, lengths, vectors = np.linalg.svd(problem.dataset.X, full_matrices=False)
    return vectors[: max(1, int((lengths > 1e-12 * lengths[0]).sum()))].T


def outputs(problem: Problem, weights: Weights) -> np.ndarray:
    """(n, P): f(x_mu) = v . sigma(h)/sqrt(N1)."""
    return np.einsum("nmi,ni->nm", features(problem, weights.w), weights.v) / math.sqrt(problem.N1)


def labels(problem: Problem, weights: Weights, rng: np.random.Generator) -> np.ndarray:
    """(n, P) an exact draw of y | w, v: f + sqrt(T) noise."""
    f = outputs(problem, weights)
    return f + math.sqrt(problem.T) * rng.normal(size=f.shape)


def readout(problem: Problem, w: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(n, N1) an exact draw of v | w, y, with y (P,) or (n, P): Gaussian of precision lambda1 1 + Phi^T Phi/(N1 T)."""
    phi = features(problem, w) / math.sqrt(problem.N1)
    precision = problem.lambda1 * np.eye(problem.N1) + np.einsum("nmi,nmj->nij", phi, phi) / problem.T
    pull = np.einsum("nmi,nm->ni", phi, np.broadcast_to(y, (len(w), problem.P))) / problem.T
    mean = np.linalg.solve(precision, pull[..., None])[..., 0]
    # L L^T = precision, so L^{-T} xi has covariance precision^{-1}.
    L = np.linalg.cholesky(precision)
    return mean + np.linalg.solve(np.swapaxes(L, 1, 2), rng.normal(size=mean.shape)[..., None])[..., 0]


def scalars(problem: Problem, w: np.ndarray, y: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """name -> (n,): d2, Q, fbar_a, residual and loglik averaged over the readout given w (n, N1, N0), and norm_w =
    lambda0 |w|^2/(r N1) on the r directions that the data see.

    y (P,) or (n, P) defaults to the problem's labels. By the eigenvalues of the features' covariance F = Phi Phi^T/(lambda1 N1):
    with y = sum_k c_k e_k, loglik = -sum (log 2 pi (T + l) + c^2/(T + l))/2, E|y - f|^2 = sum T^2 c^2/(T + l)^2 + T l/(T + l),
    lambda1 E|v|^2 = N1 + sum l c^2/(T + l)^2 - l/(T + l).
    """
    y = np.broadcast_to(problem.dataset.y if y is None else y, (len(w), problem.P))
    phi = features(problem, w)
    level, e = np.linalg.eigh(np.einsum("nmi,nki->nmk", phi, phi) / (problem.lambda1 * problem.N1))
    level = np.maximum(level, 0.0)
    c = np.einsum("nm,nmk->nk", y, e)
    total = problem.T + level
    share = level / total
    a = np.einsum("m,nmk->nk", problem.a, e)
    return {
        "d2": (np.einsum("m,nmi->ni", problem.a, phi) ** 2).sum(1),
        "Q": 1.0 + (level * c**2 / total**2 - share).sum(1) / problem.N1,
        "fbar_a": (a * share * c).sum(1),
        "residual": ((problem.T * c / total) ** 2 + problem.T * share).sum(1),
        "norm_w": problem.lambda0 * ((w @ span(problem)) ** 2).mean((1, 2)),
        "loglik": -0.5 * (np.log(2 * math.pi * total) + c**2 / total).sum(1),
    }


def own_scalars(problem: Problem, weights: Weights, y: np.ndarray) -> dict[str, np.ndarray]:
    """name -> (n,): the same at draws with their own readout: Q = lambda1 |v|^2/N1, fbar_a = a.f, residual = |y - f|^2."""
    f = outputs(problem, weights)
    phi = features(problem, weights.w)
    residual = ((y - f) ** 2).sum(1)
    return {
        "d2": (np.einsum("m,nmi->ni", problem.a, phi) ** 2).sum(1),
        "Q": problem.lambda1 * (weights.v**2).mean(1),
        "fbar_a": f @ problem.a,
        "residual": residual,
        "norm_w": problem.lambda0 * ((weights.w @ span(problem)) ** 2).mean((1, 2)),
        "loglik": -0.5 * residual / problem.T,
    }


@dataclass(frozen=True, eq=False)
class Exact:
    """Posterior means: name -> value and standard error (0 for quadrature); ww (N0, N0) = <w_h w_k> over units, with its error.

    ess  effective number of prior draws behind an importance-sampling answer; inf for quadrature
    log_evidence  log p(y), with every constant, and its standard error
    """

    values: dict[str, float]
    se: dict[str, float]
    ww: np.ndarray
    ww_se: np.ndarray
    ess: float = math.inf
    log_evidence: float = math.nan
    log_evidence_se: float = 0.0

    def __getitem__(self, name: str) -> float:
        return self.values[name]


def linear(problem: Problem, points: int = 4001) -> Exact:
    """Exact posterior means of a LINEAR network at any N1, P, T, by quadrature over Q = lambda1 |v|^2/N1.

    Turn the units so that v lies along the first: f = |v| h_1/sqrt(N1), so given |v| unit 1 alone sees the labels, and is
    Gaussian with everything else at the prior. With C = X X^T/(lambda0 N0), K~ = T + (Q/lambda1) C, u = K~^{-1} y:
        p(Q | y)  proportional to  Q^{N1/2} exp(-N1 Q/2) N(y; 0, K~)  d log Q
        h_1 | Q, y ~ N( sqrt(Q/lambda1) C u,  C - (Q/lambda1) C K~^{-1} C )
    The integrand is smooth in log Q and vanishes at both ends, so the trapezoidal rule converges faster than any power; the range
    is where it exceeds 1e-18 of its largest value. Raises InputError for another activation, for T = 0, or where halving the
    number of points changes a value by more than 1e-9 of it.
    """
    if problem.activation != "linear":
        raise InputError(f"activation = {problem.activation!r}: the exact posterior is known for linear networks only")
    _positive_temperature(problem)
    fine, coarse = _linear(problem, points), _linear(problem, points // 2 + 1)
    for name, value in fine.values.items():
        if not abs(value - coarse.values[name]) <= 1e-9 * max(abs(value), 1e-12):
            raise InputError(f"the quadrature over Q did not settle for {name}: ask for more than {points} points")
    return fine


def _linear(problem: Problem, points: int) -> Exact:
    X, y, a = problem.dataset.X, problem.dataset.y, problem.a
    N0, N1, T = problem.N0, problem.N1, problem.T
    C = X @ X.T / (problem.lambda0 * N0)
    level, E = np.linalg.eigh(C)
    level = np.maximum(level, 0.0)
    c, alpha = E.T @ y, E.T @ a

    def log_weight(t: np.ndarray) -> np.ndarray:
        Q = np.exp(t)
        total = T + Q[:, None] / problem.lambda1 * level
        return 0.5 * N1 * (t - Q) - 0.5 * (np.log(total) + c**2 / total).sum(1)

    # Wide enough for any N1: Q^{N1/2} falls below 1e-18 of itself within 84/N1 in log Q of where the rest is flat.
    scan = np.linspace(-100.0 - 100.0 / N1, 15.0, 20_001)
    values = log_weight(scan)
    inside = scan[values > values.max() - 42.0]
    step = scan[1] - scan[0]
    t = np.linspace(inside[0] - step, inside[-1] + step, points)
    density = log_weight(t)
    weight = np.exp(density - density.max())
    # p(Q) d log Q = (N1/2)^{N1/2} Q^{N1/2} exp(-N1 Q/2)/Gamma(N1/2) d log Q
    constant = 0.5 * N1 * math.log(0.5 * N1) - float(gammaln(0.5 * N1)) - 0.5 * problem.P * math.log(2 * math.pi)
    evidence = constant + float(density.max()) + math.log(float(weight.sum()) * (t[1] - t[0]))
    weight /= weight.sum()

    Q = np.exp(t)[:, None] / problem.lambda1  # Q/lambda1
    total = T + Q * level
    share = Q * level / total
    mean_a = np.sqrt(Q[:, 0]) * (alpha * level * c / total).sum(1)  # a . E[h_1]
    var_a = (alpha**2 * level * (1.0 - share)).sum(1)  # a . Cov[h_1] a
    prior_a = float((alpha**2 * level).sum())
    found = {
        "d2": (N1 - 1) * prior_a + weight @ (mean_a**2 + var_a),
        "Q": weight @ np.exp(t),
        "fbar_a": weight @ (alpha * share * c).sum(1),
        "residual": weight @ ((T * c / total) ** 2 + T * share).sum(1),
    }
    # w_1 | Q, y: mean sqrt(Q/lambda1) X^T u/(lambda0 sqrt N0), covariance 1/lambda0 - (Q/lambda1) X^T K~^{-1} X/(lambda0^2 N0)
    XE = X.T @ E / (problem.lambda0 * math.sqrt(N0))
    outer = np.einsum("q,qk,ql->kl", weight * Q[:, 0], c / total, c / total)
    shrink = np.diag(weight @ (Q / total))
    ww = np.eye(N0) / problem.lambda0 + XE @ (outer - shrink) @ XE.T / N1
    seen = span(problem)
    found["norm_w"] = problem.lambda0 * float(np.trace(seen.T @ ww @ seen)) / seen.shape[1]
    zero = dict.fromkeys(found, 0.0)
    means = {name: float(value) for name, value in found.items()}
    return Exact(means, zero, ww, np.zeros_like(ww), log_evidence=evidence)


def importance(problem: Problem, draws: int = 1 << 19, replicates: int = 32, seed: int = 0) -> Exact:
    """Posterior means by self-normalised importance sampling from the prior, for P <= 8: no chain, no burn-in.

    The first layer is drawn from its prior and weighted by N(y; 0, A), the readout integrated out (physics.md section 6); every
    quantity is averaged over the readout exactly. The prior draws are `replicates` independently scrambled Sobol' sets (an
    unbiased cover of the prior, more even than independent draws); standard errors are jackknifed over replicates.
    Returns d2, Q, fbar_a, residual, norm_w and <ww>. Raises InputError for P > 8, for T = 0, and where the effective number of
    draws is below 1000 or one draw carries over 1% of the weight: then the prior does not reach the posterior.
    """
    _positive_temperature(problem)
    if problem.P > MAX_PATTERNS:
        raise InputError(f"P = {problem.P}: importance sampling from the prior is for P <= {MAX_PATTERNS}; use a chain")
    each = 1 << max(6, math.ceil(math.log2(max(1, draws // replicates))))
    children = np.random.SeedSequence(seed).spawn(replicates)
    # An upper bound of the likelihood (A >= T), so that weights are below 1 and sums need no rescaling.
    top = -0.5 * problem.P * math.log(2 * math.pi * problem.T)
    totals = []
    sum_squares = largest = 0.0
    for child in children:
        points = qmc.Sobol(problem.N1 * problem.N0, rng=np.random.default_rng(child))
        total: dict[str, np.ndarray] = {}
        for _ in range(max(1, each // CHUNK)):
            u = np.clip(points.random(min(each, CHUNK)), 1e-12, 1.0 - 1e-12)
            w = (ndtri(u) / math.sqrt(problem.lambda0)).reshape(-1, problem.N1, problem.N0)
            row = scalars(problem, w)
            weight = np.exp(row.pop("loglik") - top)
            sum_squares += float((weight**2).sum())
            largest = max(largest, float(weight.max()))
            parts = {name: weight @ value for name, value in row.items()}
            parts["ww"] = np.einsum("n,nih,nik->hk", weight, w, w, optimize=True) / problem.N1
            parts["weight"] = weight.sum()
            total = {name: total.get(name, 0.0) + value for name, value in parts.items()}
        totals.append(total)
    sums = {name: np.stack([total[name] for total in totals]) for name in totals[0]}
    mass = float(sums["weight"].sum())
    ess = mass**2 / sum_squares if sum_squares > 0 else 0.0
    if not ess >= MIN_ESS or largest > 0.01 * mass:
        raise InputError(
            f"importance sampling from the prior has {ess:.0f} effective draws of {each * replicates} (1000 are wanted, and "
            f"no draw above 1% of the weight; the largest has {100 * largest / max(mass, 1e-300):.1f}%): raise T or draws"
        )
    values, errors = {}, {}
    for name, value in sums.items():
        if name == "weight":
            continue
        values[name], errors[name] = _jackknife(value, sums["weight"])
    ww, ww_se = values.pop("ww"), errors.pop("ww")
    scalar = {name: float(value) for name, value in values.items()}
    se = {name: float(errors[name]) for name in scalar}
    masses = sums["weight"] / sums["weight"].mean()
    relative = float(masses.std(ddof=1)) / math.sqrt(len(masses))
    # log of a mean is low by half its relative variance
    evidence = top + math.log(mass / (each * replicates)) + 0.5 * relative**2
    return Exact(scalar, se, ww, ww_se, ess, evidence, relative)


def _jackknife(numerator: np.ndarray, denominator: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ratio of sums over replicates (first axis), with its bias-corrected value and standard error."""
    n = len(denominator)
    below = denominator.reshape(n, *[1] * (numerator.ndim - 1))
    whole = numerator.sum(0) / below.sum(0)
    without = (numerator.sum(0) - numerator) / (below.sum(0) - below)
    spread = np.sqrt((n - 1) / n * ((without - without.mean(0)) ** 2).sum(0))
    return n * whole - (n - 1) * without.mean(0), spread


def _positive_temperature(problem: Problem) -> None:
    if problem.T <= 0:
        raise InputError(f"T = {problem.T}: the posterior has a density only for T > 0")
