"""The action: certified minimum, several stationary points, zero temperature, p(Q|y) against other integrations."""

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar

from data.errors import InputError
from data.problem import Dataset
from theory import Spectrum, action
from theory.action import solve
from theory.order_parameter import OrderParameter


def dataset(P=12, N0=8, seed=0, signal=0.5):
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(P) < P // 3, 1.0, -1.0)
    return Dataset(rng.normal(size=(P, N0)) + signal * y[:, None], y, y)


def artificial(values, y):
    """A Spectrum with chosen eigenvalues and labels in its eigenbasis."""
    base = Spectrum.of(dataset(P=len(values)), "erf")
    fields = {name: getattr(base, name) for name in base.__dataclass_fields__}
    return Spectrum(**(fields | {"values": np.asarray(values, float), "y": np.asarray(y, float)}))


def dense_action(spectrum, Q, N1, T, lambda1):
    """S(Q) from the dense matrix."""
    K = T * np.eye(spectrum.P) + Q / lambda1 * spectrum.K
    y = spectrum.dataset.y
    return Q - np.log(Q) + (np.linalg.slogdet(K)[1] + y @ np.linalg.solve(K, y)) / N1


@pytest.mark.parametrize("T", [1e-8, 1e-2, 1.0, 1e8])
@pytest.mark.parametrize("N1", [1, 12, 10**6])
@pytest.mark.parametrize("lambda1", [0.1, 5.0])
def test_saddle_is_the_minimum_of_the_dense_action(T, N1, lambda1):
    spectrum = Spectrum.of(dataset(), "erf", 1.3)
    found = solve(spectrum, N1, T, lambda1)
    assert found.certified
    assert found.bracket[0] < found.value < found.bracket[1]
    assert float(action.action(spectrum, 0.7, N1, T, lambda1)) == pytest.approx(
        dense_action(spectrum, 0.7, N1, T, lambda1)
    )
    grid = np.geomspace(*found.bracket, 20_001)
    assert (
        float(action.action(spectrum, found.value, N1, T, lambda1))
        <= action.action(spectrum, grid, N1, T, lambda1).min() + 1e-12
    )
    best = math.log(grid[np.argmin(action.action(spectrum, grid, N1, T, lambda1))])
    refined = minimize_scalar(
        lambda x: float(action.action(spectrum, math.exp(x), N1, T, lambda1)), bounds=(best - 0.01, best + 0.01), method="bounded",
        options={"xatol": 1e-12},
    )  # fmt: skip
    assert found.value == pytest.approx(math.exp(refined.x), rel=1e-6)


def test_derivatives_of_the_action():
    spectrum = Spectrum.of(dataset(), "erf")
    x, e = 0.3, 1e-4
    S = lambda x: float(action.action(spectrum, math.exp(x), 5, 0.1, 0.7))  # noqa: E731
    assert float(action.slope(spectrum, math.exp(x), 5, 0.1, 0.7)) == pytest.approx(
        (S(x + e) - S(x - e)) / (2 * e), rel=1e-6
    )
    second = (S(x + e) - 2 * S(x) + S(x - e)) / e**2
    assert float(action.curvature(spectrum, math.exp(x), 5, 0.1, 0.7)) == pytest.approx(second, rel=1e-4)


def test_several_stationary_points_are_all_found_and_the_lowest_is_taken():
    """Many weak label-free modes pull Q down, one mode with a very large label pulls it up: S has two minima and a maximum."""
    spectrum = artificial(np.r_[np.full(20, 1.0), 1e-4], np.r_[np.zeros(20), 3.0])
    found = solve(spectrum, 5, 0.01)
    assert len(found.stationary) == 3
    assert found.status == "lowest of 3"
    assert found.certified
    curvatures = [point.curvature for point in found.stationary]
    assert [c > 0 for c in curvatures] == [True, False, True]
    assert found.value == min(found.stationary, key=lambda point: point.action).Q
    order = OrderParameter.of(spectrum, found)
    assert order.Q[0] < found.stationary[0].Q < found.stationary[2].Q < order.Q[-1], "both phases are integrated over"


def test_zero_temperature():
    spectrum = Spectrum.of(dataset(P=6, N0=12), "erf")
    limit = solve(spectrum, 4, 0.0, 0.7)
    assert limit.status == "closed form"
    assert abs(limit.residual) < 1e-12
    alpha, energy = 6 / 4, 0.7 * float((spectrum.y**2 / spectrum.values).sum()) / 6
    textbook = ((1 - alpha) + math.sqrt((1 - alpha) ** 2 + 4 * alpha * energy)) / 2
    assert limit.value == pytest.approx(textbook, rel=1e-12)
    assert solve(spectrum, 4, 1e-9, 0.7).value == pytest.approx(limit.value, rel=1e-6)
    doubled = dataset().replace(X=np.ones((12, 8)))
    with pytest.raises(InputError, match="T = 0 needs an invertible kernel"):
        solve(Spectrum.of(doubled, "erf"), 4, 0.0)
    silent = dataset(P=6, N0=12).replace(y=np.zeros(6))
    with pytest.raises(InputError, match="no saddle point at T = 0"):
        solve(Spectrum.of(silent, "erf"), 4, 0.0)


def test_limits():
    spectrum = Spectrum.of(dataset(), "erf")
    assert solve(spectrum, 10**9, 0.1).value == pytest.approx(1.0, abs=1e-6)  # N1 -> infinity: NNGP
    assert solve(spectrum, 5, 1e12).value == pytest.approx(1.0, abs=1e-9)  # beta -> 0: the prior


@pytest.mark.parametrize(("N1", "T"), [(1, 0.3), (7, 0.01), (500, 1.0)])
def test_order_parameter_against_adaptive_quadrature_of_the_stated_density(N1, T):
    """p(Q|y) of physics.md section 2 in Q itself, with chi^2 prior and dense Gaussian: moments and evidence."""
    from scipy.stats import gamma, multivariate_normal

    spectrum = Spectrum.of(dataset(P=6), "erf")
    order = OrderParameter.of(spectrum, solve(spectrum, N1, T, 0.7))

    def density(Q):
        K = T * np.eye(6) + Q / 0.7 * spectrum.K
        return gamma.pdf(Q, N1 / 2, scale=2 / N1) * multivariate_normal.pdf(spectrum.dataset.y, np.zeros(6), K)

    # in x = log Q, where the density is smooth for N1 = 1 too
    edges = np.log([order.Q[0], order.Q_mean, order.Q[-1]])
    total, first = (
        sum(
            quad(lambda x, n=n: np.exp((n + 1) * x) * density(np.exp(x)), low, high, limit=400, epsrel=1e-11)[0]
            for low, high in itertools.pairwise(edges)
        )
        for n in (0, 1)
    )
    assert order.log_evidence == pytest.approx(math.log(total), abs=1e-7)
    assert order.Q_mean == pytest.approx(first / total, rel=1e-7)
    coarse = OrderParameter.of(spectrum, solve(spectrum, N1, T, 0.7), points=801)
    assert coarse.Q_mean == pytest.approx(order.Q_mean, rel=1e-10), "the quadrature has converged"
