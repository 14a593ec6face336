"""Multi-temperature reweighting (MBAR): <O>(T) between and at the sampled temperatures from the draws of all of them together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.interpolate import CubicSpline
from scipy.special import logsumexp

from compare.curve import GRID, Curve, grid
from data.errors import InputError

OVERLAP = 0.03  # least share of draws that neighbouring temperatures exchange (Klimovich, Shirts & Mobley, JCAMD 29, 397 (2015))
REACH = 4.0  # largest ratio of neighbouring T that is worth trying
FEWEST = 4  # temperatures: the log-likelihood between them is a cubic spline
MOST_ROWS = 200_000  # draws over all temperatures; longer runs are thinned evenly
TOLERANCE = 1e-10


@dataclass(frozen=True, eq=False)
class Solution:
    """Free energies of K states and what the estimator is made of.

    f        (K,) -log Z_k, f[0] = 0
    mixture  (N,) log of sum_j c_j exp(f_j + l_j(x_n)), the log of the mixture density up to the prior
    W        (N, K) exp(f_j + l_j)/mixture, so that sum_n omega_n W_nj = 1
    omega    (N,) weight of each draw, c_k/N_k for the draws of state k
    c        (K,) effective draws of each state
    overlap  (K, K) O_ij = c_j sum_n omega_n W_ni W_nj: the share of state i's weight that draws of state j carry; rows sum to 1
    """

    f: np.ndarray
    mixture: np.ndarray
    W: np.ndarray
    omega: np.ndarray
    c: np.ndarray
    overlap: np.ndarray

    @property
    def least_overlap(self) -> float:
        """Between neighbouring states, the smaller of the two directions."""
        k = np.arange(len(self.c) - 1)
        return float(np.minimum(self.overlap[k, k + 1], self.overlap[k + 1, k]).min())


def solve(loglik: np.ndarray, sizes: np.ndarray, c: np.ndarray, steps: int = 200) -> Solution:
    """MBAR (Shirts & Chodera, J. Chem. Phys. 129, 124105 (2008)) for the densities exp(l_k(x)) prior(x).

    loglik (N, K) l_j(x_n) of every draw at every state, the draws in the order of their states; sizes (K,) draws of each state;
    c (K,) how much each weighs.
    Minimises the convex sum_n omega_n log sum_j c_j exp(f_j + l_jn) - sum_j c_j f_j by Newton steps with backtracking.
    Raises InputError where it does not converge: then states do not overlap at all.
    """
    K = len(c)
    omega = np.repeat(c / sizes, sizes)
    tilted = loglik + np.log(c)

    def objective(f: np.ndarray) -> tuple[float, np.ndarray]:
        mixture = logsumexp(tilted + f, axis=1)
        return float(omega @ mixture - c @ f), mixture

    f = _first_guess(loglik, sizes)
    value, mixture = objective(f)
    for _ in range(steps):
        share = np.exp(tilted + f - mixture[:, None])  # (N, K) c_j W_nj
        weighted = share * omega[:, None]
        gradient = weighted.sum(0) - c
        if np.abs(gradient).max() <= TOLERANCE * c.sum():
            W = share / c
            return Solution(f, mixture, W, omega, c, (W * omega[:, None]).T @ W * c)
        hessian = np.diag(weighted.sum(0)) - weighted.T @ share
        # f is defined up to a constant: f[0] = 0
        step = np.zeros(K)
        step[1:] = -np.linalg.lstsq(hessian[1:, 1:], gradient[1:], rcond=1e-14)[0]
        size, slope = 1.0, float(gradient @ step)
        while size > 1e-8:
            trial = objective(f + size * step)
            if trial[0] <= value + 1e-4 * size * slope + 1e-12 * abs(value):
                break
            size *= 0.5
        f = f + size * step
        value, mixture = trial
    raise InputError("reweighting between temperatures did not converge: neighbouring temperatures do not overlap")


def _first_guess(loglik: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """f by the trapezoid rule in each neighbouring pair, from the draws of the two."""
    edges = np.concatenate([[0], np.cumsum(sizes)])
    f = np.zeros(len(sizes))
    for k in range(len(sizes) - 1):
        change = loglik[:, k + 1] - loglik[:, k]
        f[k + 1] = f[k] - 0.5 * (change[edges[k] : edges[k + 1]].mean() + change[edges[k + 1] : edges[k + 2]].mean())
    return f


def reweighted(
    T: np.ndarray,
    values: Sequence[np.ndarray],
    loglik: Sequence[np.ndarray],
    *,
    at: np.ndarray | None = None,
    tau: np.ndarray | None = None,
    anchors: tuple[np.ndarray, Sequence[np.ndarray]] | None = None,
    points: int = GRID,
) -> Curve | None:
    """The curve <O>(T) by MBAR, or None where it cannot be trusted: neighbours overlap by less than OVERLAP.

    T         (K,) sampled temperatures, ascending
    values    K arrays (C_k, n_k): O of each draw at T_k, a function of the first layer alone
    loglik    K arrays (C_k, n_k, J): the collapsed log N(y; 0, A_T) of each draw at the temperatures `at`; the prior cancels
    at        (J,) temperatures, ascending, every T among them (default: T). More of them between cost little and interpolate better
    tau       (K,) integrated autocorrelation times, which set how much the draws of each T weigh (any tau is consistent)
    anchors   better means at the sampled T, where there are any (control variates): (K,) means and K arrays (C_k,) of chain means
    points    of the grid in log T

    Elsewhere each draw's log-likelihood is the cubic spline in log T through its values at `at`. Errors are first
    order: the influence of each draw, free energies included, summed chain by chain, so correlations within a chain do not matter.
    Raises InputError for fewer than FEWEST temperatures or arrays that do not match.
    """
    T = np.asarray(T, dtype=np.float64)
    at = T if at is None else np.asarray(at, dtype=np.float64)
    K, J = len(T), len(at)
    if K < FEWEST or (np.diff(T) <= 0).any() or (np.diff(at) <= 0).any():
        raise InputError(f"reweighting needs at least {FEWEST} temperatures in ascending order; there are {K}")
    columns = np.abs(np.log(at)[:, None] - np.log(T)).argmin(0)
    if not np.allclose(at[columns], T, rtol=1e-9):
        raise InputError("the log-likelihoods must be known at every sampled temperature, and at some they are not")
    for value, table in zip(values, loglik, strict=True):
        if table.shape != (*value.shape, J):
            raise InputError(
                f"log-likelihoods {(*value.shape, J)} must go with values {value.shape}; they are {table.shape}"
            )
    stride = max(1, -(-sum(value.size for value in values) // MOST_ROWS))
    kept = [value[:, ::stride] for value in values]
    rows = [table[:, ::stride].reshape(-1, J) for table in loglik]
    sizes = np.array([len(one) for one in rows])
    c = sizes / np.maximum(1.0, (np.ones(K) if tau is None else np.asarray(tau)) / stride)
    table = np.concatenate(rows)
    table = table - table.mean(0)  # a constant at each T is part of its free energy
    if not np.isfinite(table).all():
        return None
    try:
        solution = solve(table[:, columns], sizes, c)
    except InputError:
        return None
    if solution.least_overlap < OVERLAP:
        return None
    x, nodes = grid(T, points)
    O = np.concatenate([one.reshape(-1) for one in kept])  # noqa: E741
    spline = CubicSpline(np.log(at), table, axis=1)
    chains = np.array([len(one) for one in kept])
    mean, sums = _estimates(solution, spline, x, O, np.repeat(sizes // chains, chains))
    # From sums over a chain to what it adds to the curve: omega = c/size in its state, and a chain counts chains-fold in the mean.
    scaled = sums * np.repeat(chains * c / sizes, chains)[:, None]
    deviations = [one - one.mean(0) for one in np.split(scaled, np.cumsum(chains)[:-1])]
    if anchors is not None:
        mean, deviations = _anchored(x, nodes, mean, deviations, *anchors)
    note = f"least overlap of neighbouring temperatures {solution.least_overlap:.2f}"
    return Curve(x, nodes, mean, tuple(deviations), "mbar", note, _interpolation(solution, table, at, O))


def _estimates(
    solution: Solution,
    spline: CubicSpline,
    x: np.ndarray,
    O: np.ndarray,  # noqa: E741
    lengths: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """(m,) <O> at log T = x, and (chains of all states, m) the influence of the draws summed over each chain of `lengths` draws.

    Influence: d<O> = sum_n d(omega_n) influence_n for changes of weight that sum to 0 in each state. With w_n = exp(l_T)/mixture,
    normalised to sum_n omega_n w_n = 1, the direct part is w_n (O_n - <O>). A change of weights also moves f: J df = -sum_n d(omega_n)
    W_n with J = 1 - overlap, and d<O>/df_j = -c_j sum_n omega_n w_n (O_n - <O>) W_nj.
    """
    W, omega, c = solution.W, solution.omega, solution.c
    inverse = np.linalg.pinv(np.eye(len(c)) - solution.overlap, rcond=1e-12)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
    mean = np.empty(len(x))
    sums = np.empty((len(lengths), len(x)))
    for i, point in enumerate(x):
        log_w = spline(point) - solution.mixture
        w = np.exp(log_w - log_w.max())
        w /= omega @ w
        mean[i] = omega @ (w * O)
        direct = w * (O - mean[i])
        carried = c * ((omega * direct) @ W)
        sums[:, i] = np.add.reduceat(direct + W @ (inverse.T @ carried), starts)
    return mean, sums


def _anchored(
    x: np.ndarray,
    nodes: np.ndarray,
    mean: np.ndarray,
    deviations: list[np.ndarray],
    means: np.ndarray,
    chains: Sequence[np.ndarray],
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Curve and deviations drawn towards better means at the sampled T: control variates cut errors there, which MBAR cannot use.

    d_k = MBAR minus the anchor at T_k has mean 0 whatever the curve is, so the curve minus sum_k h_k(log T) g_k d_k, with hat functions
    h_k, is as unbiased as both are; g_k is the one that makes the error at T_k least, within [0, 1].
    """
    hats = np.array([np.interp(x, x[nodes], row) for row in np.eye(len(nodes))])
    gaps = [one[:, nodes].copy() for one in deviations]
    for k, own in enumerate(chains):
        gaps[k][:, k] -= own - own.mean()
    factors = [1.0 / (len(one) * (len(one) - 1)) for one in deviations]
    variance = sum(f * (gap**2).sum(0) for f, gap in zip(factors, gaps, strict=True))
    covariance = sum(f * (gap * one[:, nodes]).sum(0) for f, gap, one in zip(factors, gaps, deviations, strict=True))
    g = np.clip(np.divide(covariance, variance, out=np.zeros(len(nodes)), where=variance > 0), 0.0, 1.0)
    moved = mean - (g * (mean[nodes] - means)) @ hats
    return moved, [one - (g * gap) @ hats for one, gap in zip(deviations, gaps, strict=True)]


def _interpolation(solution: Solution, table: np.ndarray, T: np.ndarray, O: np.ndarray) -> float:  # noqa: E741
    """Largest miss of <O> at an inner column T_j of the table when the spline of the log-likelihoods is made without it."""
    logs, misses = np.log(T), []

    def average(column: np.ndarray) -> float:
        log_w = column - solution.mixture
        w = solution.omega * np.exp(log_w - log_w.max())
        return float(w @ O / w.sum())

    for out in range(1, len(T) - 1):
        keep = np.arange(len(T)) != out
        guess = CubicSpline(logs[keep], table[:, keep], axis=1)(logs[out])
        misses.append(abs(average(guess) - average(table[:, out])))
    return max(misses)
