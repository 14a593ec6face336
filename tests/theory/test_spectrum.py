"""Spectrum: edge cases of the data, what is refused, and labels changed without a new eigendecomposition."""

import numpy as np
import pytest

import theory
from data.errors import InputError
from data.problem import Dataset, Problem
from theory import Spectrum
from theory.action import solve


def dataset(P=6, N0=4, seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(P) < P // 2, 1.0, -1.0)
    return Dataset(rng.normal(size=(P, N0)), y, y)


def test_two_patterns_by_hand():
    """P = 2: K = [[k, c], [c, k]], eigenvalues k - c and k + c, labels and contrast along the first only."""
    data = Dataset([[1.0, 0.0], [0.6, 0.8]], [1.0, -1.0], [1.0, -1.0])
    spectrum = Spectrum.of(data, "linear", 2.0)
    k, c = 1 / 4, 0.6 / 4
    assert spectrum.values == pytest.approx([k - c, k + c])
    found = theory.predict(Problem(data, 3, 0.5, 2.0, activation="linear"))
    Q, one, two = found.Qbar, k - c, k + c
    determinant = Q * one / (0.5 + Q * one) + Q * two / (0.5 + Q * two)
    energy = 2 * Q * one / (0.5 + Q * one) ** 2
    assert Q - 1 + (determinant - energy) / 3 == pytest.approx(0, abs=1e-14)
    assert found.prior == pytest.approx(3 * 2 * one)
    assert found.delta1 == pytest.approx(Q * 2 * one**2 / (0.5 + Q * one))
    assert found.delta2 == pytest.approx(Q * (2 * one / (0.5 + Q * one)) ** 2)


def test_contradicting_duplicates_are_data_as_long_as_T_is_not_zero():
    """Two copies of a pattern with opposite labels, against dense algebra; at T = 0, or below rounding, a refusal."""
    data = dataset()
    doubled = Dataset(np.r_[data.X, data.X[:1]], np.r_[data.y, -1.0], np.r_[data.classes, 1.0])
    spectrum = Spectrum.of(doubled, "erf")
    assert spectrum.singular
    found = theory.predict(Problem(doubled, 5, 1e-4), spectrum=spectrum)
    assert found.saddle.certified
    K, a = spectrum.K, doubled.a
    dense = np.linalg.inv(1e-4 * np.eye(7) + found.Qbar * K)
    assert found.delta1 == pytest.approx(found.Qbar * a @ K @ dense @ K @ a, rel=1e-8)
    assert found.fbar_a == pytest.approx(found.Qbar * a @ K @ dense @ doubled.y, rel=1e-8)
    with pytest.raises(InputError, match="T = 0 needs an invertible kernel"):
        solve(spectrum, 5, 0.0)
    with pytest.raises(InputError, match="below what float64 resolves"):
        solve(spectrum, 5, 1e-18)


@pytest.mark.parametrize(("lambda0", "lambda1"), [(1e-6, 1.0), (1e6, 1.0), (1.0, 1e-6), (1.0, 1e6)])
def test_extreme_precisions(lambda0, lambda1):
    found = theory.predict(Problem(dataset(), 5, 0.1, lambda0, lambda1))
    assert found.saddle.certified
    K, a, y = found.spectrum.K, found.problem.a, found.problem.dataset.y
    dense = np.linalg.inv(0.1 * np.eye(6) + found.Qbar / lambda1 * K)
    terms = (a @ K @ dense @ y) ** 2 - a @ K @ dense @ K @ a
    assert found.levels["eq3"].value == pytest.approx(found.prior + found.Qbar / lambda1 * terms, rel=1e-9)
    assert all(np.isfinite(level.value) for level in found.levels.values())


def test_relabelling_is_a_new_spectrum_without_the_eigendecomposition(monkeypatch):
    data = dataset()
    other = data.replace(y=np.roll(data.y, 2), classes=np.roll(data.classes, 1))
    direct = theory.predict(Problem(other, 5, 0.1))
    spectrum = Spectrum.of(data, "erf")
    monkeypatch.setattr(np.linalg, "eigh", None)
    found = theory.predict(Problem(other, 5, 0.1), spectrum=spectrum.relabel(other))
    for name, level in direct.levels.items():
        assert found.levels[name].value == pytest.approx(level.value, rel=1e-11), name
    with pytest.raises(InputError, match="same patterns"):
        spectrum.relabel(dataset(seed=1))


def test_refusals():
    data = dataset()
    with pytest.raises(InputError, match="lambda0 = 0"):
        Spectrum.of(data, "erf", 0.0)
    with pytest.raises(InputError, match="standardise X"):
        Spectrum.of(data.replace(X=1e200 * data.X), "erf")
    with pytest.raises(InputError, match="square overflows"):
        Spectrum.of(data.replace(y=1e200 * data.y), "erf")
    with pytest.raises(InputError, match="out of the range of float64"):
        solve(Spectrum.of(data.replace(X=1e-160 * data.X, y=1e99 * data.y), "linear"), 5, 1e-99, 1e-20)
    with pytest.raises(InputError, match=r"E\[relu\(h\)\]"):
        theory.predict(Problem(data, 5, 0.1, activation="relu"))
    spectrum = Spectrum.of(data, "erf")
    for changes in ({"T": -1.0}, {"T": float("nan")}, {"T": 1e-200}):
        with pytest.raises(InputError, match="T = "):
            solve(spectrum, 5, **changes)
    with pytest.raises(InputError, match="N1 = 0"):
        solve(spectrum, 0, 0.1)
    with pytest.raises(InputError, match="lambda1 = nan"):
        solve(spectrum, 5, 0.1, float("nan"))
    for wrong in (
        Problem(dataset(seed=1), 5, 0.1),
        Problem(data, 5, 0.1, 2.0),
        Problem(data, 5, 0.1, activation="sin"),
    ):
        with pytest.raises(InputError, match="other data, activation or lambda0"):
            theory.predict(wrong, spectrum=spectrum)
