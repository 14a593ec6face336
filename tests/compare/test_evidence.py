"""Thermodynamic integration: exact for linear networks, importance sampling for erf at P = 6, by chains and without; controls."""

import json
import math

import numpy as np
import pytest

import theory
from compare.evidence import Ladder, gaussian_process, log_evidence, mean_energy, measure_evidence
from data.errors import InputError
from data.problem import Dataset, Problem
from sampling import oracle
from sampling.run import Run


def problem(activation="linear", **changes):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(6) < 2, 1.0, -1.0)
    return Problem(
        Dataset(rng.normal(size=(6, 3)), y, y),
        **{"N1": 4, "T": 0.2, "lambda0": 1.3, "lambda1": 0.7, "activation": activation} | changes,
    )


def made_up(p, residual, spread=1e-9):
    """A run whose residual has this mean, with hardly any noise: the arithmetic alone is tested."""
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(8, 100))
    series = dict.fromkeys(("d2", "Q", "fbar_a", "loglik"), 5.0 + noise) | {
        "residual": residual + spread * (noise - noise.mean())
    }
    manifest = {"problem": p.describe(), "nan_share": 0.0}
    return Run(series, {}, np.eye(3), np.arange(2), ["prior"] * 8, manifest)


def runs_of(p, ladder, residuals):
    return [made_up(p.replace(T=float(T)), one) for T, one in zip(ladder.T, residuals, strict=True)]


def ladder_of(p, nodes):
    prediction = theory.predict(p)
    return prediction, Ladder.of(prediction.spectrum, p.T, p.lambda1, nodes)


@pytest.mark.parametrize(("T", "N1"), [(0.2, 1), (0.01, 4), (20.0, 50)])
def test_a_linear_network_exactly(T, N1):
    """Exact residuals at the nodes, of sampling's quadrature: 16 nodes give theory's log p(y) to 1e-5. A missing normaliser, another
    lambda1, and energies off by half the effect are far outside."""
    p = problem(T=T, N1=N1)
    prediction, ladder = ladder_of(p, 16)
    energies = [oracle.linear(p.replace(T=float(t)))["residual"] for t in ladder.T]
    found = log_evidence(prediction, runs_of(p, ladder, energies), ladder)
    assert found.theory == pytest.approx(oracle.linear(p).log_evidence, abs=1e-8)
    assert found.measured == pytest.approx(found.theory, abs=1e-5)
    assert abs(found.measured - found.theory) <= 2 * found.quadrature + 10 * found.se
    np.testing.assert_allclose(found.energy_theory, found.energy, rtol=1e-6)
    assert abs(theory.predict(p.replace(lambda1=1.4)).q.log_evidence - found.measured) > 1e-3
    assert abs(found.measured + 0.5 * p.P * math.log(2 * math.pi * p.T) - found.theory) > 0.1
    assert found.verdict.outcome == "agrees"
    effect = found.theory - found.infinite_width
    factor = 1 - 0.5 * effect / (
        ladder.weights @ found.energy
    )  # of the energies, so that the evidence is off by half the effect
    off = log_evidence(prediction, runs_of(p, ladder, [factor * one for one in energies]), ladder)
    assert off.measured - found.measured == pytest.approx(0.5 * effect, rel=1e-3)
    assert off.verdict.outcome == "differs"


def test_the_collapsed_likelihood_has_the_same_derivative_draw_by_draw():
    """d/dT of log N(y; 0, A_T(W)) + (P/2) log 2 pi T is E[sum (y - f)^2 | W]/(2 T^2) at any W: the two variants are one."""
    p = problem("erf")
    w = oracle.prior(p, 5, np.random.default_rng(2)).w
    step = 1e-4 * p.T
    values = [
        oracle.scalars(p.replace(T=T), w)["loglik"] + 0.5 * p.P * math.log(2 * math.pi * T)
        for T in (p.T - step, p.T + step)
    ]
    np.testing.assert_allclose(
        (values[1] - values[0]) / (2 * step), oracle.scalars(p, w)["residual"] / (2 * p.T**2), rtol=1e-6
    )


