"""Unadjusted Langevin is biased as its docstring says, halving the step halves that, and extrapolation removes it."""

import math

import numpy as np
import pytest

import sampling
from data.errors import InputError
from data.problem import Dataset, Problem
from sampling.bias import step_size_study


def problem():
    rng = np.random.default_rng(0)
    classes = np.array([1.0, 1.0, -1.0, -1.0])
    return Problem(Dataset(rng.normal(size=(4, 3)), classes, classes), N1=3, T=1.0)


def test_bias_is_first_order_and_richardson_removes_it():
    p = problem()
    truth = sampling.run(p, "hmc", chains=64, warmup=100, draws=700, seed=3)
    table = sampling.assess(truth).table
    exact = {name: (table[name].mean, table[name].mcse) for name in ("d2", "Q", "residual", "fbar_a")}
    study = step_size_study(p, step=0.2, halvings=2, draws=400, chains=120, warmup=100, thin=3)
    frame = study.table(exact).set_index(["scalar", "step"])
    for name in ("Q", "residual"):
        biases = [frame.loc[(name, step)] for step in study.steps]
        # The control: the bias that must be seen is seen, at every step, by more than 4 standard errors at the largest.
        assert abs(biases[0].bias) > 4 * biases[0].bias_se, name
        ratio = biases[0].bias / biases[1].bias
        spread = abs(ratio) * math.hypot(biases[0].bias_se / biases[0].bias, biases[1].bias_se / biases[1].bias)
        assert abs(ratio - 2.0) < 0.6 + 4 * spread, f"{name}: halving the step divided the bias by {ratio:.2f}"
    for name in exact:
        limit = frame.loc[(name, 0.0)]
        # O(eps^2) is left: a tenth of the bias at the middle step is allowed beside 4 standard errors.
        assert abs(limit.bias) < 4 * limit.bias_se + 0.1 * abs(frame.loc[(name, study.steps[1])].bias), name


def test_one_step_size_cannot_be_extrapolated():
    with pytest.raises(InputError, match="halvings = 0"):
        step_size_study(problem(), halvings=0)
