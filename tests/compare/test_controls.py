"""Controls: what they change and what they keep; the same chains seen between the labels, against a run made for the labels."""

import dataclasses

import numpy as np
import pytest

from compare import controls
from data.errors import InputError
from data.problem import Problem
from data.registry import load
from sampling import run

CHAIN = {"chains": 4, "draws": 60, "warmup": 40, "seed": 3}


@pytest.fixture(scope="module")
def random_labels():
    """(problem with random labels, its run)."""
    problem = Problem(load("digits", P=12, labels="random", label_seed=1), N1=6, T=0.3, lambda1=1.7)
    return problem, run(problem, **CHAIN)


def test_the_output_between_the_labels_follows_from_what_was_recorded():
    """Where the labels are the classes, a.E[f|W] was measured draw by draw: the derived one must be it, to rounding."""
    problem = Problem(load("digits", P=12), N1=6, T=0.3, lambda1=1.7)
    found = run(problem, **CHAIN)
    both = dataclasses.replace(found, series={**found.series, "d2_labels": found.series["d2"]})
    seen, _ = controls.between_labels(both, problem)
    assert seen.series["fbar_a"] == pytest.approx(found.series["fbar_a"], rel=1e-8, abs=1e-8)
    assert found.series["fbar_a"].std() > 0.01, "it varies from draw to draw"


def test_the_chains_seen_between_the_labels_belong_to_that_problem(random_labels):
    from compare.cell import Cell
    from theory import predict_grid

    problem, found = random_labels
    seen, other = controls.between_labels(found, problem)
    assert (seen.series["d2"] == found.series["d2_labels"]).all()
    assert "d2_labels" not in seen.series
    assert (other.dataset.classes == problem.dataset.y).all()
    assert seen.manifest["problem"]["fingerprint"] == other.fingerprint != problem.fingerprint
    prediction = predict_grid(other.dataset, N1=[6], T=[0.3], lambda1=[1.7])[0]
    cell = Cell.of(prediction, seen)
    # Trained on these labels the network separates them: the part that the readout explains is there, and it is not between the classes.
    assert cell.measurement.delta2.value == pytest.approx(prediction.delta2, rel=0.5)
    assert cell.measurement.fbar_a.mean > 2 * abs(found.series["fbar_a"].mean())


def test_nothing_is_seen_between_labels_that_are_the_classes_or_not_balanced(random_labels):
    problem, found = random_labels
    true = Problem(load("digits", P=12), N1=6, T=0.3)
    assert controls.between_labels(dataclasses.replace(found, series={"d2": found.series["d2"]}), true) is None
    y = problem.dataset.y.copy()
    y[np.flatnonzero(y > 0)[0]] = -1.0
    assert controls.between_labels(found, dataclasses.replace(problem, dataset=problem.dataset.replace(y=y))) is None


def main(P=100, N1=(50, 100), **options):
    dataset = load("digits", P=P, **options)
    return [Problem(dataset, N1=width, T=T, lambda1=2.0) for width in N1 for T in (0.1, 1.0)]


def test_random_labels_keep_patterns_classes_widths_and_temperatures():
    problems = main()
    found = controls.problems("random-labels", problems, 7)
    assert [(p.N1, p.T, p.lambda1) for p in found] == [(p.N1, p.T, p.lambda1) for p in problems]
    data, true = found[0].dataset, problems[0].dataset
    assert (data.X == true.X).all()
    assert (data.classes == true.classes).all()
    assert data.y.sum() == true.y.sum()
    assert 0 < (data.y != true.y).sum() < 100
    other = controls.problems("random-labels", problems, 8)[0].dataset
    assert (other.y != data.y).any()


def test_small_alpha_is_small_and_its_width_bounded():
    for P, kept in ((20, 20), (100, 50)):
        found = controls.problems("small-alpha", main(P), 0)
        assert [p.T for p in found] == [0.1, 1.0], "one width, every temperature"
        assert kept == found[0].P
        assert found[0].N1 <= controls.WIDEST
        assert found[0].alpha == pytest.approx(controls.ALPHA, rel=0.01)
        assert found[0].dataset.classes.sum() == 0
    uneven = main(100)[0].dataset
    rows = np.r_[0:50, 50:75]
    some = [Problem(uneven.replace(X=uneven.X[rows], y=uneven.y[rows], classes=uneven.classes[rows]), N1=10, T=1.0)]
    few = controls.problems("small-alpha", some, 0)[0].dataset
    assert ((few.classes > 0).sum(), (few.classes < 0).sum()) == (33, 17)


def test_eq3_holds_at_small_alpha_within_half_of_the_margin():
    """The width is wide enough: what Eq. (4) drops is less than half of the margin of the effect, at alpha = 1 it is not."""
    from theory import predict_grid

    def dropped(problem):
        found = predict_grid(problem.dataset, N1=[problem.N1], T=[1.0])[0]
        eq3, averaged = found.levels["eq3"].value, found.levels["eq3_q_averaged"].value
        return abs(averaged - eq3) / (eq3 - found.prior)

    small = controls.problems("small-alpha", main(), 0)[0]
    assert dropped(small) < 0.05 / 2
    assert dropped(dataclasses.replace(small, N1=small.P)) > 2 * dropped(small)


def test_gaussian_data_have_the_shape_of_the_data_and_no_relation_to_the_labels():
    found = controls.problems("gaussian", main(), 7)
    data = found[0].dataset
    assert data.X.shape == (100, 64)
    assert data.y.sum() == 0
    assert len(found) == 4
    # (mean difference)^2 summed over 64 inputs, of variance 4/100 each: chi^2 with 64 degrees of freedom, 5 sigma
    assert abs(((data.a @ data.X) ** 2).sum() / (4 / 100) - 64) < 5 * np.sqrt(2 * 64)
    assert (controls.problems("gaussian", main(), 8)[0].dataset.X != data.X).any()


def test_names_of_controls():
    assert controls.names("all") == ["random-labels", "small-alpha", "gaussian"]
    assert controls.names("gaussian, random-labels,gaussian") == ["gaussian", "random-labels"]
    for bad in ("", "shuffled", "gaussian,all"):
        with pytest.raises(InputError, match="random-labels, small-alpha, gaussian"):
            controls.names(bad)


@pytest.mark.parametrize("labels", ["random", "zero"])
def test_random_labels_of_random_labels_are_refused(labels):
    with pytest.raises(InputError, match="leave it out"):
        controls.problems("random-labels", main(labels=labels), 0)