def test_the_rule_converges_geometrically_on_images_and_says_how_far_it_is():
    from data.registry import load

    p = Problem(load("digits", classes="even/odd", P=60), 60, 0.01)
    errors = []
    for nodes in (6, 10, 16):
        prediction, ladder = ladder_of(p, nodes)
        theirs = [mean_energy(theory.predict(p.replace(T=float(t)), spectrum=prediction.spectrum)) for t in ladder.T]
        errors.append(
            abs(-0.5 * p.P * math.log(2 * math.pi * p.T) - ladder.weights @ theirs - prediction.q.log_evidence)
        )
    assert errors[2] < 0.1 * errors[1] < 0.01 * errors[0] < 0.01
    assert errors[2] < 1e-5
    wide = theory.predict(p.replace(N1=10**9))
    assert wide.q.log_evidence == pytest.approx(gaussian_process(wide), abs=1e-5)


CHAINS = {"chains": 96, "draws": 30, "warmup": 40, "threads": 1}


def test_chains_of_a_linear_network_give_the_exact_evidence():
    """4.5 standard errors. Controls: the evidence of T 10% off, and the infinite-width one, are outside."""
    p = problem(N1=2)
    found = measure_evidence(p, nodes=5, **CHAINS)
    error = math.hypot(found.se, found.quadrature)
    exact = oracle.linear(p).log_evidence
    assert abs(found.measured - exact) < 4.5 * error
    assert abs(found.measured - oracle.linear(p.replace(T=1.1 * p.T)).log_evidence) > 4.5 * error
    assert abs(found.measured - found.infinite_width) > 4.5 * error


def test_chains_of_an_erf_network_give_the_evidence_of_importance_sampling():
    """4.5 joint standard errors at P = 6; the theory, not exact here, is told apart."""
    p = problem("erf", N1=2, T=0.1)
    exact = oracle.importance(p, draws=1 << 16)
    found = measure_evidence(p, nodes=5, **CHAINS)
    joint = math.hypot(found.se, exact.log_evidence_se)
    assert abs(found.measured - exact.log_evidence) < 4.5 * math.hypot(joint, found.quadrature)
    assert abs(found.theory - exact.log_evidence) > 4.5 * math.hypot(joint, found.quadrature)
    assert found.to_dict()["theory_minus_measured"] == pytest.approx(found.difference[0])


def test_what_is_refused():
    p = problem()
    prediction, ladder = ladder_of(p, 4)
    runs = runs_of(p, ladder, [1.0] * 4)
    with pytest.raises(InputError, match="4 temperatures and there are 3"):
        log_evidence(prediction, runs[:3], ladder)
    with pytest.raises(InputError, match="another problem"):
        log_evidence(prediction, runs[::-1], ladder)
    runs[2].biased = True
    with pytest.raises(InputError, match="biased"):
        log_evidence(prediction, runs, ladder)
    for bad in ({"T": 0.0}, {"nodes": 1}):
        with pytest.raises(InputError, match=r"at least 2|needs T > 0"):
            Ladder.of(prediction.spectrum, **{"T": 0.2} | bad)


def test_the_command_prints_the_evidence_of_the_ladder(invoke, tmp_path):
    small = [
        "evidence",
        "--P",
        "10",
        "--N1",
        "5",
        "--T",
        "0.5",
        "--nodes",
        "3",
        "--chains",
        "4",
        "--draws",
        "20",
        "--warmup",
        "20",
    ]
    result = invoke(*small, "--out", tmp_path, "--json")
    assert result.exit_code in (0, 3), result.output
    told = json.loads(result.stdout)
    wanted = told["measured"] + 5 * math.log(2 * math.pi * 0.5) + np.dot(told["weights"], told["energy"])
    assert wanted == pytest.approx(0, abs=1e-10)
    assert len(list((tmp_path / "runs").glob("*.nc"))) == 3
    table = invoke(*small)
    assert "nats measured" in table.stdout
    assert "from S(Q)" in table.stdout
    refused = invoke("evidence", "--P", "10", "--T", "0.1,0.2")
    assert refused.exit_code == 2
    assert "one problem at a time" in refused.stderr
