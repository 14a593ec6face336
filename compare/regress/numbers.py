"""What is compared of one cell: every number of the theory, and posterior means by chains, exactly where they are known."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from compare.regress.baseline import Measured
from data.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from sampling.run import Run
    from theory import Prediction

# A fixed list: what a run learns to record beside these is no change.
SCALARS = ("d2", "d2_labels", "Q", "fbar_a", "residual", "loglik", "norm_w")
LEVEL4_DRAWS, LEVEL4_BLOCK, LEVEL4_SEED = 32_768, 512, 0
PROBE = 6


def theory_numbers(problem: Problem) -> tuple[dict[str, float], dict[str, tuple[float, float]], tuple[float, ...]]:
    """(deterministic numbers, level 4 and its halves with their errors, the first numbers drawn for level 4).

    Invariant under the signs and order of eigenvectors, so that another LAPACK changes them by rounding only.
    """
    from theory import predict
    from theory.first_order import Settings
    from theory.unit_draws import UnitDraws

    settings = Settings(samples=LEVEL4_DRAWS, block=LEVEL4_BLOCK, seed=LEVEL4_SEED)
    found = predict(problem, settings)
    told = found.to_dict()
    numbers = {key: told[key] for key in ("Qbar", "prior", "delta1", "delta2", "fbar_a", "yKy_over_P")}
    numbers |= {f"level {key}": value for key, value in told["levels"].items() if key != "first_order"}
    numbers |= {f"p(Q|y) {key}": value for key, value in told["q_averaged"].items()}
    numbers |= {f"weights {key}": value for key, value in told["weights"].items()}
    numbers |= {"action at Qbar": _action(found), "certified": float(told["saddle"]["certified"])}
    numbers |= _matrices(found)
    if problem.dataset.X_test is not None:
        numbers |= {f"held out {key}": level.value for key, level in found.held_out().items()}
    fourth = found.first_order
    assert fourth is not None
    drawn = {
        "level 4": (fourth.value, fourth.se),
        "level 4, delta2": (fourth.delta2, fourth.delta2_se),
        "level 4, -delta1": (fourth.minus_delta1, fourth.minus_delta1_se),
    }
    rng = np.random.default_rng(np.random.SeedSequence(LEVEL4_SEED))
    first = next(iter(UnitDraws.of(found.spectrum, LEVEL4_BLOCK).batch(rng)))
    probe = (*first[0, : PROBE // 2], *first[-1, -PROBE // 2 :])
    return {key: float(value) for key, value in numbers.items()}, drawn, tuple(float(one) for one in probe)


def _action(prediction: Prediction) -> float:
    from theory.action import action

    p = prediction.problem
    return float(action(prediction.spectrum, prediction.Qbar, p.N1, p.T, p.lambda1))


def _matrices(prediction: Prediction) -> dict[str, float]:
    """Numbers of <w w^T> and of Eq. (1), at Qbar and averaged over p(Q|y)."""
    from theory.similarity import averaged, similarity

    p = prediction.problem
    found = {}
    for name, ww in (
        ("<ww>", prediction.weight_correlations()),
        ("<ww> averaged", prediction.weight_correlations(averaged=True)),
    ):
        for direction, d in directions(p).items():
            found[f"{name} {direction}"] = d @ ww @ d
        found[f"{name} trace"] = np.trace(ww) / p.N0
        found[f"{name} size"] = np.linalg.norm(p.lambda0 * ww - np.eye(p.N0))
    for name, ss in (
        ("Eq. (1)", similarity(prediction.spectrum, prediction.Qbar, p.N1, p.T, p.lambda1)),
        ("Eq. (1) averaged", averaged(prediction.spectrum, prediction.order, p.N1, p.T, p.lambda1)),
    ):
        found[f"{name} contrast"] = p.a @ ss @ p.a
        found[f"{name} trace"] = np.trace(ss) / p.P
    return {key: float(value) for key, value in found.items()}


def directions(problem: Problem) -> dict[str, np.ndarray]:
    """Unit vectors (N0,) of input space, up to sign: the class direction X^T a, and the leading one of X."""
    X = problem.dataset.X
    along = X.T @ problem.a
    leading = np.linalg.svd(X, full_matrices=False)[2][0]
    return {"class": along / np.linalg.norm(along), "leading": leading}


def measured_numbers(run: Run, problem: Problem) -> dict[str, Measured]:
    """Posterior means from the means of each chain, control variates taken off as in `compare.measure`.

    d2, d2_labels, Q, fbar_a, residual, loglik, norm_w; <w w> along two directions and its trace; the mean square of a feature.
    """
    from compare.measure import Measurement

    measurement = Measurement.of(run)
    length = run.draws * int(run.manifest.get("batch", 1))
    found = {
        name: Measured.of(means, length, measurement.quantities[name].ess)
        for name, means in measurement.chain_means.items()
        if name in SCALARS
    }
    ww = run.sums["ww" if run.biased else "ww_stein"]
    for name, d in directions(problem).items():
        u = run.basis.T @ d
        found[f"<ww> {name}"] = Measured.of(np.einsum("cij,i,j->c", ww, u, u), length)
    found["<ww> trace"] = Measured.of(np.trace(ww, axis1=1, axis2=2) / ww.shape[1], length)
    ss = run.sums["ss"]
    found["<s s> trace"] = Measured.of(np.trace(ss, axis1=1, axis2=2) / ss.shape[1], length)
    return found


def sample(
    problem: Problem,
    *,
    sampler: str,
    seed: int,
    chains: int,
    warmup: int | None,
    draws: int,
    progress: Callable[[dict[str, Any]], None] | None = None,
) -> Run:
    """One run of a fixed length on one thread: cells this small gain nothing from more."""
    from sampling import run

    return run(problem, sampler, chains=chains, seed=seed, warmup=warmup, draws=draws, threads=1, progress=progress)


def exact_numbers(problem: Problem) -> dict[str, tuple[float, float]]:
    """name -> (posterior mean, its error) by other means than chains: quadrature (linear), importance sampling (P <= 8), or none."""
    from sampling import oracle

    if problem.activation == "linear":
        found = oracle.linear(problem)
    elif problem.P <= oracle.MAX_PATTERNS:
        found = oracle.importance(problem)
    else:
        return {}
    numbers = {name: (found.values[name], found.se[name]) for name in ("d2", "Q", "fbar_a", "residual", "norm_w")}
    for name, d in directions(problem).items():
        # The components' errors added up as if they were fully correlated: an upper bound.
        bound = float(np.abs(d) @ found.ww_se @ np.abs(d))
        numbers[f"<ww> {name}"] = (float(d @ found.ww @ d), bound)
    return {name: (float(value), float(se)) for name, (value, se) in numbers.items() if math.isfinite(value)}
