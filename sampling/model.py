"""The network on a device in reduced coordinates, and the factored covariance A of y given the first layer (torch)."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from data.errors import InputError
from data.problem import Problem
from sampling import activations
from sampling.reduction import Reduction, reduce


@dataclass(frozen=True, eq=False)
class Model:
    """A Problem on a device, in reduced coordinates (physics.md section 6).

    R (P, r) with h = R g; y (P,); T, lambda1, N1; sigma. `scale` = lambda1 N1, so that A = T 1 + Phi Phi^T / scale.
    """

    problem: Problem
    reduction: Reduction
    R: Tensor
    y: Tensor
    T: float
    N1: int
    scale: float
    sigma: activations.Activation
    device: torch.device
    dtype: torch.dtype

    @classmethod
    def of(cls, problem: Problem, device: str | torch.device = "cpu", dtype: torch.dtype = torch.float64) -> Model:
        """Raises InputError for T = 0, where the posterior has no density."""
        if problem.T <= 0:
            raise InputError(f"T = {problem.T}: sampling needs T > 0 (theory alone has the zero-temperature limit)")
        reduction = reduce(problem)
        place: dict[str, Any] = {"device": torch.device(device), "dtype": dtype}
        return cls(
            problem=problem,
            reduction=reduction,
            R=torch.tensor(reduction.R, **place),
            y=torch.tensor(problem.dataset.y, **place),
            T=problem.T,
            N1=problem.N1,
            scale=problem.lambda1 * problem.N1,
            sigma=activations.get(problem.activation),
            **place,
        )

    @functools.cached_property
    def single(self) -> Model:
        """The same model in float32."""
        place: dict[str, Any] = {"R": self.R.float(), "y": self.y.float(), "dtype": torch.float32}
        return self if self.dtype == torch.float32 else replace(self, **place)

    def at(self, T: float) -> Model:
        """The same network and data at another temperature."""
        return replace(self, T=T, problem=self.problem.replace(T=T))

    @property
    def P(self) -> int:
        return self.R.shape[0]

    @property
    def r(self) -> int:
        return self.R.shape[1]

    @property
    def wide(self) -> bool:
        """Whether the P x P form is the smaller one (N1 >= P)."""
        return self.N1 >= self.P

    def features(self, g: Tensor) -> tuple[Tensor, Tensor]:
        """h and s = sigma(h), each (C, N1, P), at g (C, N1, r): one row a unit, so that h = g R^T is one product."""
        h = torch.matmul(g, self.R.mT)
        return h, self.sigma.sigma(h)


@dataclass(frozen=True, eq=False)
class Gram:
    """A factor of A = T 1 + Phi Phi^T/scale in its smaller form, with what the log-density and its gradient need.

    For N1 >= P:  L L^T = A (P, P).      For N1 < P:  L L^T = M = scale T 1 + Phi^T Phi (N1, N1), with
    A^{-1} = (1 - Phi M^{-1} Phi^T)/T and log det A = P log T + log det M - N1 log(scale T).
    b = A^{-1} y (C, P);  loglik (C,) float64 = log N(y; 0, A), NaN where the factorisation broke down.
    """

    model: Model
    L: Tensor
    b: Tensor
    loglik: Tensor

    def inverse(self) -> Tensor:
        """(L L^T)^{-1}, of A or of M, whichever is the smaller."""
        return torch.cholesky_inverse(self.L)

    def times_inverse(self, s: Tensor, inverse: Tensor) -> Tensor:
        """s A^{-1}/scale (C, N1, P): the log-determinant's force. In the N1 x N1 form it is M^{-1} s."""
        if self.model.wide:
            return torch.matmul(s, inverse).div_(self.model.scale)
        return torch.matmul(inverse, s)

    def fitted(self, inverse: Tensor) -> Tensor:
        """Tr A^{-1}(A - T) (C,) float64: the effective number of patterns that the readout fits."""
        model, trace = self.model, inverse.diagonal(dim1=-2, dim2=-1).double().sum(-1)
        return model.P - model.T * trace if model.wide else model.N1 - model.scale * model.T * trace


def factor(model: Model, s: Tensor, y: Tensor | None = None) -> Gram:
    """Factor A at features s (C, N1, P); the log-likelihood is summed in float64 whatever the dtype.

    y defaults to the labels; another right-hand side (P,) or (C, P) serves the readout's exact draw.
    """
    y = (model.y if y is None else y).expand(len(s), model.P)
    T, P = model.T, model.P
    if model.wide:
        A = torch.matmul(s.mT, s).div_(model.scale)
        A.diagonal(dim1=-2, dim2=-1).add_(T)
        L, failed = torch.linalg.cholesky_ex(A)
        b = torch.cholesky_solve(y.unsqueeze(-1), L).squeeze(-1)
        quadratic = (b.double() * y.double()).sum(-1)
        rest = 0.0
    else:
        M = torch.matmul(s, s.mT)
        M.diagonal(dim1=-2, dim2=-1).add_(model.scale * T)
        L, failed = torch.linalg.cholesky_ex(M)
        z = torch.cholesky_solve(torch.matmul(s, y.unsqueeze(-1)), L)  # M^{-1} Phi^T y; v has posterior mean sqrt(N1) z
        residual = y - torch.matmul(s.mT, z).squeeze(-1)  # T b = y - Phi M^{-1} Phi^T y
        b = residual / T
        # y.b T = |T b|^2 + scale T |z|^2: a sum of squares, where y.(y - Phi z) would cancel at low T
        quadratic = ((residual.double() ** 2).sum(-1) + model.scale * T * (z.double() ** 2).sum((-2, -1))) / T
        rest = P * math.log(T) - model.N1 * math.log(model.scale * T)
    logdet = 2.0 * L.diagonal(dim1=-2, dim2=-1).double().log().sum(-1) + rest
    loglik = -0.5 * (logdet + quadratic + P * math.log(2 * math.pi))
    return Gram(model=model, L=L, b=b, loglik=loglik.masked_fill(failed != 0, math.nan))


SMALLEST = 60  # order below which LAPACK's Cholesky inverse beats the block recursion


def spd_inverse(A: Tensor) -> Tensor:
    """Inverse of symmetric positive definite A (C, n, n), by 2 x 2 blocks: LAPACK does not batch, matrix products do.

    With A = [[P, Q], [Q^T, R]] and S = R - Q^T P^{-1} Q. NaN where A is not positive definite.
    """
    n = A.shape[-1]
    if n <= SMALLEST:
        L, failed = torch.linalg.cholesky_ex(A)
        return torch.cholesky_inverse(L).masked_fill_((failed != 0).view(-1, 1, 1), math.nan)
    m = n // 2
    first, Q = spd_inverse(A[:, :m, :m]), A[:, :m, m:]
    W = torch.bmm(first, Q)
    last = spd_inverse(torch.baddbmm(A[:, m:, m:], Q.mT, W, alpha=-1.0))
    corner = torch.bmm(W, last)
    out = torch.empty_like(A)
    out[:, :m, :m] = torch.baddbmm(first, corner, W.mT)
    out[:, :m, m:] = corner.neg_()
    out[:, m:, :m] = corner.mT
    out[:, m:, m:] = last
    return out
