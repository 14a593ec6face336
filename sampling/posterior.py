"""The posterior as two targets, collapsed (readout integrated out) and joint, with gradients written by hand (torch)."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import torch
from torch import Tensor

from data.problem import Problem
from sampling import observables, starts
from sampling.model import Model, factor, spd_inverse
from sampling.protocol import Streams


class Collapsed:
    """log p(g | y) = -|g|^2/2 + log N(y; 0, A(g)): the exact marginal posterior of the first layer, readout integrated out.

    Only the likelihood is tempered: A = T 1 + Phi Phi^T/(lambda1 N1). A position is g (C, N1, r), with h = R g and
    g = sqrt(lambda0) V^T w; the N0 - r directions that the data do not see keep their prior exactly (physics.md section 6).
    """

    chains_axis = 0

    def __init__(self, model: Model):
        self.model = model
        self.device, self.dtype = model.device, model.dtype

    @functools.cached_property
    def instruments(self) -> observables.Instruments:
        """What measuring needs, made when it is first measured: the hot rungs of a ladder never are."""
        return observables.Instruments.of(self.model)

    @classmethod
    def of(cls, problem: Problem, device: str | torch.device = "cpu", dtype: torch.dtype = torch.float64) -> Collapsed:
        return cls(Model.of(problem, device, dtype))

    def initial(self, kinds: list[str], streams: Streams) -> Tensor:
        """g (C, N1, r), one chain for each entry of `kinds` ("prior", "aligned")."""
        return starts.first_layer(self.model, kinds, streams)

    def likelihood(self, g: Tensor) -> tuple[Tensor, Tensor]:
        """log N(y; 0, A) (C,) float64 and its gradient in g, without the Gaussian prior: the kick of the splitting."""
        loglik, force, _ = self._evaluate(g, measure=False)
        return loglik, force

    def likelihood_and_scalars(self, g: Tensor) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        """`likelihood` and `observe` at one position for little more than the price of the first."""
        return self._evaluate(g, measure=True)

    def kick(self, g: Tensor) -> Tensor:
        """The gradient of `likelihood` alone, in float32 arithmetic and in half the time: for kicks inside a trajectory.

        Between its ends a trajectory may be driven by any function of the position: the map stays reversible and keeps volume, so
        an error here costs acceptance, never correctness. NaN where A is not positive definite in float32.
        """
        model = self.model.single
        h, s = model.features(g.to(model.dtype))
        y = model.y.unsqueeze(-1)  # of all chains, or (C, P, 1)
        if model.wide:
            A = torch.bmm(s.mT, s).div_(model.scale)
            A.diagonal(dim1=-2, dim2=-1).add_(model.T)
            inverse = spd_inverse(A)
            b = torch.matmul(inverse, y)
            # (s b) b^T/scale - s A^{-1}/scale = s (b b^T - A^{-1})/scale
            force = torch.bmm(s, inverse.baddbmm_(b, b.mT, beta=-1.0 / model.scale, alpha=1.0 / model.scale))
        else:
            M = torch.bmm(s, s.mT)
            M.diagonal(dim1=-2, dim2=-1).add_(model.scale * model.T)
            inverse = spd_inverse(M)
            z = torch.bmm(inverse, torch.matmul(s, y))  # = s b/scale
            b = (y - torch.bmm(s.mT, z)).div_(model.T)
            force = torch.bmm(z, b.mT).baddbmm_(inverse, s, alpha=-1.0)
        return torch.matmul(force.mul_(model.sigma.first(h, s)), model.R).to(g.dtype)

    def value_and_grad(self, g: Tensor) -> tuple[Tensor, Tensor]:
        """log-density (C,) float64 up to the prior's constant, and its gradient (C, N1, r)."""
        loglik, grad = self.likelihood(g)
        return loglik - 0.5 * (g.double() ** 2).sum((-2, -1)), grad - g

    def observe(self, g: Tensor, grad: Tensor | None = None) -> dict[str, Tensor]:
        """The scalars of `observables.collapsed`, averaged over the readout exactly. `grad` comes out of the same evaluation."""
        return self._evaluate(g, measure=True)[2]

    def _evaluate(self, g: Tensor, measure: bool) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
        model = self.model
        h, s = model.features(g)
        gram = factor(model, s)
        inverse = gram.inverse()
        # d/ds of the log-likelihood: (1/scale) (s b) b^T - s A^{-1}/scale     (physics.md section 6)
        sb = torch.matmul(s, gram.b.unsqueeze(-1)).div_(model.scale)
        force = gram.times_inverse(s, inverse).neg_().addcmul_(sb, gram.b.unsqueeze(-2))
        first = model.sigma.first(h, s)
        force = torch.matmul(force.mul_(first), model.R)
        if not measure:
            return gram.loglik, force, {}
        scalars = observables.collapsed(model, self.instruments, g, force - g, h, s, first, gram, inverse)
        return gram.loglik, force, scalars

    def accumulate(self, g: Tensor, grad: Tensor, sums: dict[str, Tensor]) -> None:
        """Add the matrices of `observables.matrices` at one draw to `sums` (per chain), creating them when absent."""
        observables.accumulate(self.model, self.instruments, g, grad, sums)


