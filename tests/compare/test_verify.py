"""compare.verify in Python: the Report and its tables, interruption and resumption, and the checks that only it makes."""

import functools
import importlib

import numpy as np
import pandas as pd
import pytest

import compare
from compare import frames, store
from compare.cell import misfit
from data.errors import InputError
from data.problem import Problem
from data.registry import load


def _problems(*T, N1=4, **more):
    dataset = load("gaussian:N0=6", P=8, **more)
    return [Problem(dataset, N1=N1, T=t) for t in T]


CHAINS = {"chains": 4, "draws": 40, "warmup": 40}
QUICK = CHAINS | {"first_order": False}


def test_verify_is_a_function_of_the_package_whatever_was_imported_before():
    module = importlib.import_module("compare.verify")
    assert compare.verify is module.verify
    assert {"verify", "Report", "equivalence"} <= set(dir(compare))
    with pytest.raises(AttributeError, match="nosuch"):
        compare.nosuch  # noqa: B018


@pytest.fixture(scope="module")
def report():
    return compare.verify(_problems(1.0, 0.2), **QUICK)


def test_the_report_holds_pandas_tables_with_the_documented_columns(report):
    for name, columns in frames.COLUMNS.items():
        table = getattr(report, name)
        assert isinstance(table, pd.DataFrame)
        assert list(table.columns) == columns.split()
    assert [cell.problem.T for cell in report.cells] == [1.0, 0.2]  # the order in which they were given
    assert list(report.runs["T"]) == [1.0, 0.2]
    assert set(report.levels["alpha"]) == {2.0}
    assert len(report.weights) == 2 * report.weights_fit["components"].iloc[0]
    assert report.cells[0].run.dataset().sizes["chain"] == 4


def test_tables_agree_with_the_objects_they_are_made_from(report):
    cell = report.cells[0]
    row = report.levels[(report.levels["T"] == 1.0) & (report.levels["level"] == "eq3")].iloc[0]
    assert row["difference"] == pytest.approx(cell.measurement.d2.mean - cell.prediction.levels["eq3"].value)
    assert row["difference"] / row["difference_se"] == pytest.approx(row["z"])
    budget = report.budget[report.budget["T"] == 1.0].set_index("part")["value"]
    assert budget.drop("total").sum() == pytest.approx(budget["total"])
    assert "gaussian_closure" not in budget.index  # level 4 was not asked for


def test_one_temperature_gets_curves_around_it():
    report = compare.verify(_problems(0.5), **QUICK)
    T = report.curves["T"]
    assert T.min() == pytest.approx(0.05)
    assert T.max() == pytest.approx(5.0)
    assert report.peak.empty
    assert "<svg" in report.html()


def test_cells_at_different_temperatures_do_not_share_their_noise(report):
    seeds = report.runs["seed"]
    assert seeds.nunique() == 2


def test_an_interrupted_job_goes_on_where_it_stopped(tmp_path, monkeypatch):
    import sampling

    straight = compare.sample(_problems(1.0, 0.2), out=tmp_path / "straight", **CHAINS)
    true_run = sampling.run
    calls = []

    @functools.wraps(true_run)
    def stops_at_the_second(problem, *arguments, **options):
        calls.append(problem.T)
        if len(calls) == 2:
            raise sampling.Interrupted("stopped for the test")
        return true_run(problem, *arguments, **options)

    monkeypatch.setattr(sampling, "run", stops_at_the_second)
    out = tmp_path / "stopped"
    with pytest.raises(sampling.Interrupted):
        compare.sample(_problems(1.0, 0.2), out=out, **CHAINS)
    assert len(list((out / store.RUNS).glob("*.nc"))) == 1
    resumed = compare.sample(_problems(1.0, 0.2), out=out, **CHAINS)
    assert calls == [1.0, 0.2, 0.2]  # the finished cell was not sampled again
    for one, other in zip(resumed, straight, strict=True):
        np.testing.assert_array_equal(one.series["d2"], other.series["d2"])
    assert not (out / "unfinished.json").exists()


def test_another_request_in_the_same_folder_leaves_nothing_of_the_first(tmp_path):
    compare.sample(_problems(1.0, 0.2), out=tmp_path, **CHAINS)
    compare.sample(_problems(0.5), out=tmp_path, **CHAINS)
    assert [path.name for path in (tmp_path / store.RUNS).glob("*.nc")] == ["N1_4-T_0.5.nc"]
    assert [cell.problem.T for cell in compare.reread(tmp_path).cells] == [0.5]


@pytest.mark.parametrize(
    ("problems", "named"),
    [
        (lambda: [], "no problems"),
        (lambda: _problems(0.0), "T = 0"),
        (lambda: _problems(1.0, 1.0), "twice"),
        (lambda: _problems(1.0) + _problems(0.5, seed=1), "one data set"),
    ],
)
def test_lists_of_problems_that_make_no_report_are_refused(problems, named):
    with pytest.raises(InputError, match=named):
        compare.verify(problems(), **QUICK)


def test_unknown_options_are_refused_before_the_theory_runs():
    with pytest.raises(InputError, match="margin"):
        compare.verify(_problems(1.0), **QUICK | {"margin": 1.5})
    with pytest.raises(InputError, match="chains"):
        compare.verify(_problems(1.0), **QUICK | {"chains": 0})


def test_a_dataset_survives_the_folder_with_its_fingerprint(tmp_path):
    dataset = load("digits", P=10, P_test=4)
    store.save_dataset(dataset, tmp_path)
    again = store.load_dataset(tmp_path)
    assert again.fingerprint == dataset.fingerprint
    assert again.provenance == dataset.provenance
    np.testing.assert_array_equal(again.X_test, dataset.X_test)
    (tmp_path / store.DATA).write_bytes(b"not a zip file")
    with pytest.raises(InputError, match="cannot be read"):
        store.load_dataset(tmp_path)


def test_misfit_is_unbiased_and_its_error_covers_it():
    """Chains of known truth: exact predictions give 0, a planted deviation gives its own share; 400 repetitions, 16 chains.

    The mean over repetitions is known to sd/sqrt(400); 4 of those is a false alarm below 1e-4 for each of the two.
    """
    rng = np.random.default_rng(0)
    predicted = rng.normal(size=60)
    for planted in (0.0, 0.3):
        truth = predicted + planted * rng.permutation(predicted)
        wanted = ((truth - predicted) ** 2).sum() / (predicted**2).sum()
        found, errors = np.transpose([misfit(truth + 0.3 * rng.normal(size=(16, 60)), predicted) for _ in range(400)])
        spread = found.std(ddof=1)
        assert abs(found.mean() - wanted) < 4 * spread / 20
        # The jackknife is known to be too wide for a square near 0; it must never be too narrow.
        assert 0.8 < np.sqrt((errors**2).mean()) / spread < 1.6
    assert wanted > 5 * spread  # the planted one is far outside the noise: the test has power
