"""mala: the Langevin step with a Metropolis test, so that the posterior is left invariant exactly."""

from __future__ import annotations

from typing import Any

from sampling.langevin import Langevin
from sampling.posterior import Collapsed, Joint


class MALA(Langevin):
    """Proposes theta + eps grad log p + sqrt(2 eps) xi and accepts by Metropolis-Hastings (Roberts & Tweedie 1996).

    Leaves the joint posterior p(w, v | y) invariant, or the collapsed p(w | y), whichever its target is; only the likelihood is
    tempered. eps is dual-averaged in warm-up to an acceptance of 0.574 and then frozen. With eps that of `langevin`, it is
    the same dynamics with the bias removed.
    """

    name = "mala"
    biased = False
    adjusted = True

    def __init__(self, target: Joint | Collapsed, warmup: int = 1000, accept: float = 0.574, step: float | None = None):
        super().__init__(target, warmup, accept, step)


def build(target: Joint | Collapsed, warmup: int, **options: Any) -> MALA:
    """The sampler for `sampling.run(..., sampler="mala")`; options: accept, step."""
    return MALA(target, warmup=warmup, **options)
