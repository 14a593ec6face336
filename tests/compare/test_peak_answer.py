"""The answer on nonmonotonicity: does Delta2 make the maximum, is it where Eq. (4) puts it; on synthetic runs and on a real job."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from tests_support import synthetic

import compare
from compare.measure import Measurement
from compare.nonmonotone import answers, peaks
from compare.peak import Peak
from compare.peak_answer import answer, origin
from data.problem import Dataset, Problem
from sampling.diagnostics import Diagnosis

T = [0.1, 0.3, 1.0]


def measured(rng, d2, delta2):
    """Measurements at T whose <D^2> and Delta2_m = a.f^2/Q are as given."""
    passed = Diagnosis("ok", (), {})
    made = []
    for value, part in zip(d2, delta2, strict=True):
        run = synthetic.run(rng, d2=value, Q=1.2, fbar_a=math.sqrt(1.2 * part), draws=100)
        made.append(Measurement.of(run, passed))
    return made


def test_delta2_makes_the_maximum_or_does_not():
    rng = np.random.default_rng(0)
    by_delta2 = origin(T, measured(rng, [10, 13, 10], [1.0, 3.8, 1.1]), 0.3)
    assert by_delta2.outcome == "yes"
    assert by_delta2.rise_share[0] == pytest.approx(2.8 / 3, abs=4 * by_delta2.rise_share[1])
    assert by_delta2.fall_share[0] == pytest.approx(2.7 / 3, abs=4 * by_delta2.fall_share[1])
    assert origin(T, measured(rng, [10, 13, 10], [1.0, 1.3, 1.0]), 0.3).outcome == "no"
    one_sided = origin(T, measured(rng, [10, 13, 10], [1.0, 3.9, 3.8]), 0.3)
    assert one_sided.outcome == "no", "the fall is made by something else"
    assert origin(T, measured(rng, [10, 10.001, 10], [1.0, 1.0005, 1.0]), 0.3).outcome == "inconclusive"
    assert origin(T, measured(rng, [13, 12, 10], [3.0, 2.0, 1.0]), 0.1).outcome == "inconclusive", "no inner T"


class Noisy:
    """What `origin` reads of a Measurement, with Gaussian errors of known, correlated size and no limit of degrees of freedom."""

    root = np.linalg.cholesky(np.array([[0.05**2, 0.5 * 0.05 * 0.03], [0.5 * 0.05 * 0.03, 0.03**2]]))

    def __init__(self, rng, d2, delta2):
        self.found = np.array([d2, delta2]) + self.root @ rng.normal(size=2)
        self.d2 = SimpleNamespace(dof=math.inf)

    def combination(self, d2, delta2):
        weights = np.array([d2, delta2])
        return SimpleNamespace(value=weights @ self.found, se=float(np.linalg.norm(weights @ self.root)))


def test_the_false_alarm_rates_of_the_origin():
    """2,000 trials: a rate of 5% has a standard error of 0.5%."""
    rng = np.random.default_rng(1)

    def outcomes(delta2):
        return [
            origin(T, [Noisy(rng, d, p) for d, p in zip([10, 13, 10], delta2, strict=True)], 0.3).outcome
            for _ in range(2000)
        ]

    # One side makes exactly half, the other all: the worst case of "yes", and both directions of chance for "no"
    at_half = outcomes([1.0, 2.5, -0.5])
    assert 0.03 < at_half.count("yes") / 2000 < 0.07
    assert at_half.count("no") / 2000 < 0.04
    both = outcomes([1.0, 2.5, 1.0])
    assert both.count("yes") / 2000 < 0.02
    assert 0.03 < both.count("no") / 2000 < 0.07  # 2.5% on either side


def peak(outcome, T_peak=math.nan, low=math.nan, high=math.nan, bump=1.0, witness="inconclusive"):
    return Peak(
        outcome, "", 0.01, 10.0, 0.0, T_peak=T_peak, T_low=low, T_high=high, rise=bump, fall=bump, witness=witness
    )


@pytest.mark.parametrize(
    ("measured_one", "theory_one", "place"),
    [
        (peak("yes", 0.1, 0.08, 0.13), peak("yes", 0.11), "agrees"),
        (peak("yes", 0.1, 0.08, 0.13), peak("yes", 0.5), "differs"),
        (peak("yes", 0.1, 0.03, 0.3), peak("yes", 0.11), "inconclusive"),
        (peak("yes", 0.1, 0.08, 0.13), peak("no"), "differs"),
        (peak("no"), peak("no"), "agrees"),
        (peak("no"), peak("yes", 0.1), "differs"),
        (peak("no"), peak("yes", 0.1, bump=0.1), "inconclusive"),
        (peak("no", witness="no"), peak("yes", 0.1, bump=0.1), "differs"),
        (peak("inconclusive"), peak("yes", 0.1), "inconclusive"),
    ],
)
def test_the_place_of_the_maximum(measured_one, theory_one, place):
    found = answer(100, measured_one, theory_one, None, 0.5)
    assert found.place == place
    assert found.sentence.startswith("At N1 = 100, ")


@pytest.fixture(scope="module")
def report():
    """Five temperatures of a small data set, near enough to be reweighted; random labels, so D^2 between labels is measured too."""
    rng = np.random.default_rng(3)
    classes = np.where(np.arange(10) < 5, 1.0, -1.0)
    X = rng.normal(size=(10, 4)) + 0.4 * classes[:, None]
    dataset = Dataset(X, rng.permutation(classes), classes)
    temperatures = np.geomspace(0.5, 10, 5)
    problems = [Problem(dataset, N1=5, T=float(one)) for one in temperatures]
    return compare.verify(problems, chains=8, draws=400, warmup=100, starts=("prior",), first_order=False)


def test_runs_record_what_reweighting_needs(report):
    run = report.cells[2].run
    assert len(run.manifest["temperatures"]) == 9, "the ladder and its midpoints"
    assert run.series["loglik_T"].shape == (8, 400, 9)
    column = int(np.argmin(np.abs(np.log(np.array(run.manifest["temperatures"]) / report.cells[2].problem.T))))
    np.testing.assert_allclose(run.series["loglik_T"][..., column], run.series["loglik"], rtol=1e-8)


def test_a_real_job_is_answered_by_reweighting(report):
    assert report.status == "ok"
    table = report.peak.set_index("curve")
    assert table.loc["measured", "method"] == "mbar"
    assert table.loc["d2_labels", "method"] == "mbar"
    assert "overlap" in table.loc["measured", "note"]
    (found,) = report.peak_answers
    assert (found.N1, found.method) == (5, "mbar")
    assert report.to_dict()["peak_answers"][0]["sentence"] == found.sentence


def test_without_recorded_log_likelihoods_the_curve_is_pointwise_and_the_same(report):
    cells = [type(cell)(**vars(cell)) for cell in report.cells]
    series = [{k: v for k, v in cell.run.series.items() if k != "loglik_T"} for cell in cells]
    for cell, kept in zip(cells, series, strict=True):
        object.__setattr__(cell, "run", type(cell.run)(**(vars(cell.run) | {"series": kept})))
    verdicts = peaks(cells, report.lines)
    assert verdicts[0].peak.method == "pointwise"
    assert "did not record" in verdicts[0].peak.note
    assert verdicts[0].peak.outcome == report.peak_verdicts[0].peak.outcome
    assert answers(cells, verdicts)[0].has_maximum == report.peak_answers[0].has_maximum
