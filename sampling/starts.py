"""Where chains begin: prior draws, units aligned with the class direction, and exact readout draws given a first layer."""

from __future__ import annotations

import torch
from torch import Tensor

from data.errors import InputError
from sampling.model import Model, factor
from sampling.protocol import Streams

KINDS = ("prior", "aligned", "zero")
ALIGNED_SHARE = 0.5  # share of units set along the class direction in an "aligned" start
ALIGNED_LENGTH = 3.0  # their length along it, in prior standard deviations


def first_layer(model: Model, kinds: list[str], streams: Streams) -> Tensor:
    """g (C, N1, r), chain c by kinds[c].

    prior    a draw from the prior: the disordered phase
    aligned  half of the units at +-3 prior standard deviations along the class direction R^T a, the rest of each unit prior:
             the specialised phase that the saddle point does not describe (physics.md section 8)
    zero     one tenth of a prior draw: all features small (a network that has learned nothing)
    """
    unknown = sorted(set(kinds) - set(KINDS))
    if unknown:
        raise InputError(f"starts: {unknown[0]!r} is not a kind of start; choose from {', '.join(KINDS)}")
    g = streams.normal((model.N1, model.r), model.dtype)
    a = torch.as_tensor(model.problem.a, dtype=model.dtype, device=model.device)
    direction = torch.nn.functional.normalize(model.R.mT @ a, dim=0)
    count = max(1, round(ALIGNED_SHARE * model.N1))
    # Alternating signs keep <w> = 0, as odd sigma has it.
    length = torch.full((count,), ALIGNED_LENGTH, dtype=model.dtype, device=model.device)
    length[1::2] *= -1.0
    for chain, kind in enumerate(kinds):
        if kind == "aligned":
            rest = g[chain, :count] - (g[chain, :count] @ direction)[:, None] * direction
            g[chain, :count] = rest + length[:, None] * direction
        elif kind == "zero":
            g[chain] *= 0.1
    return g


def readout(model: Model, g: Tensor, streams: Streams) -> Tensor:
    """x = sqrt(lambda1) v (C, N1), an exact draw from p(v | W, y) by Matheron's rule.

    v | W, y ~ N(Phi^T b/(lambda1 sqrt N1), (1 - Phi^T A^{-1} Phi/(lambda1 N1))/lambda1)     (physics.md section 6)
    Draw x0 ~ N(0, 1) and noise e ~ N(0, T); x = x0 + s A^{-1} (y - s^T x0/sqrt(scale) - e)/sqrt(scale).
    """
    _, s = model.features(g)
    x0 = streams.normal((model.N1,), model.dtype)
    noise = streams.normal((model.P,), model.dtype) * model.T**0.5
    root = model.scale**0.5
    misfit = model.y - torch.matmul(x0.unsqueeze(-2), s).squeeze(-2) / root - noise
    b = factor(model, s, misfit).b
    return x0 + torch.matmul(s, b.unsqueeze(-1)).squeeze(-1) / root
