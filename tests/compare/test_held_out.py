"""Test patterns, measured against predicted: exact for linear networks, importance sampling for erf, and what the report says."""

import json
import math

import numpy as np
import pytest

import compare
import theory
from compare import store
from compare.held_out import D2, LOSS, HeldOut
from compare.measure import Measurement
from data.errors import InputError
from data.problem import Dataset, Problem
from sampling import oracle


def problem(activation="linear", **changes):
    rng = np.random.default_rng(0)
    y = np.where(np.arange(6) < 2, 1.0, -1.0)
    X, X_test = rng.normal(size=(6, 3)), rng.normal(size=(5, 3))
    held_out = {"X_test": X_test, "y_test": rng.normal(size=5), "classes_test": np.array([1.0, 1.0, -1.0, -1.0, -1.0])}
    return Problem(
        Dataset(X, y, y, **held_out),
        **{"N1": 4, "T": 0.3, "lambda0": 1.3, "lambda1": 0.7, "activation": activation} | changes,
    )


CHAINS = {"chains": 48, "draws": 240, "warmup": 60, "threads": 1, "first_order": False}


@pytest.fixture(scope="module")
def linear(tmp_path_factory):
    folder = tmp_path_factory.mktemp("held_out")
    return compare.verify(problem(), out=folder, **CHAINS), folder


def test_a_linear_network_meets_the_exact_level(linear):
    """7 statistics at 4.5 standard errors (t on 47 degrees of freedom: 7 x 4e-5); infinite width and Eq. (4) must be seen to be off."""
    report, _ = linear
    cell = report.cells[0]
    assert cell.status == "ok"
    table = report.generalisation.set_index(["quantity", "level"])
    assert abs(table.loc[(LOSS, "q_averaged"), "z"]) < 4.5
    assert abs(table.loc[(D2, "eq3_q_averaged"), "z"]) < 4.5
    assert table.loc[(LOSS, "q_averaged"), "outcome"] == "agrees"
    for wrong in ((LOSS, "infinite_width"), (LOSS, "saddle_point"), (D2, "eq4")):
        assert abs(table.loc[wrong, "z"]) > 6, wrong
    assert table.loc[(D2, "eq4"), "outcome"] == "differs"
    held_out, exact = cell.held_out, cell.held_out.theory.predictors["q_averaged"]
    assert (abs(held_out.mean - exact.mean) < 4.5 * held_out.mean_se).all()
    np.testing.assert_allclose(held_out.variance, exact.variance, rtol=0.05)
    assert abs(held_out.predictor.slope - 1) < 4.5 * held_out.predictor.slope_se < 0.05
    bias = np.mean((held_out.theory.y - held_out.mean) ** 2)
    loss = held_out.measured[LOSS]
    assert bias + held_out.variance.mean() == pytest.approx(loss.raw_mean, rel=1e-9), (
        "bias and variance make the loss, draw by draw"
    )
    assert held_out.bias_variance["bias"][0] == pytest.approx(bias)
    for name, (value, se) in held_out.bias_variance.items():
        true = np.mean((held_out.theory.y - exact.mean) ** 2) if name == "bias" else exact.variance.mean()
        assert abs(value - true) < 4.5 * se, name  # t on 47 degrees of freedom
        assert se < 0.1 * true, "and the error is small enough to mean something"


