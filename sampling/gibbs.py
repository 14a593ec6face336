"""gibbs: collapsed, one unit at a time, choosing among the current unit and fresh prior draws; no step size, no gradient."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from data.errors import InputError
from sampling.model import factor
from sampling.posterior import Collapsed
from sampling.protocol import Info, Streams


class State(NamedTuple):
    """g (C, N1, r) with its log-density (C,) and gradient; a sweep refreshes both."""

    position: Tensor
    logp: Tensor
    grad: Tensor


class Gibbs:
    """Leaves p(g | y) proportional to exp(-|g|^2/2) N(y; 0, A(g)) invariant; only the likelihood is tempered.

    A = B + phi phi^T/(lambda1 N1) with B the rest of the network. Relative to its prior, a unit's exact conditional has log-weight
    -log(1+q)/2 + m^2/(2 (1+q)), q = phi^T B^{-1} phi/(lambda1 N1), m = phi^T B^{-1} y/sqrt(lambda1 N1)  (physics.md section 6).
    M fresh prior units are drawn and one of {current + M} is chosen with these weights: an independent-proposal ensemble
    step (Neal 2003, Tjelmeland 2004), which keeps the conditional for every M. A step is one sweep over all units; A^{-1}
    follows by rank-one updates and is made afresh by Cholesky before every sweep. Cost about 2 N1 P^2 (M + 5) operations.
    """

    name = "gibbs"
    biased = False

    def __init__(self, target: Collapsed, warmup: int = 200, proposals: int = 8):
        if proposals < 1:
            raise InputError(f"proposals = {proposals}: gibbs needs at least one fresh unit to choose from")
        self.target, self.proposals = target, int(proposals)

    def init(self, position: Tensor) -> State:
        return State(position, *self.target.value_and_grad(position))

    def observe(self, state: State) -> dict[str, Tensor]:
        return self.target.observe(state.position, state.grad)

    def step(self, state: State, streams: Streams) -> tuple[State, Info]:
        model = self.target.model
        g = state.position.clone()
        _, s = model.features(g)
        inverse, b = self._solve(s)
        moves = torch.zeros(len(g), dtype=torch.float64, device=g.device)
        for unit in range(model.N1):
            fresh = streams.normal((self.proposals, model.r), model.dtype)
            units = torch.cat([g[:, unit, None], fresh], 1)  # the current unit is candidate 0
            phi = torch.cat([s[:, unit, None], model.sigma.sigma(fresh @ model.R.mT)], 1)  # (C, M + 1, P)
            inverse, b = self._update(inverse, b, phi[:, 0], remove=True)
            weight = self._weights(phi, inverse, b)
            # Gumbel's trick: argmax of log-weight + Gumbel noise draws from the normalised weights.
            gumbel = -torch.log(-torch.log(streams.uniform((self.proposals + 1,)).clamp_min(1e-300)))
            choice = (weight.double() + gumbel).argmax(1)
            rows = torch.arange(len(g), device=g.device)
            g[:, unit], s[:, unit] = units[rows, choice], phi[rows, choice]
            inverse, b = self._update(inverse, b, phi[rows, choice], remove=False)
            moves += (choice != 0).double()
        logp, grad = self.target.value_and_grad(g)
        bad = ~torch.isfinite(logp)
        pick = ~bad
        new = State(
            torch.where(pick[:, None, None], g, state.position),
            torch.where(pick, logp, state.logp),
            torch.where(pick[:, None, None], grad, state.grad),
        )
        return new, Info(accept=moves / model.N1, moved=pick & (moves > 0), nan=bad, gradients=self._equivalent())

    def _solve(self, s: Tensor) -> tuple[Tensor, Tensor]:
        """A^{-1} (C, P, P) and A^{-1} y (C, P) by Cholesky."""
        model = self.target.model
        if model.wide:
            gram = factor(model, s)
            return torch.cholesky_inverse(gram.L), gram.b.clone()
        A = torch.matmul(s.mT, s).div_(model.scale)
        A.diagonal(dim1=-2, dim2=-1).add_(model.T)
        inverse = torch.cholesky_inverse(torch.linalg.cholesky_ex(A)[0])
        return inverse, torch.matmul(inverse, model.y.unsqueeze(-1)).squeeze(-1)

    def _update(self, inverse: Tensor, b: Tensor, phi: Tensor, remove: bool) -> tuple[Tensor, Tensor]:
        """(A -+ phi phi^T/scale)^{-1} and its product with y, by Sherman-Morrison, in place."""
        along = torch.matmul(inverse, phi.unsqueeze(-1)).squeeze(-1)
        strength = (phi * along).sum(-1)
        denominator = self.target.model.scale + (-strength if remove else strength)
        scaled = along / denominator[:, None]
        if remove:
            scaled = -scaled
        shift = (phi * b).sum(-1)
        b.sub_(scaled * shift[:, None])
        inverse.baddbmm_(scaled.unsqueeze(-1), along.unsqueeze(-2), alpha=-1.0)
        return inverse, b

    def _weights(self, phi: Tensor, inverse: Tensor, b: Tensor) -> Tensor:
        """Log-weight (C, M + 1) of each candidate relative to the prior."""
        scale = self.target.model.scale
        q = (torch.matmul(phi, inverse) * phi).sum(-1).div_(scale).clamp_min(0.0)
        m = torch.matmul(phi, b.unsqueeze(-1)).squeeze(-1) / scale**0.5
        return -0.5 * torch.log1p(q) + 0.5 * m * m / (1.0 + q)

    def _equivalent(self) -> int:
        """A sweep's operations in units of one gradient's."""
        model = self.target.model
        P, N1, r, M = model.P, model.N1, model.r, self.proposals
        small = min(P, N1)
        gradient = 4 * N1 * P * r + 2 * N1 * P * small + 2 * small**3 + 2 * N1 * P * small
        sweep = 2 * N1 * (P * P * (M + 5) + M * r * P) + gradient
        return max(1, round(sweep / gradient))

    def adapt(self, state: State, info: Info) -> State:
        return state

    def finish(self) -> None:
        """Nothing was learned, so there is nothing to freeze."""

    def settings(self) -> dict[str, Any]:
        return {"proposals": self.proposals}

    def state_dict(self) -> dict[str, np.ndarray]:
        return {}

    def load_state_dict(self, stored: dict[str, np.ndarray]) -> None:
        """Nothing to restore."""


def build(target: Collapsed, warmup: int, **options: Any) -> Gibbs:
    """The sampler for `sampling.run(..., sampler="gibbs")`; options: proposals."""
    return Gibbs(target, warmup=warmup, **options)
