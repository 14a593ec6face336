"""Every root of a function on a grid, also two that hide between neighbouring nodes."""

import numpy as np
import pytest

from theory.roots import all_roots


def found(polynomial, nodes):
    slope = polynomial.deriv()
    return all_roots(nodes, polynomial(nodes), slope(nodes), lambda x: float(polynomial(x)), lambda x: float(slope(x)))


@pytest.mark.parametrize("nodes", [np.linspace(-2, 2, 41), np.linspace(-2, 2, 40), np.linspace(-2.1, 2.2, 17)])
@pytest.mark.parametrize(
    "roots", [[-1.0], [-1.0, 0.5, 1.5], [-1.5, 0.301, 0.302], [0.0, 0.1, 0.2], [-1.503, -1.502, 0.4, 1.002, 1.003]]
)
def test_roots_of_polynomials(roots, nodes):
    """Roots on nodes, between nodes, and pairs between two nodes of equal sign."""
    assert found(np.polynomial.Polynomial.fromroots(roots), nodes) == pytest.approx(roots, abs=1e-9)


def test_a_scan_of_signs_alone_misses_the_hidden_pair():
    """The control: the case above needs the search for extrema."""
    nodes = np.linspace(-2, 2, 41)
    values = np.polynomial.Polynomial.fromroots([-1.55, 0.301, 0.302])(nodes)
    assert (np.diff(np.sign(values)) != 0).sum() == 1
    assert len(found(np.polynomial.Polynomial.fromroots([-1.55, 0.301, 0.302]), nodes)) == 3


def test_no_root_and_a_near_miss():
    nodes = np.linspace(-2, 2, 41)
    assert found(np.polynomial.Polynomial([1.0, 0.0, 1.0]), nodes) == []
    assert found(np.polynomial.Polynomial([0.33**2 + 1e-9, -0.66, 1.0]), nodes) == []
