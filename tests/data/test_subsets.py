"""Several data subsets: disjoint blocks of one seed, overlapping draws where the data are few, fresh draws of synthetic sets."""

import itertools

import numpy as np
import pytest

from data.errors import InputError
from data.registry import load
from data.subsets import DISJOINT, GENERATED, OVERLAPPING, seeds, subsets


def indices(dataset, key="rows"):
    return dataset.provenance[key]["indices"]


def test_disjoint_subsets_share_no_pattern_and_each_is_balanced():
    found, how = subsets("digits", 6, seed=4, P=40, P_test=20)
    assert how == DISJOINT
    every = [set(indices(one)) | set(indices(one, "test")) for one in found]
    assert all(len(one) == 60 for one in every), "training and test rows of a subset are disjoint too"
    assert not any(one & other for one, other in itertools.combinations(every, 2))
    assert all(one.y.sum() == 0 for one in found)
    assert all(abs(one.X.mean()) < 1e-12 and abs(one.X.std() - 1) < 1e-12 for one in found), (
        "each scaled by its own rows"
    )


def test_the_first_block_is_the_subset_that_the_seed_alone_gives():
    first = subsets("digits", 3, seed=4, P=40)[0][0]
    assert first.fingerprint == load("digits", P=40, seed=4).fingerprint
    assert subsets("digits", 5, seed=4, P=40)[0][2].fingerprint == subsets("digits", 3, seed=4, P=40)[0][2].fingerprint


def test_too_few_patterns_give_overlapping_draws_that_differ():
    found, how = subsets("digits", 3, P=1000)
    assert how == OVERLAPPING
    assert len({one.fingerprint for one in found}) == 3
    assert [one.provenance["rows"]["seed"] for one in found] == seeds(0, 3)


def test_a_file_of_the_user_is_cut_in_disjoint_blocks(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "mine.npz", X=rng.normal(size=(30, 4)), y=np.tile([1.0, -1.0], 15))
    found, how = subsets(tmp_path / "mine.npz", 3, P=10)
    assert how == DISJOINT
    rows = np.concatenate([one.X for one in found])
    assert len(np.unique(rows, axis=0)) == 30
    assert subsets(tmp_path / "mine.npz", 4, P=10)[1] == OVERLAPPING


def test_synthetic_sets_are_generated_anew():
    found, how = subsets("gaussian:N0=5", 3, seed=1, P=10)
    assert how == GENERATED
    assert len({one.fingerprint for one in found}) == 3
    with pytest.raises(InputError, match="another seed"):
        load("gaussian", P=10, part=1)


@pytest.mark.parametrize("bad", [{"count": 0, "P": 10}, {"count": 2}, {"count": 2, "P": 10, "seed": -1}])
def test_what_is_refused(bad):
    with pytest.raises(InputError):
        subsets("digits", bad.pop("count"), **bad)