def test_the_measured_numbers_of_an_erf_network_are_those_of_importance_sampling():
    """<D^2> and loss on test patterns by weighted prior draws in plain numpy: 4.5 joint standard errors, and T/2 is far outside."""
    p = problem("erf")
    data = p.dataset

    def exact(one, draws=100_000):
        rng = np.random.default_rng(5)
        rows = []
        for _ in range(10):
            w = oracle.prior(one, draws // 10, rng).w
            log_weight = oracle.scalars(one, w)["loglik"]
            phi = oracle.features(one, w)
            test = oracle.features(one.replace(dataset=Dataset(data.X_test, data.y_test, data.classes_test)), w)
            scale = one.lambda1 * one.N1
            A = one.T * np.eye(6) + phi @ phi.swapaxes(1, 2) / scale
            k = test @ phi.swapaxes(1, 2) / scale
            solved = np.linalg.solve(A, k.swapaxes(1, 2))  # A^{-1} k^T
            mean = data.y @ solved
            variance = (test**2).sum(2) / scale - np.einsum("npt,ntp->nt", solved, k)
            a = np.where(data.classes_test > 0, 1 / 2, -1 / 3)
            loss = ((data.y_test - mean) ** 2 + variance).mean(1)
            rows.append((log_weight, ((a @ test) ** 2).sum(1), loss, *mean.T))
        log_weight, *values = (np.concatenate(column) for column in zip(*rows, strict=True))
        weight = np.exp(log_weight - log_weight.max())
        weight /= weight.sum()
        means = np.array([weight @ v for v in values])
        return means, np.array([math.sqrt(weight**2 @ (v - m) ** 2) for v, m in zip(values, means, strict=True)])

    cell = compare.verify(p, **CHAINS).cells[0]
    measured = [cell.held_out.measured[name] for name in (D2, LOSS)]
    found = np.array([*(one.mean for one in measured), *cell.held_out.mean])
    errors = np.array([*(one.se for one in measured), *cell.held_out.mean_se])
    means, se = exact(p)
    assert (abs(found - means) < 4.5 * np.hypot(errors, se)).all()
    colder, _ = exact(p.replace(T=0.15))
    assert (abs(found - colder) / np.hypot(errors, se)).max() > 8


def test_json_tables_and_a_second_reading_agree(linear):
    report, folder = linear
    told = json.loads((folder / "report.json").read_text())["cells"][0]["held_out"]
    cell = report.cells[0]
    assert told["measured"][LOSS]["mean"] == cell.held_out.measured[LOSS].mean
    assert told["verdicts"][D2]["eq4"]["outcome"] == "differs"
    assert told["loss"]["q_averaged"]["value"] == cell.prediction.generalisation.losses["q_averaged"]
    page = (folder / "report.html").read_text()
    assert "Patterns that were not trained on" in page
    assert "generalisation error" in page
    assert (folder / "tables" / "generalisation.csv").exists()
    again = compare.reread(folder)
    assert again.generalisation.equals(report.generalisation)


def test_runs_of_other_test_patterns_are_refused_and_runs_without_them_say_nothing(linear):
    report, _ = linear
    run = report.cells[0].run
    p = problem()
    other = theory.predict(p.replace(dataset=p.dataset.replace(y_test=-p.dataset.y_test)))
    with pytest.raises(InputError, match="other test patterns"):
        HeldOut.of(other, run, Measurement.of(run))
    bare = theory.predict(p.replace(dataset=p.dataset.replace(X_test=None, y_test=None, classes_test=None)))
    assert HeldOut.of(bare, run, Measurement.of(run)) is None


def test_the_command_line_measures_test_patterns(invoke, tmp_path):
    small = ["--data", "digits", "--P", "12", "--P-test", "6", "--N1", "6", "--T", "0.5"]
    result = invoke("verify", *small, "--chains", "4", "--draws", "20", "--no-first-order", "--out", tmp_path, "--json")
    assert result.exit_code in (0, 3), result.output
    cell = json.loads(result.stdout)["cells"][0]["held_out"]
    assert cell["P_test"] == 6
    assert {LOSS, D2} <= set(cell["measured"])
    assert store.load_dataset(tmp_path).X_test.shape == (6, 64)
    predicted = invoke("predict", *small, "--no-first-order", "--json")
    theirs = json.loads(predicted.stdout)["cells"][0]["held_out"]
    assert theirs["loss"] == cell["loss"]
    assert "test patterns" in invoke("predict", *small, "--no-first-order").stdout
    plain = json.loads(invoke("predict", *small[:4], *small[6:], "--no-first-order", "--json").stdout)["cells"][0]
    assert "held_out" not in plain
    refused = invoke("predict", *small[:4], "--P-test", "-1")
    assert refused.exit_code == 2
    assert "P_test = -1" in refused.stderr
