"""saddlecheck regress: planted faults of theory and samplers are named, and nothing else is."""

import importlib
import math

import numpy as np
import pytest
from tests_support.regress import spoil

from compare.regress import judge, run
from compare.regress.baseline import Measured
from compare.regress.cells import CELLS

CELL = "eight patterns"  # the quickest one, erf, with an exact answer


def changed(outcome):
    """{(kind, name)} of what failed."""
    return {(row.kind, row.name) for row in outcome.changed}


# ---- theory ----


def test_nothing_changed_in_the_theory(stored):
    outcome = run.regress(stored, sampling=False)
    assert changed(outcome) == set()
    assert outcome.passed
    kinds = {row.kind for row in outcome.rows}
    assert kinds == {"data", "theory", "level 4"}
    assert len(outcome.rows) > 400


def test_the_sign_of_delta1_is_found(stored, monkeypatch):
    from theory.distance import Terms

    monkeypatch.setattr(Terms, "eq3", property(lambda self: self.prior + self.delta1 + self.delta2))
    outcome = run.regress(stored, sampling=False, cells=[CELL, "clusters tanh"])
    assert changed(outcome) == {("theory", "level eq3"), ("theory", "held out eq3")}


def test_lambdas_for_one_another_in_the_theory_are_found_in_every_cell(stored, monkeypatch):
    module = importlib.import_module("theory.predict")
    genuine = module.predict_grid

    def swapped(dataset, *, lambda0, lambda1, **more):
        return genuine(dataset, lambda0=lambda1[0], lambda1=[lambda0], **more)

    monkeypatch.setattr(module, "predict_grid", swapped)
    monkeypatch.setattr("compare.regress.numbers.LEVEL4_DRAWS", 1)
    outcome = run.regress(stored, sampling=False)
    assert {row.cell for row in outcome.changed} == {one.name for one in CELLS}


@pytest.mark.parametrize("name", ["k", "kdot", "h"])
def test_a_factor_of_a_kernel_is_found(name, stored, monkeypatch):
    """A factor of 1 + 1e-7: two orders above the tolerance, far below what any picture would show."""
    from theory.activations import Erf

    genuine = getattr(Erf, name)
    monkeypatch.setattr(Erf, name, lambda *at: (1.0 + 1e-7) * genuine(*at))
    outcome = run.regress(stored, sampling=False, cells=[CELL])
    found = {row.name for row in outcome.changed}
    assert "weights lambda1_trace" in found
    assert ("level eq4" in found) == (name == "k")


def test_rounding_of_another_machine_is_no_change(stored, monkeypatch):
    """Another LAPACK: eigenvectors of other signs, matrices rounded otherwise."""
    from theory import kernels

    genuine, eigh = kernels.symmetric, np.linalg.eigh
    rng = np.random.default_rng(0)

    def shaken(*arguments):
        K = genuine(*arguments)
        noise = 4e-16 * rng.normal(size=K.shape)
        return K * (1.0 + noise + noise.T)

    def flipped(*arguments, **more):
        values, vectors = eigh(*arguments, **more)
        return values, vectors * rng.choice([-1.0, 1.0], size=vectors.shape[-1])

    monkeypatch.setattr(kernels, "symmetric", shaken)
    monkeypatch.setattr(np.linalg, "eigh", flipped)
    outcome = run.regress(stored, sampling=False, cells=["digits, N1 < P", "gaussian linear, N1 > P", "teacher"])
    assert changed(outcome) == set()
    other = [row for row in outcome.rows if row.kind == "level 4" and row.tested]
    assert other, "cells with more inputs than patterns take other draws of level 4: they are tested, not compared"


def test_another_generator_is_a_test_of_level_4_and_no_change_of_data(stored, monkeypatch):
    from compare.regress import numbers

    monkeypatch.setattr(numbers, "LEVEL4_SEED", 1)
    monkeypatch.setattr(run, "_generator", lambda: [0.5])
    monkeypatch.setattr(run, "load", lambda key: stored.data[key].replace(X=stored.data[key].X + 1.0))
    outcome = run.regress(stored, sampling=False, cells=[CELL, "clusters sin"])
    assert changed(outcome) == set()
    assert sum(row.tested for row in outcome.rows) == 6
    # and with numpy's generator the same, other data are a change, in that row alone
    monkeypatch.setattr(run, "_generator", lambda: stored.made["generator"])
    outcome = run.regress(stored, sampling=False, cells=[CELL])
    assert changed(outcome) == {("data", "X")}


def test_level_4_that_is_off_is_found_by_other_draws_too(stored, monkeypatch):
    from compare.regress import numbers
    from theory.first_order import _Task

    genuine = _Task.result

    def shifted(self, batches, *rest):
        return genuine(self, 1.5 * batches, *rest)

    monkeypatch.setattr(_Task, "result", shifted)
    monkeypatch.setattr(numbers, "LEVEL4_SEED", 1)
    outcome = run.regress(stored, sampling=False, cells=["teacher", "digits, N1 < P"])
    assert {row.kind for row in outcome.changed} == {"level 4"}
    assert {row.cell for row in outcome.changed} == {"teacher", "digits, N1 < P"}


# ---- chains ----


def test_fresh_chains_of_an_unspoiled_sampler_pass(stored):
    outcome = run.regress(stored, cells=[CELL])
    assert changed(outcome) == set()
    assert {row.kind for row in outcome.rows} == {
        "data",
        "theory",
        "level 4",
        "measured",
        "exact",
        "efficiency",
        "sampler",
    }
    assert 0 < outcome.power()["d2"]["worst"] < 0.05


@pytest.mark.parametrize("fault", ["T halved", "lambdas swapped", "1/sqrt(N0) missing"])
def test_faults_of_a_sampler_are_found_and_named(fault, stored, monkeypatch):
    mutations = importlib.import_module("sampling.battery.mutations")
    maps = {
        "T halved": "half_temperature",
        "lambdas swapped": "swapped_precisions",
        "1/sqrt(N0) missing": "without_root_N0",
    }
    spoil(monkeypatch, getattr(mutations, maps[fault]))
    outcome = run.regress(stored, cells=[CELL])
    assert not outcome.passed
    assert {kind for kind, _ in changed(outcome)} <= {"measured", "exact", "efficiency"}
    found = [kind for kind, _ in changed(outcome)]
    assert found.count("measured") >= 2
    assert found.count("exact") >= 2


def test_a_sampler_whose_draws_are_worth_less_is_found():
    rng = np.random.default_rng(0)
    old = Measured.of(1.0 + rng.normal(size=64) / math.sqrt(3000), 3000)
    for factor, found in ((1.0, False), (2.0, False), (12.0, True)):
        new = Measured.of(1.0 + math.sqrt(factor) * rng.normal(size=32) / math.sqrt(400), 400)
        rows = judge.judge(judge.efficiency_rows("cell", {"d2": old}, {"d2": new}), judge.FALSE_ALARM / 200)
        assert rows[0].changed == found
