"""The same posterior written a second time, in JAX: densities in (w, v), gradients by autodiff, scalars in weight space.

Not a line is shared with the torch code. Positions are the weights themselves, w (N1, N0) and v (N1,), with no row-space
reduction; A is always P x P; averages over the readout come from its Gaussian in weight space (N1 x N1), where the
torch code uses A^{-1}; derivatives are JAX's. float64 holds inside a local context only: nothing global is switched on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.scipy.linalg import cho_solve, solve_triangular

from data.errors import InputError
from data.problem import Problem, contrast

SIGMA: dict[str, Callable[[Array], Array]] = {
    "erf": jax.scipy.special.erf,
    "linear": lambda h: h,
    "tanh": jnp.tanh,
    "sin": jnp.sin,
}


def double() -> Any:
    """A context in which JAX computes in float64; outside it nothing is changed."""
    return jax.enable_x64(True)


class Data(NamedTuple):
    """A problem as arrays, so that one compiled function serves all problems of one shape and activation.

    X (P, N0); y (P,); a (P,) contrast of the classes; span (N0, r) orthonormal, the inputs that the data see; T, lambda0,
    lambda1 scalars.
    """

    X: Any
    y: Any
    a: Any
    span: Any
    T: Any
    lambda0: Any
    lambda1: Any

    @classmethod
    def of(cls, problem: Problem) -> Data:
        """Raises InputError for T = 0, where the posterior has no density, and for an activation not known here."""
        if problem.T <= 0:
            raise InputError(f"T = {problem.T}: sampling needs T > 0 (theory alone has the zero-temperature limit)")
        if problem.activation not in SIGMA:
            raise InputError(f"activation = {problem.activation!r} is not one of {', '.join(SIGMA)}")
        data = problem.dataset
        numbers = (np.float64(value) for value in (problem.T, problem.lambda0, problem.lambda1))
        return cls(data.X, data.y, data.a, span(data.X), *numbers)


def span(X: np.ndarray) -> np.ndarray:
    """(N0, r) orthonormal: the directions of input space with a variance that is not rounding, largest first."""
    vectors, lengths, _ = np.linalg.svd(X.T, full_matrices=False)
    return vectors[:, : max(1, int((lengths > 1e-12 * lengths[0]).sum()))]


def units(w: Array, data: Data, activation: str) -> Array:
    """Phi (P, N1): sigma(h_i(x_mu)), h_i = w_i . x/sqrt(N0)."""
    return SIGMA[activation](data.X @ w.T / math.sqrt(data.X.shape[1]))


def joint_logp(w: Array, v: Array, data: Data, activation: str) -> Array:
    """-|y - f|^2/(2T) - lambda0 |w|^2/2 - lambda1 |v|^2/2 (physics.md section 1): w (N1, N0), v (N1,)."""
    f = units(w, data, activation) @ v / math.sqrt(len(v))
    return (
        -jnp.sum((data.y - f) ** 2) / (2 * data.T)
        - data.lambda0 * jnp.sum(w * w) / 2
        - data.lambda1 * jnp.sum(v * v) / 2
    )


def log_evidence(w: Array, data: Data, activation: str, T: Array | None = None) -> Array:
    """log N(y; 0, A), A = T 1 + Phi Phi^T/(lambda1 N1): the likelihood of w with the readout integrated out (section 6)."""
    phi = units(w, data, activation)
    P = len(data.y)
    A = phi @ phi.T / (data.lambda1 * w.shape[0]) + (data.T if T is None else T) * jnp.eye(P)
    L = jnp.linalg.cholesky(A)
    z = solve_triangular(L, data.y, lower=True)
    return -jnp.sum(z * z) / 2 - jnp.sum(jnp.log(jnp.diag(L))) - P * math.log(2 * math.pi) / 2


def collapsed_logp(w: Array, data: Data, activation: str) -> Array:
    """log N(y; 0, A(w)) - lambda0 |w|^2/2: the exact marginal posterior of the first layer, up to the prior's constant."""
    return log_evidence(w, data, activation) - data.lambda0 * jnp.sum(w * w) / 2


def readout(w: Array, data: Data, activation: str) -> tuple[Array, Array]:
    """Mean (N1,) and covariance (N1, N1) of v | w, y: Bayesian linear regression on the features in weight space."""
    phi = units(w, data, activation) / math.sqrt(w.shape[0])
    precision = data.lambda1 * jnp.eye(w.shape[0]) + phi.T @ phi / data.T
    L = jnp.linalg.cholesky(precision)
    return cho_solve((L, True), phi.T @ data.y) / data.T, cho_solve((L, True), jnp.eye(w.shape[0]))


