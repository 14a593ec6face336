"""Level 4 against independent answers: linear networks in closed form, plain Monte Carlo of the definition, reference files."""

import json
from pathlib import Path

import numpy as np
import pytest

import theory
from data.problem import Dataset, Problem
from data.registry import load
from theory.first_order import Settings, first_order

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "reference"


def dataset(P=10, N0=6, seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(P) < 4, 1.0, -1.0)
    return Dataset(rng.normal(size=(P, N0)) + 0.5 * y[:, None], y, y)


def test_linear_networks_have_no_closure_error():
    """With Gaussian features level 4 is Eq. (3), to rounding, at every T."""
    for T in (0.01, 0.3, 10.0):
        found = theory.predict(Problem(dataset(), 7, T, 1.3, 0.7, "linear"), first_order=Settings(samples=2000))
        fourth = found.levels["first_order"]
        assert fourth.value == pytest.approx(found.levels["eq3"].value, rel=1e-10)
        assert fourth.se < 1e-10


@pytest.mark.parametrize("activation", ["erf", "tanh"])
def test_the_definition_by_plain_monte_carlo(activation):
    """Both covariances of the definition from 400,000 prior units, 4.5 joint sigma; a halved factor must fail."""
    rng = np.random.default_rng(1)
    p = Problem(dataset(), 7, 0.1, 1.3, 0.7, activation)
    found = theory.predict(p, first_order=Settings(samples=60_000))
    fourth, s = found.first_order, found.spectrum
    h = rng.multivariate_normal(np.zeros(p.P), s.C, size=400_000)
    features = s.activation.sigma(h)
    inverse = np.linalg.inv(p.T * np.eye(p.P) + found.Qbar / p.lambda1 * s.K)
    u = inverse @ p.dataset.y
    square = (features @ p.a) ** 2
    for value, se, other in (
        (fourth.delta2, fourth.delta2_se, (features @ u) ** 2),
        (fourth.minus_delta1, fourth.minus_delta1_se, -np.einsum("nm,mk,nk->n", features, inverse, features)),
    ):
        products = found.Qbar / (2 * p.lambda1) * (square - square.mean()) * (other - other.mean())
        error = np.hypot(se, products.std() / np.sqrt(len(products)))
        assert abs(value - products.mean()) < 4.5 * error
        assert abs(value - 0.5 * products.mean()) > 4.5 * error, "the control"
        assert abs(value + products.mean()) > 4.5 * error, "the control of the sign"


def test_seeds_and_errors():
    """Ten seeds spread as their standard errors say: chi^2 of 9 dof below its 1e-4 quantile, 33.7."""
    p = Problem(load("digits", classes="even/odd", P=40), 40, 0.1)
    found = [theory.predict(p, first_order=Settings(samples=4000, seed=seed)).first_order for seed in range(10)]
    values, errors = np.array([f.value for f in found]), np.array([f.se for f in found])
    assert len(set(values)) == 10
    assert (((values - values.mean()) / errors) ** 2).sum() < 33.7
    again = theory.predict(p, first_order=Settings(samples=4000, seed=3)).first_order
    assert again.value == found[3].value


@pytest.mark.parametrize("name", ["digits_even_odd", "digits_0_1"])
def test_reference_values(name):
    """All T and N1 of a reference file: each half within 4 joint sigma (8 points share draws, so this is about one test)."""
    if not SHARED.is_dir():
        pytest.skip("needs ../shared/reference beside the clone")
    cases = json.loads((SHARED / f"{name}.json").read_text())["cases"]
    digits = load("digits", classes="even/odd" if "even" in name else "0/1", P=100)
    spectrum = theory.Spectrum.of(digits, "erf")
    saddles = [theory.predict(Problem(digits, c["N1"], c["T"]), spectrum=spectrum).saddle for c in cases]
    for case, found in zip(cases, first_order(spectrum, saddles, Settings(rel_error=0.005)), strict=True):
        expected = case["level4"]
        for half in ("delta2", "minus_delta1"):
            joint = np.hypot(getattr(found, f"{half}_se"), expected[f"{half}_se"])
            assert abs(getattr(found, half) - expected[half]) < 4 * joint, (case["T"], case["N1"], half)
        assert found.se <= 0.005 * abs(found.effect) * 1.05
