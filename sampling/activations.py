"""Zero-mean activations with two derivatives, in torch: what sampling needs of sigma, written apart from theory's."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from data.errors import InputError

TWO_OVER_SQRT_PI = 2.0 / math.sqrt(math.pi)


class Activation(NamedTuple):
    """sigma with its derivatives; `first(h, s)` and `second(h, s, d)` may reuse s = sigma(h) and d = sigma'(h)."""

    sigma: Callable[[Tensor], Tensor]
    first: Callable[[Tensor, Tensor], Tensor]
    second: Callable[[Tensor, Tensor, Tensor], Tensor]


def _erf_first(h: Tensor, s: Tensor) -> Tensor:
    return torch.mul(h, h).neg_().exp_().mul_(TWO_OVER_SQRT_PI)


ACTIVATIONS = {
    "erf": Activation(torch.erf, _erf_first, lambda h, s, d: -2.0 * h * d),
    "linear": Activation(lambda h: h, lambda h, s: torch.ones_like(h), lambda h, s, d: torch.zeros_like(h)),
    "tanh": Activation(torch.tanh, lambda h, s: 1.0 - s * s, lambda h, s, d: -2.0 * s * d),
    "sin": Activation(torch.sin, lambda h, s: torch.cos(h), lambda h, s, d: -s),
}

NOT_ODD = ("relu", "leaky_relu", "elu", "selu", "silu", "swish", "sigmoid", "softplus", "gelu", "cos")


def get(name: str) -> Activation:
    """The activation of that name; raises InputError with the nearest name otherwise."""
    if name not in ACTIVATIONS:
        if str(name).strip().lower() in NOT_ODD:
            raise InputError(
                f"activation = {name!r} is refused: it is not odd, so E[sigma(h)] is not 0 and no prediction that the chains could be "
                f"compared with holds for it; use one of {', '.join(ACTIVATIONS)}"
            )
        near = difflib.get_close_matches(name, ACTIVATIONS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InputError(f"activation = {name!r} is not one that sampling knows ({', '.join(ACTIVATIONS)}){hint}")
    return ACTIVATIONS[name]
