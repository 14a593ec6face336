"""Warm-up learning shared by the samplers: dual-averaged step size and the metric pooled over exchangeable units."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor


class StepSize:
    """Dual averaging of log step size towards a mean acceptance (Hoffman & Gelman 2014, section 3.2), all chains pooled.

    The gain 1/GAMMA is a quarter of theirs, and the pull is towards 2 times the last value, not 10: the mean acceptance of many chains has
    little noise, and with theirs steps swing so far about the edge of stability that their average accepts 0.93 instead of 0.8
    (digits, T = 0.001), which is a quarter more gradients.
    """

    GAMMA, T0, KAPPA = 0.2, 10.0, 0.75

    def __init__(self, initial: float, accept: float, largest: float = math.inf):
        self.accept, self.largest = accept, largest
        self.restart(initial)

    def restart(self, value: float) -> None:
        """Begin the averaging again from a value, as after a change of metric."""
        self.value = min(value, self.largest)
        self.mu, self.count, self.error, self.average = math.log(2.0 * self.value), 0, 0.0, math.log(self.value)

    def update(self, acceptance: float) -> None:
        """Take in the mean acceptance of one step; NaN counts as 0."""
        shortfall = self.accept - (acceptance if math.isfinite(acceptance) else 0.0)
        self.count += 1
        weight = 1.0 / (self.count + self.T0)
        self.error = (1.0 - weight) * self.error + weight * shortfall
        logarithm = min(self.mu - math.sqrt(self.count) / self.GAMMA * self.error, math.log(self.largest))
        decay = self.count**-self.KAPPA
        self.average = decay * logarithm + (1.0 - decay) * self.average
        self.value = math.exp(logarithm)

    def freeze(self) -> None:
        """Adopt the averaged step size."""
        self.value = math.exp(self.average)

    def state_dict(self) -> dict[str, np.ndarray]:
        fields = (self.value, self.mu, self.count, self.error, self.average)
        return {"step_size": np.array(fields, dtype=np.float64)}

    def load_state_dict(self, stored: dict[str, np.ndarray]) -> None:
        self.value, self.mu, count, self.error, self.average = (float(x) for x in stored["step_size"])
        self.count = int(count)


class PooledMetric:
    """m_k = E[(d log p / d g_k)^2], pooled over units and chains: for an exact posterior the mean curvature of g_k.

    Units are exchangeable, so every unit of every chain estimates the same r numbers (physics.md section 6).
    """

    FLOOR = 1e-2  # curvature below this share of the prior's is noise; a mass near 0 would let a coordinate run away

    def __init__(self, r: int, device: torch.device):
        self.mass = torch.ones(r, dtype=torch.float64, device=device)
        self.clear()

    def clear(self) -> None:
        self.total, self.count = torch.zeros_like(self.mass), 0

    def add(self, grad: Tensor) -> None:
        """Take in gradients (C, N1, r) of the log posterior."""
        self.total += (grad.double() ** 2).sum((0, 1))
        self.count += grad.shape[0] * grad.shape[1]

    def adopt(self) -> None:
        """Make the estimate the metric and begin a new one. Coordinate means are shrunk to 1 by ten prior units' worth."""
        if self.count:
            self.mass = ((self.total + 10.0) / (self.count + 10.0)).clamp_min(self.FLOOR)
        self.clear()

    def state_dict(self) -> dict[str, np.ndarray]:
        return {
            "mass": self.mass.cpu().numpy().copy(),
            "mass_total": self.total.cpu().numpy().copy(),
            "mass_count": np.array(self.count),
        }

    def load_state_dict(self, stored: dict[str, np.ndarray]) -> None:
        self.mass = torch.tensor(stored["mass"], device=self.mass.device)
        self.total = torch.tensor(stored["mass_total"], device=self.mass.device)
        self.count = int(stored["mass_count"])