def first_layer_scalars(w: Array, grad: Array, data: Data, activation: str) -> dict[str, Array]:
    """d2 = sum_i (a.s_i)^2, norm_w = lambda0 |w|^2/(r N1) on the span of X, and d2_stein = L D^2 with `grad` = d log p/dw.

    L q = (Laplacian q + grad log p . grad q)/lambda0 in the weights, which is L in whitened coordinates.
    """

    def distance(w: Array) -> Array:
        return jnp.sum((data.a @ units(w, data, activation)) ** 2)

    # The Laplacian of c^2 is 2 |grad c|^2 + 2 c (Laplacian of c), unit by unit: units do not mix in D^2.
    curve = jax.vmap(jax.vmap(jax.grad(jax.grad(SIGMA[activation]))))
    h = data.X @ w.T / math.sqrt(data.X.shape[1])
    c = data.a @ units(w, data, activation)
    bend = (data.a * jnp.sum(data.X**2, axis=1)) @ curve(h) / data.X.shape[1]
    value, slope = jax.value_and_grad(distance)(w)
    steep = jax.vmap(jax.grad(lambda row: data.a @ units(row[None], data, activation)[:, 0]))(w)
    laplacian = 2 * jnp.sum(steep**2) + 2 * jnp.sum(c * bend)
    return {
        "d2": value,
        "norm_w": data.lambda0 * jnp.mean((w @ data.span) ** 2),
        "d2_stein": (laplacian + jnp.sum(grad * slope)) / data.lambda0,
    }


def collapsed_scalars(w: Array, data: Data, activation: str) -> dict[str, Array]:
    """Q = lambda1 E[|v|^2|w]/N1, fbar_a = a.E[f|w], residual = E[|y - f|^2|w], loglik = log N(y; 0, A)."""
    mean, covariance = readout(w, data, activation)
    phi = units(w, data, activation) / math.sqrt(w.shape[0])
    f = phi @ mean
    return {
        "Q": data.lambda1 * (jnp.sum(mean**2) + jnp.trace(covariance)) / w.shape[0],
        "fbar_a": data.a @ f,
        "residual": jnp.sum((data.y - f) ** 2) + jnp.sum((phi @ covariance) * phi),
        "loglik": log_evidence(w, data, activation),
    }


def joint_scalars(w: Array, v: Array, data: Data, activation: str) -> dict[str, Array]:
    """The same from this draw's own readout; loglik is then -|y - f|^2/(2T)."""
    f = units(w, data, activation) @ v / math.sqrt(len(v))
    residual = jnp.sum((data.y - f) ** 2)
    return {
        "Q": data.lambda1 * jnp.mean(v * v),
        "fbar_a": data.a @ f,
        "residual": residual,
        "loglik": -residual / (2 * data.T),
    }


class Evaluation(NamedTuple):
    """Both log-densities (C,) at w (C, N1, N0), v (C, N1), their gradients, and the scalars of the collapsed one."""

    collapsed: Any
    collapsed_grad: Any
    joint: Any
    joint_grad_w: Any
    joint_grad_v: Any
    scalars: dict[str, Any]


@lru_cache(maxsize=8)
def _program(activation: str) -> Callable[[Any, Any, Data], Evaluation]:
    def evaluate(w: Array, v: Array, data: Data) -> Evaluation:
        collapsed, grad = jax.value_and_grad(partial(collapsed_logp, activation=activation))(w, data)
        joint, (grad_w, grad_v) = jax.value_and_grad(partial(joint_logp, activation=activation), (0, 1))(w, v, data)
        scalars = first_layer_scalars(w, grad, data, activation) | collapsed_scalars(w, data, activation)
        return Evaluation(collapsed, grad, joint, grad_w, grad_v, scalars)

    # Called a few times for each compilation, so the compiler's time counts and not the code's.
    return jax.jit(jax.vmap(evaluate, (0, 0, None)), compiler_options={"xla_backend_optimization_level": 0})


class Reference:
    """The densities and scalars of one problem for NumPy arrays with chains leading, in float64."""

    def __init__(self, problem: Problem):
        self.problem, self.data = problem, Data.of(problem)

    def evaluate(self, w: np.ndarray, v: np.ndarray | None = None) -> Evaluation:
        """Everything at w (C, N1, N0) and v (C, N1) (0 by default, for those who want the collapsed density only)."""
        v = np.zeros(w.shape[:2]) if v is None else v
        with double():
            found = _program(self.problem.activation)(w, v, self.data)
        return jax.tree_util.tree_map(np.asarray, found)


def label_contrast(problem: Problem) -> np.ndarray | None:
    """(P,) contrast between the signs of y where they differ from the classes (for d2_labels); None where they do not,
    or y has one sign only."""
    signs = np.where(problem.dataset.y >= 0, 1.0, -1.0)
    if len(set(signs)) < 2 or not problem.dataset.y.any() or (signs == problem.dataset.classes).all():
        return None
    return contrast(signs)
