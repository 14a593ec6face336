"""Choice of rows and standardisation: counts, order, disjointness and nesting for any pool; errors for what is not there."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.errors import InputError
from data.scaling import Scaling
from data.selection import TooFew, choose, describe_rows


def pool(n_plus, n_minus, n_other, seed=0):
    sign = np.repeat([1, -1, 0], [n_plus, n_minus, n_other]).astype(np.int8)
    return np.random.default_rng(seed).permutation(sign)


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.tuples(st.integers(12, 40), st.integers(12, 40), st.integers(0, 20)),
    half=st.integers(1, 6),
    half_test=st.integers(0, 6),
    seed=st.none() | st.integers(0, 2**63),
    order=st.integers(0, 100),
)
def test_balanced_rows(sizes, half, half_test, seed, order):
    sign = pool(*sizes, seed=order)
    rows, test = choose(sign, 2 * half, seed=seed, balanced=True, P_test=2 * half_test, what="pool")
    assert sign[rows].tolist() == [1] * half + [-1] * half
    assert sign[test].tolist() == [1] * half_test + [-1] * half_test
    assert len(set(rows) | set(test)) == 2 * (half + half_test)
    assert (np.diff(rows[:half]) > 0).all()
    assert (np.diff(rows[half:]) > 0).all()
    if seed is None:
        assert rows[:half].tolist() == np.flatnonzero(sign > 0)[:half].tolist()
        assert test[:half_test].tolist() == np.flatnonzero(sign > 0)[half : half + half_test].tolist()


@settings(max_examples=60, deadline=None)
@given(P=st.integers(20, 30), P_test=st.sampled_from([0, 10]), seed=st.none() | st.integers(0, 2**63))
def test_rows_as_they_come(P, P_test, seed):
    sign = pool(30, 18, 15)
    rows, test = choose(sign, P, seed=seed, balanced=False, P_test=P_test, what="pool")
    assert (len(rows), len(test)) == (P, P_test)
    assert not set(rows) & set(test)
    assert (sign[rows] != 0).all()
    assert (sign[test] != 0).all()
    if seed is None:
        assert np.concatenate([rows, test]).tolist() == np.flatnonzero(sign)[: P + P_test].tolist()


def test_seeded_subsets_are_nested_reproducible_and_unlike_each_other():
    sign = pool(200, 200, 50)

    def chosen(P, seed, **more):
        return set(choose(sign, P, seed=seed, balanced=True, what="pool", **more)[0])

    assert chosen(50, 3) < chosen(100, 3)
    assert chosen(50, 3) == chosen(50, 3, P_test=20)
    assert chosen(50, 3) != chosen(50, 4)


def test_every_row_is_as_likely_as_any_other():
    """chi^2 over 40 rows of 500 seeded subsets of 10; 40 - 2 degrees of freedom, threshold at a false-alarm rate of 1e-4."""
    sign = pool(20, 20, 0)
    counts = np.zeros(40)
    for seed in range(500):
        counts[choose(sign, 10, seed=seed, balanced=True, what="pool")[0]] += 1
    # Without replacement a count has variance n p (1 - p) m/(m - 1) summed over m = 20 rows of a class: scale to chi^2.
    chi2 = ((counts - 125) ** 2).sum() / (500 * 0.25 * 0.75) * 19 / 20
    assert chi2 < 80.0  # chi2.ppf(1 - 1e-4, 38) = 79.9
    counts[0] += 125  # negative control: one row twice as likely
    assert ((counts - 125) ** 2).sum() / (500 * 0.25 * 0.75) * 19 / 20 > 80.0


def test_all_rows():
    sign = pool(7, 5, 3)
    rows, _ = choose(sign, None, seed=None, balanced=False, what="pool")
    assert rows.tolist() == np.flatnonzero(sign).tolist()
    rows, test = choose(sign, None, seed=None, balanced=True, P_test=4, what="pool")
    assert (len(rows), len(test)) == (6, 4)


@pytest.mark.parametrize(
    ("P", "more", "error", "message"),
    [
        (5, {"balanced": True}, InputError, "P = 5 is odd"),
        (4, {"balanced": True, "P_test": 3}, InputError, "P_test = 3 is odd"),
        (12, {"balanced": True}, TooFew, r"P = 12 needs 6 patterns of class -1, and pool has 5"),
        (13, {"balanced": False}, TooFew, r"P = 13 needs 13 patterns, and pool has 12"),
        (10, {"balanced": False, "P_test": 3}, TooFew, r"P = 10 with P_test = 3 needs 13 patterns, and pool has 12"),
        (None, {"balanced": True, "P_test": 10}, TooFew, "P = all with P_test = 10"),
    ],
)
def test_too_many(P, more, error, message):
    with pytest.raises(error, match=message):
        choose(pool(7, 5, 3), P, seed=None, what="pool", **more)


def test_one_class_only():
    sign = np.array([1, 1, 1, 1, -1, -1], dtype=np.int8)
    with pytest.raises(InputError, match=r"P = 3: every row chosen from pool is of class \+1"):
        choose(sign, 3, seed=None, balanced=False, what="pool")
    with pytest.raises(InputError, match="P_test = 1: every row"):
        choose(sign, 5, seed=None, balanced=False, P_test=1, what="pool")


def test_provenance_of_rows():
    short = describe_rows(np.array([4, 9]), np.array([1, -1]), seed=None, balanced=True)
    assert short["indices"] == [4, 9]
    assert (short["count"], short["positives"]) == (2, 1)
    long = describe_rows(np.arange(500), np.ones(500), seed=7, balanced=False)
    assert "indices" not in long
    assert "seed 7" in long["rule"]
    assert len(long["sha256"]) == 64


def test_global_standardisation_is_one_scalar_each():
    X = np.random.default_rng(1).integers(0, 255, (9, 5)).astype(np.uint8)
    scaling = Scaling.of(X, "global")
    Z = scaling.apply(X)
    assert Z.mean() == pytest.approx(0, abs=1e-14)
    assert (Z**2).mean() == pytest.approx(1)
    np.testing.assert_allclose(Z * X.astype(float).std() + X.mean(), X, atol=1e-11)
    assert abs(Z.mean(axis=0)).max() > 0.1


def test_standardisation_per_feature_leaves_constant_inputs_centred():
    X = np.random.default_rng(2).standard_normal((50, 4))
    X[:, 2] = 0.1  # 0.1 fifty times has a mean that rounding moves: still exactly 0 afterwards
    Z = Scaling.of(X, "per feature").apply(X)
    assert (Z[:, 2] == 0).all()
    np.testing.assert_allclose(Z[:, [0, 1, 3]].std(axis=0), 1, rtol=1e-12)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-14)
    assert Scaling.of(X, "feature").apply(X + 1)[0, 2] == pytest.approx(1)


def test_no_standardisation_and_errors():
    X = np.random.default_rng(3).standard_normal((5, 3))
    assert (Scaling.of(X, "none").apply(X) == X).all()
    with pytest.raises(InputError, match="choose from global, feature, none"):
        Scaling.of(X, "zscore")
    with pytest.raises(InputError, match="everywhere"):
        Scaling.of(np.full((4, 3), 7.0), "global")
    with pytest.raises(InputError, match="all rows of X are equal"):
        Scaling.of(np.tile(X[0], (4, 1)), "feature")
