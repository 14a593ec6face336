"""The battery: exact samplers pass it with controls that fail, the unadjusted one fails, and each mutation is caught."""

import dataclasses

import pytest

from data.errors import InputError
from sampling import battery
from sampling.battery.mutations import mutate, mutations
from sampling.battery.subject import Subject


@pytest.mark.parametrize("name", ["hmc", "gibbs", "mala"])
def test_exact_samplers_pass_and_their_controls_fail(name):
    found = battery.run(name, checks=["density", "linear"], effort=0.5, controls=True)
    assert {result.name for result in found} >= {"density", "linear", "linear control"}
    for result in found:
        assert result.passed, result
        assert result.false_alarm <= battery.FALSE_ALARM


def test_the_unadjusted_sampler_fails():
    assert not battery.run("langevin", checks=["linear"], effort=0.5)[0].passed


@pytest.mark.parametrize("name", mutations("hmc"))
def test_each_mutation_of_hmc_is_caught(name, monkeypatch):
    """A spoiled hmc goes through the same door as a sound one and must not come out of it."""

    def spoiled(sampler, options):
        return mutate(Subject(sampler, options), name)

    monkeypatch.setattr(battery, "Subject", spoiled)
    found = battery.run("hmc", checks=["density", "linear"], effort=1.0)
    assert not all(result.passed for result in found), [dataclasses.asdict(result) for result in found]


def test_unknown_names_are_refused():
    with pytest.raises(InputError, match="did you mean 'linear'"):
        battery.run("hmc", checks=["linaer"])
