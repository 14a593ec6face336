"""nuts: NumPyro's No-U-Turn sampler on the JAX densities of `reference`: the independent judge of the torch samplers."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpyro.infer.hmc import HMCState, hmc

from data.errors import InputError
from data.problem import Problem
from data.provenance import git_commit, versions
from data.teacher import teacher_of
from sampling import reference
from sampling.provenance import PACKAGES, device_name
from sampling.reference import Data, double
from sampling.run import Run

BASIS_SIZE, BLOCK_SIZE, BLOCK = 64, 32, 25
SMALL = 512  # features (chains x P x N1) below which compiling costs more than running
OPTIONS: dict[str, Any] = {"density": "joint", "max_tree_depth": 10, "accept": 0.8, "dense": False}


class Nuts:
    """Leaves the joint posterior p(w, v | y) invariant, or the collapsed p(w | y) (option density); only likelihoods are tempered.

    All chains are one vectorised program. Each learns a step size and a diagonal (or dense) mass matrix of its own in `warmup`
    steps, and both are frozen after (NumPyro's schedule). Weights are never kept: a draw is measured and forgotten.

    y  (C, P) labels of each chain, where chains do not share the problem's (for tests over many data sets at once)
    """

    def __init__(self, problem: Problem, warmup: int, y: np.ndarray | None = None, **options: Any):
        unknown = sorted(set(options) - set(OPTIONS))
        if unknown:
            raise InputError(f"nuts does not take the option {unknown[0]!r} (it takes {', '.join(OPTIONS)})")
        chosen = OPTIONS | options
        if chosen["density"] not in ("joint", "collapsed"):
            raise InputError(f"density = {chosen['density']!r}: choose joint or collapsed")
        if not isinstance(chosen["max_tree_depth"], int) or not 1 <= chosen["max_tree_depth"] <= 15:
            raise InputError(f"max_tree_depth = {chosen['max_tree_depth']}: it must be a whole number from 1 to 15")
        if not 0 < chosen["accept"] < 1:
            raise InputError(f"accept = {chosen['accept']}: the wanted acceptance must lie between 0 and 1")
        self.problem, self.options, self.warmup = problem, chosen, warmup
        self.joint = chosen["density"] == "joint"
        self.data = Data.of(problem)
        if y is not None:
            self.data = self.data._replace(y=np.asarray(y, dtype=np.float64))
        self.labels = reference.label_contrast(problem)
        self.key: tuple[Any, ...] = (problem.activation, self.joint, warmup, y is not None)
        self.key += (chosen["max_tree_depth"], float(chosen["accept"]), bool(chosen["dense"]))

    def init(self, w: np.ndarray, v: np.ndarray, seed: int) -> HMCState:
        """State at w (C, N1, N0), v (C, N1) (v is not used on the collapsed density); warm-up begins with the first step."""
        z = {"w": np.asarray(w, np.float64)} | ({"v": np.asarray(v, np.float64)} if self.joint else {})
        words = np.random.SeedSequence(seed).generate_state(2, np.uint32)
        self.programs = programs(*self.key, small=len(w) * self.problem.P * self.problem.N1 <= SMALL)
        with double():
            # Chain c's key does not depend on how many chains run beside it.
            root = jax.random.fold_in(jax.random.key(int(words[0])), int(words[1]))
            keys = jax.vmap(partial(jax.random.fold_in, root))(jnp.arange(len(w)))
            return self.programs.begin(z, keys, self.data)

    def step(self, state: HMCState) -> HMCState:
        """One transition of every chain; adapts while the state has made fewer than `warmup` steps."""
        with double():
            return self.programs.advance(state, self.data)

    def settle(self, state: HMCState, w: np.ndarray | None = None, v: np.ndarray | None = None) -> HMCState:
        """The state with energy and gradient made afresh, after `data` or the position changed; what was learned is kept."""
        if w is not None:
            state = state._replace(z={"w": np.asarray(w)} | ({"v": np.asarray(v)} if self.joint else {}))
        with double():
            return self.programs.settle(state, self.data)

    def observe(self, state: HMCState) -> dict[str, np.ndarray]:
        """name -> (C,): the scalars of `reference`; on the joint density from the draw's own readout, else averaged over it."""
        with double():
            found = self.programs.measure(state, self.data, self.problem.a if self.labels is None else self.labels)
        kept = {name: np.asarray(value) for name, value in found.items()}
        if self.labels is None:
            del kept["d2_labels"]
        return kept

    def moments(self, state: HMCState, basis: np.ndarray, block: np.ndarray) -> dict[str, np.ndarray]:
        """ww, ww_stein (C, k, k) in `basis` and ss (C, m, m) on `block` at one draw, as in `Run.sums`."""
        with double():
            found = self.programs.moments(state, self.data, basis, block)
        return {name: np.asarray(value) for name, value in found.items()}

    def loglik_at(self, state: HMCState, temperatures: tuple[float, ...]) -> np.ndarray:
        """(C, n): the collapsed log-likelihood at each of n temperatures."""
        with double():
            return np.asarray(self.programs.loglik_at(state, self.data, np.array(temperatures)))


class Programs(NamedTuple):
    """Compiled functions over chains; `advance` is one NUTS transition, `settle` makes energy and gradient afresh."""

    begin: Any
    advance: Any
    settle: Any
    measure: Any
    moments: Any
    loglik_at: Any


@lru_cache(maxsize=32)
def programs(
    activation: str, joint: bool, warmup: int, own_labels: bool, depth: int, accept: float, dense: bool, small: bool
) -> Programs:
    """Compiled once for all problems of one shape, whatever their data and temperature: a grid of T compiles once.

    `small` leaves out the compiler's optimisation, which takes 10 s of CPU time where the whole run may take 2; large batches run
    three times slower without it.
    """

    def potential(data: Data) -> Callable[[dict[str, Array]], Array]:
        if joint:
            return lambda z: -reference.joint_logp(z["w"], z["v"], data, activation)
        return lambda z: -reference.collapsed_logp(z["w"], data, activation)

    start, advance = hmc(potential_fn_gen=potential, algo="NUTS")

    def begin(z: dict[str, Array], key: Array, data: Data) -> HMCState:
        return start(
            z,
            num_warmup=warmup,
            dense_mass=dense,
            target_accept_prob=accept,
            max_tree_depth=depth,
            model_args=(data,),
            rng_key=key,
        )

    def settle(state: HMCState, data: Data) -> HMCState:
        energy, grad = jax.value_and_grad(potential(data))(state.z)
        return state._replace(potential_energy=energy, z_grad=grad)

    def measure(state: HMCState, data: Data, labels: Array) -> dict[str, Array]:
        w, grad = state.z["w"], -state.z_grad["w"]  # z_grad is the gradient of the potential, -log p
        mine = (
            reference.joint_scalars(w, state.z["v"], data, activation)
            if joint
            else reference.collapsed_scalars(w, data, activation)
        )
        between = jnp.sum((labels @ reference.units(w, data, activation)) ** 2)
        return reference.first_layer_scalars(w, grad, data, activation) | mine | {"d2_labels": between}

    def moments(state: HMCState, data: Data, basis: Array, block: Array) -> dict[str, Array]:
        # Means over units. ww_stein = 1/lambda0 + sym(w (d loglik/dw)^T)/lambda0 (physics.md section 5.5)
        w, grad = state.z["w"], -state.z_grad["w"]
        along, pull = w @ basis, (grad + data.lambda0 * w) @ basis
        cross = along.T @ pull / (len(w) * data.lambda0)
        s = reference.units(w, data, activation)[block]
        return {
            "ww": along.T @ along / len(w),
            "ww_stein": jnp.eye(basis.shape[1]) / data.lambda0 + (cross + cross.T) / 2,
            "ss": s @ s.T / len(w),
        }

    def loglik_at(state: HMCState, data: Data, grid: Array) -> Array:
        return jax.vmap(lambda T: reference.log_evidence(state.z["w"], data, activation, T))(grid)

    axes = Data(*(0 if name == "y" and own_labels else None for name in Data._fields))

    def compiled(function: Callable[..., Any], *over: Any) -> Any:
        options = {"xla_backend_optimization_level": 0} if small else None
        return jax.jit(jax.vmap(function, over), compiler_options=options)

    return Programs(
        begin=compiled(begin, 0, 0, axes),
        advance=compiled(lambda state, data: advance(state, (data,)), 0, axes),
        settle=compiled(settle, 0, axes),
        measure=compiled(measure, 0, axes, None),
        moments=compiled(moments, 0, axes, None, None),
        loglik_at=compiled(loglik_at, 0, axes, None),
    )


def first_layers(problem: Problem, kinds: tuple[str, ...], rng: np.random.Generator) -> np.ndarray:
    """w (C, N1, N0), chain c by kinds[c]: "prior"; "aligned" (half of the units 3 prior standard deviations up or down the class
    direction X^T a, by turns); "zero" (a tenth of a prior draw); "teacher" (the network that made the labels)."""
    w = rng.normal(size=(len(kinds), problem.N1, problem.N0)) / math.sqrt(problem.lambda0)
    pull = problem.a @ problem.dataset.X
    pull = pull / max(float(np.linalg.norm(pull)), 1e-300)
    signs = np.where(np.arange(max(1, (problem.N1 + 1) // 2)) % 2, -3.0, 3.0) / math.sqrt(problem.lambda0)
    for chain, kind in enumerate(kinds):
        if kind == "aligned":
            some = w[chain, : len(signs)]
            some += np.outer(signs - some @ pull, pull)
        elif kind == "zero":
            w[chain] *= 0.1
        elif kind == "teacher":
            w[chain], _ = teacher_of(problem).weights(problem)
        elif kind != "prior":
            raise InputError(f"starts: nuts knows prior, aligned, zero and teacher, not {kind!r}; take hmc for that")
    return w


def run_nuts(
    problem: Problem,
    settings: Any,
    *,
    draws: int = 1000,
    budget_seconds: float | None = None,
    progress: Callable[[dict[str, Any]], None] | None = None,
) -> Run:
    """Sample with NumPyro's NUTS; `settings` are those of `sampling.run` (chains, seed, warmup, thin, starts, options, ...).

    options  density="joint" (default) or "collapsed", max_tree_depth, accept, dense
    It keeps no checkpoint. Raises InputError for options or devices that NUTS does not have here, Interrupted after Ctrl-C.
    """
    if settings.dtype != "float64":
        raise InputError(f"dtype = {settings.dtype!r}: nuts is the reference and computes in float64 only")
    report, stood = progress or (lambda event: None), {"warmup": 0, "sample": 0}
    with _interruptible(stood):
        return _sample(problem, settings, draws, budget_seconds, report, stood)


@contextlib.contextmanager
def _interruptible(stood: dict[str, int]) -> Iterator[None]:
    """Ctrl-C says where the run stood, and that it cannot be resumed."""
    try:
        yield
    except KeyboardInterrupt as stopped:
        from sampling.chains import Interrupted

        raise Interrupted(
            f"interrupted after {stood['warmup']} warm-up steps and {stood['sample']} draws a chain; nuts keeps no checkpoint, so "
            "it starts again from the beginning (hmc can be resumed)"
        ) from stopped


def _sample(
    problem: Problem,
    settings: Any,
    draws: int,
    budget_seconds: float | None,
    report: Callable[[dict[str, Any]], None],
    stood: dict[str, int],
) -> Run:
    """Warm-up and draws; `stood` counts the steps made in each."""
    rng = np.random.default_rng(np.random.SeedSequence(settings.seed).spawn(1)[0])
    with jax.default_device(_device(settings.device)):
        sampler = Nuts(problem, settings.warmup, **settings.options)
        w = first_layers(problem, settings.starts, rng)
        state = sampler.init(w, rng.normal(size=w.shape[:2]) / math.sqrt(problem.lambda1), settings.seed)
        if not np.isfinite(np.asarray(state.potential_energy)).all():
            raise InputError("the log-density is not finite at the start: check the scale of X, T and the precisions")
        clock = _Clock(report, problem.T, settings.warmup, "warmup")
        for _ in range(settings.warmup):
            state = sampler.step(state)
            stood["warmup"] += 1
            clock.tick()
        warmed = clock.seconds()
        basis, block = _basis(sampler.data), _block(problem)
        clock = _Clock(report, problem.T, draws, "sample")
        rows: list[dict[str, np.ndarray]] = []
        sums: dict[str, np.ndarray] = {}
        counts = {name: np.zeros(settings.chains) for name in ("accept", "leapfrogs", "divergences", "nan")}
        while len(rows) < draws and (budget_seconds is None or len(rows) < 4 or clock.seconds() < budget_seconds):
            for _ in range(settings.thin):
                state = sampler.step(state)
                counts["accept"] += np.asarray(state.accept_prob)
                counts["leapfrogs"] += np.asarray(state.num_steps)
                counts["divergences"] += np.asarray(state.diverging)
                counts["nan"] += ~np.isfinite(np.asarray(state.potential_energy))
            row = sampler.observe(state)
            if settings.temperatures:
                row["loglik_T"] = sampler.loglik_at(state, settings.temperatures)
            rows.append(row)
            for name, value in sampler.moments(state, basis, block).items():
                sums[name] = sums.get(name, 0.0) + value
            stood["sample"] += 1
            clock.tick()
    done, steps = len(rows), len(rows) * settings.thin
    manifest = {
        "sampler": "nuts",
        "biased": False,
        "density": sampler.options["density"],
        "settings": _settings(state, sampler.options),
        "options": settings.options,
        "seed": settings.seed,
        "chains": settings.chains,
        "warmup": settings.warmup,
        "draws": done,
        "thin": settings.thin,
        "batch": 1,
        "starts": list(settings.starts),
        "temperatures": list(settings.temperatures),
        "acceptance": (counts["accept"] / steps).tolist(),
        "divergences": counts["divergences"].astype(int).tolist(),
        "nan_share": float(counts["nan"].mean() / steps),
        "gradients_per_chain": float(counts["leapfrogs"].mean()),
        "seconds": {"warmup": warmed, "sample": clock.seconds()},
        "resumed": 0,
        "device": device_name(settings.device),
        "dtype": "float64",
        "tf32": False,
        "rank": sampler.data.span.shape[1],
        "problem": problem.describe(),
        "versions": versions(PACKAGES),
        "git_commit": git_commit(),
    }
    return Run(
        series={name: np.stack([row[name] for row in rows], 1) for name in rows[0]},
        sums={name: value / done for name, value in sums.items()},
        basis=basis,
        block=block,
        starts=list(settings.starts),
        manifest=manifest,
        biased=False,
    )


def _device(name: str) -> Any:
    """The JAX device of a torch-style name; raises InputError where JAX has none."""
    kind, _, index = name.partition(":")
    try:
        return jax.devices("gpu" if kind == "cuda" else kind)[int(index or 0)]
    except (RuntimeError, IndexError, ValueError) as error:
        raise InputError(f"device = {name!r}: JAX has no such device here; take cpu") from error


def _settings(state: HMCState, options: dict[str, Any]) -> dict[str, Any]:
    """What warm-up left: step sizes and the range of the inverse masses, per chain."""
    adapted = state.adapt_state
    masses = [np.asarray(one) for one in jax.tree_util.tree_leaves(adapted.inverse_mass_matrix)]
    return {
        "step_size": np.asarray(adapted.step_size).tolist(),
        "inverse_mass_min": min(float(one.min()) for one in masses),
        "inverse_mass_max": max(float(one.max()) for one in masses),
        **options,
    }


def _basis(data: Data) -> np.ndarray:
    """(N0, k) orthonormal, k <= 64: the class direction, then the leading directions of the inputs made orthogonal to it."""
    directions = [data.a @ data.X, *data.span.T[:BASIS_SIZE]]
    least = 1e-10 * np.linalg.norm(data.X) * np.linalg.norm(data.a)
    kept: list[np.ndarray] = []
    for direction in directions:
        left = direction.copy()
        for _ in range(2):  # twice is enough (Gram-Schmidt with reorthogonalisation)
            for other in kept:
                left -= (left @ other) * other
        norm = float(np.linalg.norm(left))
        if norm > (least if not kept and direction is directions[0] else 1e-8) and len(kept) < BASIS_SIZE:
            kept.append(left / norm)
    return np.column_stack(kept)


def _block(problem: Problem) -> np.ndarray:
    """Patterns of ss: the first 16 of each class."""
    classes = problem.dataset.classes
    half = BLOCK_SIZE // 2
    return np.concatenate([np.flatnonzero(classes > 0)[:half], np.flatnonzero(classes < 0)[:half]])


class _Clock:
    """Counts steps of one phase and reports them with the time left."""

    def __init__(self, report: Callable[[dict[str, Any]], None], T: float, total: int, phase: str):
        self.report, self.T, self.total, self.phase = report, T, total, phase
        self.begun, self.done = time.monotonic(), 0

    def seconds(self) -> float:
        return time.monotonic() - self.begun

    def tick(self) -> None:
        self.done += 1
        if self.done % BLOCK and self.done != self.total:
            return
        left = self.seconds() * (self.total - self.done) / self.done
        self.report(
            {
                "phase": self.phase,
                "done": self.done,
                "total": self.total,
                "elapsed_s": self.seconds(),
                "eta_s": left,
                "T": self.T,
            }
        )
