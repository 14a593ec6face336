"""Command-line values: lists, ranges, load or width; each mistake is named with its mend."""

import itertools
import math

import pytest

from compare import options
from data.errors import InputError


def test_list_of_temperatures_is_sorted_and_each_once():
    assert options.temperatures("1,0.01, 0.1,1") == [0.01, 0.1, 1.0]


def test_range_has_exact_ends_and_even_steps_in_log_T():
    found = options.temperatures("0.001..10", 9)
    assert len(found) == 9
    assert (found[0], found[-1]) == (0.001, 10.0)
    steps = [math.log(b / a) for a, b in itertools.pairwise(found)]
    assert steps == pytest.approx([math.log(1e4) / 8] * 8, abs=0.01)  # inner points are rounded to 3 figures
    assert len(options.temperatures("0.001..10")) == options.DEFAULT_POINTS


@pytest.mark.parametrize(
    ("text", "points", "named"),
    [
        ("", None, "--T"),
        ("cold", None, "cold"),
        ("1,nan", None, "nan"),
        ("1,inf", None, "inf"),
        ("10..1", None, "LOW..HIGH"),
        ("0..1", None, "LOW..HIGH"),
        ("1..", None, "LOW..HIGH"),
        ("1..2..3", None, "LOW..HIGH"),
        ("1..2,3", None, "LOW..HIGH"),
        ("1..2", 1, "--T-points"),
        ("1,2", 5, "--T-points"),
    ],
)
def test_bad_temperatures_are_named(text, points, named):
    with pytest.raises(InputError, match=named):
        options.temperatures(text, points)


def test_width_or_load():
    assert options.widths(None, None, 100) == [100]
    assert options.widths("50,100", None, 100) == [50, 100]
    assert options.widths(None, "2,0.5", 100) == [50, 200]
    assert options.widths(None, "3", 100) == [33]


@pytest.mark.parametrize(
    ("N1", "alpha"), [("50", "2"), ("0", None), ("1.5", None), ("x", None), (None, "0"), (None, "-1")]
)
def test_bad_width_or_load_is_refused(N1, alpha):
    with pytest.raises(InputError, match=r"--N1|--alpha"):
        options.widths(N1, alpha, 100)
