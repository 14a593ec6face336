"""What is measured at a draw: scalars (Rao-Blackwellised over the readout), Stein control variates, and matrices to sum."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from data.problem import contrast
from sampling.held_out import HeldOut
from sampling.model import Gram, Model

BASIS_SIZE = 64  # directions of input space on which <w w> is summed
BLOCK_SIZE = 32  # patterns on which <s s^T> is summed


@dataclass(frozen=True, eq=False)
class Instruments:
    """Fixed vectors that the measurements use; made from the data alone, never from a prediction.

    a         (P,) contrast of the class means
    a_labels  (P,) the same between the signs of y, or None where they are the classes, or y is not two-signed
    ridge     (P,) ridge solve of y on the inputs, for a Stein test function
    row_norm  (P,) |R_mu|^2, for Laplacians
    basis     (r, k) orthonormal directions in reduced coordinates on which <w w> is kept: the class direction R^T a first
    block     patterns on which <s s^T> is kept: as many of class + as of class -, in order
    held_out  the test patterns, or None where the data set has none: then nothing of them is worked out
    """

    a: Tensor
    a_labels: Tensor | None
    ridge: Tensor
    row_norm: Tensor
    basis: Tensor
    block: Tensor
    held_out: HeldOut | None = None

    @classmethod
    def of(cls, model: Model) -> Instruments:
        dataset, reduction = model.problem.dataset, model.reduction
        a, y, R = dataset.a, dataset.y, reduction.R
        signs = np.where(y < 0, -1.0, 1.0)
        two_signed = (y > 0).any() and (y < 0).any()
        a_labels = contrast(signs) if two_signed and not np.array_equal(signs, dataset.classes) else None
        plus, minus = np.flatnonzero(dataset.classes > 0), np.flatnonzero(dataset.classes < 0)
        half = BLOCK_SIZE // 2
        place: dict[str, Any] = {"device": model.device, "dtype": model.dtype}
        return cls(
            a=torch.tensor(a, **place),
            a_labels=None if a_labels is None else torch.tensor(a_labels, **place),
            ridge=torch.tensor(_ridge(R, a, y, model.T), **place),
            row_norm=torch.tensor((R**2).sum(1), **place),
            basis=torch.tensor(_basis(R, a, reduction.seen), **place),
            block=torch.tensor(np.concatenate([plus[:half], minus[:half]]), device=model.device),
            held_out=HeldOut.of(model),
        )


def _ridge(R: np.ndarray, a: np.ndarray, y: np.ndarray, T: float) -> np.ndarray:
    """(P,) ridge solve of y on the linear kernel, scaled to the norm of a: a stand-in for A^{-1} y from the data (a if y = 0)."""
    C = R @ R.T
    solved = np.linalg.solve(C + (T + C.trace() / len(C)) * np.eye(len(C)), y)
    norm = np.linalg.norm(solved)
    return a if norm == 0 else solved * (np.linalg.norm(a) / norm)


def _basis(R: np.ndarray, a: np.ndarray, seen: int) -> np.ndarray:
    """(r, k) orthonormal: the class direction R^T a, then leading principal directions of the inputs made orthogonal to it.

    Of the first `seen` coordinates only: the others are seen by test patterns alone, and keep their prior.
    """
    leading = np.eye(R.shape[1])[:, : min(seen, BASIS_SIZE)]
    direction = R.T @ a
    if np.linalg.norm(direction) < 1e-10 * np.linalg.norm(R) * np.linalg.norm(a):
        return leading
    stacked = np.column_stack([direction / np.linalg.norm(direction), leading])
    Q, triangle = np.linalg.qr(stacked)
    keep = np.abs(np.diag(triangle)) > 1e-8
    signs = np.sign(np.diag(triangle))[keep]
    return (Q[:, keep] * signs)[:, : min(seen, BASIS_SIZE)]


STEIN = ("d2_stein", "stein_sh", "stein_sr", "stein_hh", "stein_hr", "stein_rr")


def stein_variates(
    model: Model, instruments: Instruments, h: Tensor, s: Tensor, first: Tensor, grad: Tensor
) -> tuple[dict[str, Tensor], Tensor]:
    """Zero-mean control variates L q = Laplacian q + grad log p . grad q (physics.md section 6), and a.s (C, N1).

    q runs over sum_i c_j c_k for three functions of a unit: c_s = a.s_i, c_h = a.h_i and c_r = ridge.h_i. q = c_s c_s is D^2 itself
    (d2_stein); c_h carries its degree-2 part, which relaxes at another rate than the saturated rest, and that is
    what cuts the error (digits, T = 1: 2.2-fold with L D^2 alone, 6-fold with the linear partners). The gradients of
    c_h and c_r do not depend on the draw, so all six variates cost one product with R.
    `grad` (C, N1, r) is the gradient of the whole log-density in g; `first` is sigma'(h).
    """
    a, R = instruments.a, model.R
    slope = torch.matmul(first * a, R)  # grad c_s (C, N1, r)
    flat_h, flat_r = a @ R, instruments.ridge @ R  # grad c_h and grad c_r (r,)
    directions = torch.stack([flat_h, flat_r], dim=-1)
    along_h, along_r = torch.matmul(h, torch.stack([a, instruments.ridge], dim=-1)).unbind(-1)
    values = [torch.matmul(s, a), along_h, along_r]
    second = model.sigma.second(h, s, first)
    curvature = torch.matmul(second, a * instruments.row_norm)
    generators = [curvature + _dot(slope, grad), *torch.matmul(grad, directions).unbind(-1)]
    units = model.N1
    crossed = torch.matmul(slope, directions).double().sum(1)
    squares = {
        (0, 0): _dot(slope, slope).double().sum(-1),
        (0, 1): crossed[:, 0],
        (0, 2): crossed[:, 1],
        (1, 1): units * torch.dot(flat_h, flat_h).double(),
        (1, 2): units * torch.dot(flat_h, flat_r).double(),
        (2, 2): units * torch.dot(flat_r, flat_r).double(),
    }
    c = [value.double() for value in values]
    generator = [value.double() for value in generators]
    variates = {
        name: (c[j] * generator[k] + c[k] * generator[j]).sum(-1) + 2.0 * squares[j, k]
        for name, (j, k) in zip(STEIN, squares, strict=True)
    }
    return variates, values[0]


def _dot(left: Tensor, right: Tensor) -> Tensor:
    """sum over the last axis of left * right, without forming the product."""
    return torch.linalg.vecdot(left, right)


def _first_layer(
    model: Model, instruments: Instruments, g: Tensor, h: Tensor, s: Tensor, first: Tensor, grad: Tensor
) -> dict[str, Tensor]:
    """The scalars that need the first layer only, with their control variates."""
    variates, contrasts = stein_variates(model, instruments, h, s, first, grad)
    scalars = {
        "d2": (contrasts.double() ** 2).sum(-1),
        "norm_w": _dot(g, g).double().mean(-1) / model.r,
    }
    if instruments.a_labels is not None:
        scalars["d2_labels"] = (torch.matmul(s, instruments.a_labels).double() ** 2).sum(-1)
    return scalars | variates


def collapsed(
    model: Model,
    instruments: Instruments,
    g: Tensor,
    grad: Tensor,
    h: Tensor,
    s: Tensor,
    first: Tensor,
    gram: Gram,
    inverse: Tensor,
) -> dict[str, Tensor]:
    """Scalars (C,) float64 at g (C, N1, r), each averaged exactly over the readout given the first layer (physics.md 5.5, 6).

    d2        sum_i (a.s_i)^2                            Q         lambda1 E[|v|^2|W]/N1 = 1 + (b^T (A-T) b - dof)/N1
    fbar_a    a.E[f|W] = a.(y - T b)                     residual  E[sum (y-f)^2|W] = T^2 |b|^2 + T dof
    loglik    log N(y; 0, A)                             norm_w    |g|^2/(r N1)
    d2_stein, stein_*    control variates of mean 0 (`stein_variates`)
    d2_test, loss_test   on test patterns, where the data set has them (`sampling.held_out`)
    with dof = Tr A^{-1}(A - T). h, s, first = sigma'(h), gram and inverse are those of g, so nothing is worked out twice.
    """
    dof = gram.fitted(inverse)
    pull = torch.matmul(s, gram.b.unsqueeze(-1)).squeeze(-1).double()
    energy = (pull**2).sum(-1) / model.scale  # b^T (A - T) b
    fit = model.y.double() - model.T * gram.b.double()
    scalars = _first_layer(model, instruments, g, h, s, first, grad) | {
        "Q": 1.0 + (energy - dof) / model.N1,
        "fbar_a": torch.matmul(fit, instruments.a.double()),
        "residual": model.T**2 * (gram.b.double() ** 2).sum(-1) + model.T * dof,
        "loglik": gram.loglik,
    }
    test = instruments.held_out
    return scalars if test is None else scalars | test.collapsed(model, g, s, gram)


def joint(model: Model, instruments: Instruments, position: Tensor, grad: Tensor) -> dict[str, Tensor]:
    """The same names at a joint position (C, N1, r + 1), each from this draw's own readout, so a biased readout shows.

    `loglik` is -|y - f|^2/(2T), the likelihood of the joint density.
    """
    r = model.r
    g, x = position[..., :r], position[..., r]
    h, s = model.features(g)
    f = torch.matmul(x.unsqueeze(-2), s).squeeze(-2).double() / math.sqrt(model.scale)
    residual = ((model.y.double() - f) ** 2).sum(-1)
    first = model.sigma.first(h, s)
    scalars = _first_layer(model, instruments, g, h, s, first, grad[..., :r]) | {
        "Q": (x.double() ** 2).mean(-1),
        "fbar_a": torch.matmul(f, instruments.a.double()),
        "residual": residual,
        "loglik": -0.5 * residual / model.T,
    }
    test = instruments.held_out
    return scalars if test is None else scalars | test.joint(model, g, x)


def loglik_at(model: Model, g: Tensor, temperatures: list[float]) -> Tensor:
    """(C, n) float64: log N(y; 0, A_T(g)) at each of n temperatures, for reweighting between them.

    One eigendecomposition of the smaller Gram matrix serves every T.
    """
    _, s = model.features(g)
    s, y = s.double(), model.y.double()
    if model.wide:
        values, vectors = torch.linalg.eigh(torch.matmul(s.mT, s) / model.scale)
        squares = torch.matmul(y, vectors) ** 2
    else:
        values, vectors = torch.linalg.eigh(torch.matmul(s, s.mT) / model.scale)
        # |u_k^T y|^2 with u_k = s^T q_k / sqrt(scale values) the eigenvectors in pattern space
        along = torch.matmul(torch.matmul(s, y).unsqueeze(-2), vectors).squeeze(-2) / math.sqrt(model.scale)
        squares = torch.where(values > 1e-300, along**2 / values.clamp_min(1e-300), torch.zeros_like(values))
    values = values.clamp_min(0.0)
    outside = ((y**2).sum() - squares.sum(-1)).clamp_min(0.0)  # norm of y outside the features' span
    columns = []
    for T in temperatures:
        shifted = values + T
        rest = model.P - values.shape[-1]
        logdet = shifted.log().sum(-1) + rest * math.log(T)
        quadratic = (squares / shifted).sum(-1) + (outside / T if rest else 0.0)
        columns.append(-0.5 * (logdet + quadratic + model.P * math.log(2 * math.pi)))
    return torch.stack(columns, dim=-1)


def accumulate(model: Model, instruments: Instruments, g: Tensor, grad: Tensor, sums: dict[str, Tensor]) -> None:
    """Add one draw's matrices to `sums`, chain by chain, in float64 on the device.

    ww        (C, k, k)  mean over units of (B^T w)(B^T w)^T, with B the basis: <w_h w_k> in that basis, prior 1/lambda0
    ww_stein  (C, k, k)  the second estimator, delta/lambda0 + sym(g (d loglik/dg)^T)/lambda0: same mean, no prior noise
    ss        (C, m, m)  mean over units of s s^T on the block of patterns
    predictor, predictor_sq  (C, P')  E[f | W] and E[f^2 | W] at test patterns, where the data set has them
    """
    basis, lambda0, k = instruments.basis, model.problem.lambda0, instruments.basis.shape[1]
    both = torch.matmul(torch.cat([g, grad + g], dim=-2), basis)  # the prior's part of the gradient is -g
    along, force = both[:, : model.N1], both[:, model.N1 :]
    products = torch.bmm(along.mT, torch.cat([along, force], dim=-1)).double() / (model.N1 * lambda0)
    cross = products[..., k:]
    identity = torch.eye(k, dtype=torch.float64, device=g.device) / lambda0
    block = model.sigma.sigma(torch.matmul(g, model.R[instruments.block].mT))
    parts = {
        "ww": products[..., :k],
        "ww_stein": identity + 0.5 * (cross + cross.mT),
        "ss": torch.bmm(block.mT, block).double() / model.N1,
    }
    if instruments.held_out is not None:
        parts |= instruments.held_out.sums(model, g)
    for name, value in parts.items():
        if name in sums:
            sums[name] += value
        else:
            sums[name] = value.clone()