class Theta(NamedTuple):
    """First layer g (C, N1, r) and readout v (C, N1), unpacked from a joint position (C, N1, r + 1)."""

    g: Tensor
    v: Tensor


def unpack(position: Tensor) -> Theta:
    """The parts of a joint position, as views: columns 0..r-1 are g, the last one is sqrt(lambda1) v."""
    return Theta(g=position[..., :-1], v=position[..., -1])


class Joint:
    """log p(w, v | y) = -|y - f|^2/(2T) - lambda0 |w|^2/2 - lambda1 |v|^2/2: only the likelihood is tempered.

    A position is (C, N1, r + 1): g = sqrt(lambda0) V^T w in the first r columns, and x = sqrt(lambda1) v in the last, so that
    the prior is a standard normal in every coordinate. f = v^T sigma(h)/sqrt(N1).
    """

    chains_axis = 0

    def __init__(self, model: Model):
        self.model = model
        self.device, self.dtype = model.device, model.dtype
        self.instruments = observables.Instruments.of(model)

    @classmethod
    def of(cls, problem: Problem, device: str | torch.device = "cpu", dtype: torch.dtype = torch.float64) -> Joint:
        return cls(Model.of(problem, device, dtype))

    def initial(self, kinds: list[str], streams: Streams) -> Tensor:
        """First layer by `kinds`, readout from its exact conditional given that layer."""
        g = starts.first_layer(self.model, kinds, streams)
        return torch.cat([g, starts.readout(self.model, g, streams).unsqueeze(-1)], dim=-1)

    def likelihood(self, position: Tensor) -> tuple[Tensor, Tensor]:
        """-|y - f|^2/(2T) (C,) float64 and its gradient (C, N1, r + 1), without the standard normal prior."""
        model = self.model
        g, x = unpack(position)
        h, s = model.features(g)
        error = model.y - torch.matmul(x.unsqueeze(-2), s).squeeze(-2) / math.sqrt(model.scale)
        loglik = -0.5 * (error.double() ** 2).sum(-1) / model.T
        pull = error / (model.T * math.sqrt(model.scale))  # d loglik / d(sum_i x_i s_i)
        grad_x = torch.matmul(s, pull.unsqueeze(-1))
        outer = (x.unsqueeze(-1) * pull.unsqueeze(-2)).mul_(model.sigma.first(h, s))
        return loglik, torch.cat([torch.matmul(outer, model.R), grad_x], dim=-1)

    def value_and_grad(self, position: Tensor) -> tuple[Tensor, Tensor]:
        """log-density (C,) float64 up to the prior's constant, and its gradient (C, N1, r + 1)."""
        loglik, grad = self.likelihood(position)
        return loglik - 0.5 * (position.double() ** 2).sum((-2, -1)), grad - position

    def observe(self, position: Tensor, grad: Tensor | None = None) -> dict[str, Tensor]:
        """The scalars of `observables.joint`, from this draw's own readout: what an unadjusted run would report."""
        if grad is None:
            grad = self.value_and_grad(position)[1]
        return observables.joint(self.model, self.instruments, position, grad)

    def accumulate(self, position: Tensor, grad: Tensor, sums: dict[str, Tensor]) -> None:
        """As for the collapsed target; the gradient in g is that of the joint density."""
        r = self.model.r
        observables.accumulate(self.model, self.instruments, position[..., :r], grad[..., :r], sums)
