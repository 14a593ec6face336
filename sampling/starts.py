"""Where chains begin: prior draws, aligned units, other temperatures, the teacher; and exact readout draws given a first layer."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from data.errors import InputError
from data.teacher import teacher_of
from sampling.model import Model, factor
from sampling.protocol import Streams

KINDS = ("prior", "aligned", "zero", "hot", "cold", "teacher")
ALIGNED_SHARE = 0.5  # share of units set along the class direction in an "aligned" start
ALIGNED_LENGTH = 3.0  # their length along it, in prior standard deviations


def first_layer(model: Model, kinds: list[str], streams: Streams) -> Tensor:
    """g (C, N1, r), chain c by kinds[c].

    prior    a draw from the prior: the disordered phase
    aligned  half of the units at +-3 prior standard deviations along the class direction R^T a, the rest of each unit prior:
             the specialised phase that the saddle point does not describe (physics.md section 8)
    zero     one tenth of a prior draw: all features small (a network that has learned nothing)
    hot      a prior draw cooled to T from where posterior and prior are alike (`sampling.anneal`)
    cold     the same cooled on to T/30 and warmed back to T: where it ends elsewhere than "hot", there is hysteresis
    teacher  the network that made the labels, an exact posterior draw (physics.md section 5.4); the same for each such chain

    hot and cold take some tens of hmc steps at 10 to 20 temperatures, before any warm-up. Raises InputError for another kind, and
    for "teacher" where the data set does not keep the network that made it, or it is not a draw of this problem.
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
        elif kind == "teacher":
            w, _ = teacher_of(model.problem).weights(model.problem)
            g[chain] = torch.as_tensor(math.sqrt(model.problem.lambda0) * w @ model.reduction.V, dtype=model.dtype)
    for kind in ("hot", "cold"):
        rows = [chain for chain, one in enumerate(kinds) if one == kind]
        if rows:
            from sampling.anneal import anneal  # which needs the targets, which need this module

            g[rows] = anneal(model, g[rows], kind, streams.chosen(rows))
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
