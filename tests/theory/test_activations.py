"""K, Kdot, H of every activation against two-dimensional quadrature, exact limits, and the refusals."""

import numpy as np
import pytest

from data.errors import InputError
from theory import activations

NAMES = ["erf", "linear", "tanh", "sin"]


def derivatives(name):
    """sigma, sigma', sigma'' written here, apart from the package."""
    from scipy.special import erf

    gauss = lambda h: 2 / np.sqrt(np.pi) * np.exp(-h * h)  # noqa: E731
    return {
        "erf": (erf, gauss, lambda h: -2 * h * gauss(h)),
        "linear": (lambda h: h, np.ones_like, np.zeros_like),
        "tanh": (np.tanh, lambda h: 1 / np.cosh(h) ** 2, lambda h: -2 * np.tanh(h) / np.cosh(h) ** 2),
        "sin": (np.sin, np.cos, lambda h: -np.sin(h)),
    }[name]


def quadrature(f, g, m, n, c):
    """E[f(h) g(k)], (h, k) of variances m, n and covariance c, by a product trapezoid rule in independent normals.

    The integrands are analytic and decay as exp(-z^2/2), so the rule converges geometrically: 801 nodes on +-10 reach 1e-13 here.
    """
    z = np.linspace(-10, 10, 801)
    weight = np.exp(-0.5 * z * z) * (z[1] - z[0]) / np.sqrt(2 * np.pi)
    h = np.sqrt(m) * z
    k = c / np.sqrt(m) * z[:, None] + np.sqrt(n - c * c / m) * z
    return float(weight @ (f(h) * (g(k) @ weight)))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("m", "n", "c"), [(0.5, 0.5, 0.2), (1.0, 2.0, -0.9), (3.0, 0.2, 0.7), (2.0, 2.0, 1.999)])
def test_kernels_against_quadrature(name, m, n, c):
    sigma, first, second = derivatives(name)
    found = activations.get(name)
    arrays = np.array([m]), np.array([n]), np.array([[c]])
    for method, f, g in (("k", sigma, sigma), ("kdot", first, first), ("h", second, sigma)):
        expected = quadrature(f, g, m, n, c)
        assert getattr(found, method)(*arrays)[0, 0] == pytest.approx(expected, rel=1e-9, abs=1e-10), method
    assert found.diagonal(np.array([m]))[0] == pytest.approx(
        quadrature(sigma, sigma, m, m, 0.999999999999 * m), rel=1e-8
    )


@pytest.mark.parametrize("name", NAMES)
def test_the_diagonal_is_that_of_the_matrix_and_duplicates_stay_finite(name):
    m = np.array([1e-12, 0.3, 1.0, 8.0])
    found = activations.get(name)
    c = np.sqrt(np.outer(m, m))  # all parallel: the hardest place of arcsin
    for method in ("k", "kdot", "h"):
        assert np.isfinite(getattr(found, method)(m, m, c)).all()
    np.testing.assert_allclose(np.diag(found.k(m, m, np.outer(m, m) ** 0.5)), found.diagonal(m), rtol=1e-9, atol=1e-14)


def test_tanh_states_an_error_and_refuses_what_it_cannot_reach():
    found = activations.get("tanh")
    m = np.array([1.0, 4.0])
    found.k(m, m, np.array([[1.0, 1.5], [1.5, 4.0]]))
    assert 0 < found.error <= found.tolerance
    short = activations.HermiteSeries("tanh", np.tanh, found.first, found.second, terms=20)
    with pytest.raises(InputError, match="error bound"):
        short.k(m, m, np.diag(m))


def test_kernel_against_random_features():
    """100,000 prior units, 5 sigma; a factor of 1.1 on the variance must fail."""
    rng = np.random.default_rng(0)
    C = np.array([[1.5, 0.6], [0.6, 0.8]])
    h = rng.multivariate_normal(np.zeros(2), C, size=100_000)
    for name in NAMES:
        product = derivatives(name)[0](h[:, 0]) * derivatives(name)[0](h[:, 1])
        se = product.std() / np.sqrt(len(h))
        k = lambda C: activations.get(name).k(np.diag(C).copy(), np.diag(C).copy(), C)[0, 1]  # noqa: B023, E731
        assert abs(product.mean() - k(C)) < 5 * se
        if name != "sin":  # there the kernel's damping cancels most of a change of scale
            assert abs(product.mean() - k(1.2 * C)) > 5 * se


def test_refusals():
    with pytest.raises(InputError, match=r"relu.*E\[relu\(h\)\] is not 0.*zero-mean"):
        activations.get("relu")
    with pytest.raises(InputError, match="did you mean 'tanh'"):
        activations.get("tahn")


@pytest.mark.parametrize("name", NAMES)
def test_the_function_and_its_derivatives(name):
    x, found = np.linspace(-3, 3, 31), activations.get(name)
    for method, expected in zip(("sigma", "sigma1", "sigma2"), derivatives(name), strict=True):
        np.testing.assert_allclose(getattr(found, method)(x), expected(x), atol=1e-14, err_msg=method)


@pytest.mark.parametrize("name", NAMES)
def test_small_variances_keep_their_digits(name):
    """K -> sigma'(0)^2 C with a relative correction of order the variance: an absolute tolerance would lose all of it."""
    m = np.array([1e-9, 4e-9])
    c = np.array([[1e-9, -1.2e-9], [-1.2e-9, 4e-9]])
    found = activations.get(name)
    gain = float(derivatives(name)[1](np.zeros(1))[0]) ** 2
    np.testing.assert_allclose(found.k(m, m, c), gain * c, rtol=1e-7)
    np.testing.assert_allclose(found.diagonal(m), gain * m, rtol=1e-7)


def test_the_bound_of_the_series_holds_between_unequal_variances():
    """Both sides are cut at one order: cut each at its own and this is off by 1e-7, since the bound is a product of two tails."""
    found = activations.get("tanh")
    m, n = np.array([12.0]), np.array([0.3])
    for rho in (-1 + 1e-12, 0.4, 1 - 1e-12):
        c = rho * np.sqrt(m * n)
        scale = np.sqrt(found.diagonal(m) * found.diagonal(n))[0]
        exact = quadrature(np.tanh, np.tanh, 12.0, 0.3, c[0])
        assert abs(found.k(m, n, c[:, None])[0, 0] - exact) < 2e-12 * scale


def test_erf_at_huge_variance():
    """Duplicates at variance 1e12: K = diagonal, and Kdot = (4/pi)/sqrt(1 + 4m), where (1 + 2m)^2 - 4m^2 loses every digit."""
    m = np.array([1e12])
    found = activations.get("erf")
    assert found.k(m, m, m[:, None])[0, 0] == pytest.approx(found.diagonal(m)[0], rel=1e-14)
    assert found.kdot(m, m, m[:, None])[0, 0] == pytest.approx(4 / np.pi / np.sqrt(1 + 4e12), rel=1e-12)


@pytest.mark.parametrize("name", ["relu", "ReLU", "gelu", "sigmoid", "softplus", "silu", "cos"])
def test_every_sigma_that_is_not_odd_is_refused_with_the_reason(name):
    with pytest.raises(InputError, match=r"refused: E\[.*not 0"):
        activations.get(name)


def test_an_unlike_name_gets_the_list():
    with pytest.raises(InputError, match=r"unknown \(known: erf, linear, tanh, sin\)"):
        activations.get("xyzzy")
