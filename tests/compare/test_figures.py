"""`saddlecheck figures`: its files, its numbers against the theory, its points against the runs, its stand-ins, the same bytes twice."""

import json

import numpy as np
import pandas as pd
import pytest

import data
from compare.paper import kernels, weights
from compare.paper.points import read
from data.errors import InputError
from data.problem import Problem
from theory import predict
from theory.similarity import similarity

SMALL = [
    "--data",
    "digits",
    "--P",
    "20",
    "--alpha",
    "1,2",
    "--T",
    "0.1,1",
    "--sizes",
    "20,40",
    "--at-T",
    "1",
    "--error",
    "0.3",
]
CHAINS = ["--sample", "--draws", "30", "--warmup", "30", "--chains", "4"]
STEMS = ["d2-against-T", "kernels-by-class", "lambda2-against-alpha", "scaling-of-yKy"]


@pytest.fixture(scope="module")
def made(tmp_path_factory, invoke):
    """(folder, printed) of the figures with chains, no set at hand but the embedded ones."""
    folder = tmp_path_factory.mktemp("figures")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SADDLECHECK_DATA", "")
        patch.setattr("data.download.cached", lambda *names: None)
        result = invoke("figures", folder, *SMALL, *CHAINS, "--json", "--quiet")
    assert result.exit_code in (0, 3), result.output
    return folder, json.loads(result.stdout)


def table(folder, name):
    return pd.read_csv(folder / "figures" / f"{name}.csv")


@pytest.mark.slow
def test_every_figure_has_its_files_and_they_are_not_blank(made):
    folder, printed = made
    assert sorted(path.stem for path in (folder / "figures").glob("*.svg")) == STEMS
    for stem in STEMS:
        svg = (folder / "figures" / f"{stem}.svg").read_text(encoding="utf-8")
        assert svg.count("<path") + svg.count("<use") > 50
        assert "<title>" in svg
        assert (folder / "figures" / f"{stem}.pdf").read_bytes().startswith(b"%PDF")
        assert len(table(folder, stem)) > 3
    assert all((folder / "figures" / f).exists() for one in printed["figures"] for f in map(_name, one["files"]))
    assert [one["name"] for one in printed["figures"]] == ["d2", "lambda2", "scaling", "kernels"]


def _name(path):
    return path.rsplit("/", 1)[-1]


@pytest.mark.slow
def test_d2_and_scaling_are_what_predict_says(made):
    folder, _ = made
    rows = table(folder, "d2-against-T")
    assert set(rows["level"]) == {"infinite_width", "eq4", "eq3", "eq3_q_averaged", "first_order"}
    for kind in ("true", "random"):
        dataset = data.load("digits", classes="even/odd", P=20, labels=kind)
        for N1, T in ((20, 0.1), (10, 1.0)):
            one = predict(Problem(dataset, N1, T))
            part = rows[(rows["labels"] == kind) & (rows["N1"] == N1) & (rows["T"] == T)].set_index("level")
            for name, level in one.levels.items():
                assert part.loc[name, "value"] == pytest.approx(level.value, rel=1e-9)
            fourth = part.loc["first_order"]
            assert fourth["se"] > 0
    scaling = table(folder, "scaling-of-yKy")
    assert list(scaling["data"].unique()) == ["gaussian", "fashion-mnist even/odd", "digits 0/1"]
    row = scaling[(scaling["data"] == "digits 0/1") & (scaling["P"] == 40)].iloc[0]
    dataset = data.load("digits", classes="0/1", P=40)
    one = predict(Problem(dataset, 20, 1.0))
    K = one.spectrum.K
    assert row["yKy_over_P"] == pytest.approx(dataset.y @ K @ dataset.y / 40, rel=1e-10)
    shift = np.linalg.inv(np.eye(40) + one.Qbar * K)
    assert row["delta1"] == pytest.approx(one.Qbar * dataset.a @ K @ shift @ K @ dataset.a, rel=1e-8)
    assert row["eq4"] - row["eq3"] == pytest.approx(row["delta1"], rel=1e-8)


@pytest.mark.slow
def test_lambda2_and_kernels_are_what_the_formulas_say(made):
    """Lambda2 by physics.md section 4 written out; Eq. (1) on the block of the run, classes together."""
    folder, _ = made
    dataset = data.load("digits", classes="even/odd", P=20)
    one = predict(Problem(dataset, 10, 1.0))
    heat = table(folder, "lambda2-against-alpha-heat-maps")
    inputs = heat[heat["space"] == "inputs"]
    K, C = one.spectrum.K, dataset.X @ dataset.X.T / dataset.N0
    u = np.linalg.solve(np.eye(20) + one.Qbar * K, dataset.y)
    d = 1 + 2 * np.diag(C)
    kdot = 4 / np.pi / np.sqrt(np.outer(d, d) - 4 * C**2)
    R = 2 * C / np.sqrt(np.outer(d, d))
    H = -(4 / np.pi) * R / (d[:, None] * np.sqrt(1 - R**2))
    M = np.outer(u, u)
    expected = one.Qbar / (10 * dataset.N0) * dataset.X.T @ (np.diag((M * H).sum(1)) + M * kdot) @ dataset.X
    found = inputs.apply(lambda row: expected[int(row["h"]), int(row["k"])], axis=1)
    np.testing.assert_allclose(inputs["lambda2"], found, rtol=1e-7, atol=1e-12 * abs(expected).max())
    lines = table(folder, "lambda2-against-alpha")
    assert (lines.groupby("N1").size() == 25).all()

    rows = table(folder, "kernels-by-class")
    assert set(rows["matrix"]) == set(kernels.NAMES)
    block = rows[rows["matrix"] == "prior"]["mu"].drop_duplicates().to_numpy()
    assert (np.diff(dataset.classes[block]) <= 0).all()
    eq1 = similarity(one.spectrum, one.Qbar, 10, 1.0, block=block) - K[np.ix_(block, block)]
    np.testing.assert_allclose(kernels.matrix(rows, "eq1"), eq1, atol=1e-12)
    assert abs(kernels.matrix(rows, "eq1") - kernels.matrix(rows, "prior")).max() > 0.1


def test_directions_are_those_of_the_runs():
    """The class direction first, orthonormal; the spans of leading directions are the chains' own."""
    from sampling.observables import _basis

    dataset = data.load("digits", classes="even/odd", P=20)
    basis = weights.directions(dataset)
    np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-12)
    along = dataset.X.T @ dataset.a
    assert basis[:, 0] @ along == pytest.approx(np.linalg.norm(along))
    U, s, V = np.linalg.svd(dataset.X / np.sqrt(dataset.N0), full_matrices=False)
    theirs = V.T @ _basis(U * s, dataset.a, len(s))
    k = 6
    np.testing.assert_allclose(basis[:, :k] @ basis[:, :k].T, theirs[:, :k] @ theirs[:, :k].T, atol=1e-8)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--only", "d3"], "--only"),
        (["--sizes", "20.5"], "--sizes"),
        (["--alpha", "0"], "--alpha"),
        (["--runs", "nosuch"], "--runs"),
        (["--T", "0"], "--T"),
    ],
)
def test_bad_input_is_one_line(invoke, tmp_path, arguments, named):
    result = invoke("figures", tmp_path, *arguments)
    assert result.exit_code == 2
    assert named in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_folder_without_runs_is_refused(tmp_path):
    with pytest.raises(InputError, match="holds no runs"):
        read(tmp_path)
