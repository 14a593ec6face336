"""Every number of the independent reference files, to 1e-8 relative, where the project's shared folder is beside the clone."""

import json
import os
from pathlib import Path

import pytest

from data import load
from data.problem import Problem
from theory import Spectrum, predict

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
DATA = {
    "gaussian_small": (SHARED / "reference/gaussian_small.npz", None, None, {"standardise": "none"}),
    "digits_even_odd": ("digits", "even/odd", 100, {}),
    "digits_0_1": ("digits", "0/1", 100, {}),
    "mnist01_first1000": ("mnist", "0/1", 1000, {}),
    "cifar10_first1000": ("cifar10", "even/odd", 1000, {}),
}


def cases_of(name):
    path = SHARED / f"reference/{name}.json"
    if not path.is_file():
        pytest.skip("needs ../shared/reference beside the clone")
    return json.loads(path.read_text())["cases"]


def dataset_of(name, monkeypatch):
    """The data of each reference file through the project's loader, at its defaults."""
    source, classes, P, options = DATA[name]
    if source in ("mnist", "cifar10") and not os.environ.get("SADDLECHECK_DATA", "").strip():
        if not (SHARED / "data").is_dir():
            pytest.skip("needs the shared data: set SADDLECHECK_DATA, or have ../shared/data beside the clone")
        monkeypatch.setenv("SADDLECHECK_DATA", str(SHARED / "data"))
    return load(source, classes, P, **options)


def numbers(found):
    """Every number that the reference files hold, by name."""
    cell, p = found.to_dict(), found.problem
    named = {key: cell[key] for key in ("Qbar", "prior", "delta1", "delta2", "fbar_a", "yKy_over_P")}
    named |= {level: cell["levels"][level] for level in ("eq4", "eq3")}
    named |= {f"q_averaged {key}": value for key, value in cell["q_averaged"].items()}
    pairs = {"c00": (0, 0), "c01": (0, 1), "c12": (1, 2)}
    both = found.weight_theory.components(list(pairs.values()), found.Qbar, p.N1, p.T, p.lambda1)
    for label, values in zip(("Lambda1", "Lambda2"), both, strict=True):
        for norm in ("trace", "frobenius"):
            named[f"{label} {norm}"] = cell["weights"][f"{label.lower()}_{norm}"]
        named |= {f"{label} {pair}": value for pair, value in zip(pairs, values, strict=True)}
    return named


def expected(case):
    named = {key: case[key] for key in ("Qbar", "prior", "delta1", "delta2", "fbar_a", "yKy_over_P", "eq4", "eq3")}
    for group in ("q_averaged", "Lambda1", "Lambda2"):
        named |= {f"{group} {key}": value for key, value in case[group].items()}
    return named


def prediction(dataset, case, spectrum):
    p = Problem(dataset, case["N1"], case["T"], case["lambda0"], case["lambda1"], case["activation"])
    return predict(p, spectrum=spectrum)


@pytest.mark.parametrize("name", list(DATA))
def test_every_reference_number(name, monkeypatch):
    cases, dataset, spectra = cases_of(name), dataset_of(name, monkeypatch), {}
    assert cases
    for case in cases:
        key = (case["activation"], case["lambda0"])
        if key not in spectra:
            spectra[key] = Spectrum.of(dataset, *key)
        found = prediction(dataset, case, spectra[key])
        assert (case["P"], case["N0"]) == (dataset.P, dataset.N0)
        assert found.saddle.certified
        assert len(found.saddle.stationary) == case["stationary_points"]
        seen, wanted = numbers(found), expected(case)
        assert seen.keys() >= wanted.keys()
        for label, value in wanted.items():
            assert seen[label] == pytest.approx(value, rel=1e-8, abs=0), (case["T"], case["N1"], label)


def test_a_temperature_off_by_a_hundred_thousandth_is_noticed(monkeypatch):
    """The tolerance can fail: T (1 + 1e-5) moves numbers of every group by more than 1e-8."""
    case, dataset = cases_of("digits_even_odd")[0], dataset_of("digits_even_odd", monkeypatch)
    seen = numbers(prediction(dataset, case | {"T": case["T"] * (1 + 1e-5)}, Spectrum.of(dataset, "erf")))
    off = {
        label.split()[0]
        for label, value in expected(case).items()
        if seen[label] != pytest.approx(value, rel=1e-8, abs=0)
    }
    assert off >= {"Qbar", "delta1", "delta2", "fbar_a", "eq4", "eq3", "q_averaged", "Lambda1", "Lambda2"}
