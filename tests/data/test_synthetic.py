"""Synthetic sets: their law, their streams, and the network teacher as an exact posterior draw."""

import math

import numpy as np
import pytest
from scipy import stats

from data import InputError, Problem, load, names
from data.synthetic import clusters, gaussian, linear_teacher, network_teacher
from data.teacher import digest

ALL = [gaussian, clusters, linear_teacher, network_teacher]
ALARM = 1e-4  # false-alarm rate of each statistical check below; seeds are fixed


@pytest.mark.parametrize("make", ALL)
def test_reproducible_with_prefixes_and_independent_test_rows(make):
    more = {} if make is network_teacher else {"balanced": False}
    data = make(40, 7, seed=5, **more)
    assert (data.P, data.N0) == (40, 7)
    assert data.fingerprint == make(40, 7, seed=5, **more).fingerprint
    assert data.fingerprint != make(40, 7, seed=6, **more).fingerprint
    with_test = make(40, 7, seed=5, P_test=12, **more)
    assert with_test.fingerprint == data.fingerprint
    assert with_test.X_test.shape == (12, 7)
    assert not np.isin(with_test.X_test, data.X).any()
    longer = make(60, 7, seed=5, **more)
    assert (longer.X[:40] == data.X).all()
    assert (longer.y[:40] == data.y).all()


@pytest.mark.parametrize("make", ALL[:3])
def test_balanced_by_default_positives_first(make):
    data = make(20, 5, seed=1, P_test=6)
    assert data.y.tolist() == [1.0] * 10 + [-1.0] * 10
    assert data.y_test.tolist() == [1.0] * 3 + [-1.0] * 3
    coins = make(1000, 2, seed=1, balanced=False).y
    assert stats.binomtest(int((coins > 0).sum()), 1000).pvalue > ALARM


def is_standard_normal(values):
    return stats.kstest(np.ravel(values), "norm").pvalue > ALARM


def test_gaussian_entries_are_standard_normal():
    assert is_standard_normal(gaussian(200, 50).X)
    assert gaussian().N0 == 100


def test_clusters_have_their_centres_at_plus_and_minus_signal_m():
    data = clusters(400, 30, signal=0.7, seed=2)
    m = np.sign(data.y @ data.X)
    along = data.X * data.y[:, None] * m  # signal + N(0, 1), whatever the signs
    assert is_standard_normal(along - 0.7)
    assert not is_standard_normal(along - 0.6)  # negative control: a wrong signal
    C = np.outer(data.y, data.y) * (data.X @ data.X.T) / 30
    # The mean over pairs is 0.49 + 2 (0.7) m.g/(20 x 30) to leading order, g ~ N(0, 1): standard error 0.0128; 3.9 of them.
    assert C[np.triu_indices(400, 1)].mean() == pytest.approx(0.49, abs=0.05)
    assert clusters(10, 5, signal=0).P == 10


@pytest.mark.parametrize("balanced", [True, False])
def test_linear_teacher_separates_and_inputs_stay_gaussian(balanced):
    """Labels are those of a linear rule: a perceptron finds a separating direction. Reflection keeps the law of x."""
    data = linear_teacher(200, 8, seed=3, balanced=balanced, P_test=40)
    assert is_standard_normal(data.X)
    w = np.zeros(8)
    for _ in range(20000):
        wrong = np.flatnonzero(data.y * (data.X @ w) <= 0)
        if not len(wrong):
            break
        w += data.y[wrong[0]] * data.X[wrong[0]]
    assert (data.y * (data.X @ w) > 0).all()
    assert (data.y_test * (data.X_test @ w) > 0).mean() > 0.9


def test_network_teacher_is_the_model_of_the_posterior():
    """y = f(X) + sqrt(T) noise with f written out here by sums over units, noise and weights of the stated laws."""
    data = network_teacher(300, 6, N1=4, T=0.3, lambda0=2.0, lambda1=0.5, activation="tanh", seed=1, P_test=20)
    w, v = data.teacher.w, data.teacher.v
    f = np.array([sum(v[i] * math.tanh(w[i] @ x / math.sqrt(6)) for i in range(4)) / 2.0 for x in data.X])
    assert is_standard_normal((data.y - f) / math.sqrt(0.3))
    assert not is_standard_normal((data.y - f) / 0.3)  # negative control: T for sqrt(T)
    assert (data.classes == np.sign(data.y)).all()
    f_test = data.teacher.f(data.X_test)
    assert is_standard_normal((data.y_test - f_test) / math.sqrt(0.3))
    assert (data.classes_test == np.sign(data.y_test)).all()


@pytest.mark.parametrize("activation", ["erf", "linear", "tanh", "sin"])
def test_teacher_outputs(activation):
    sigma = {"erf": math.erf, "linear": float, "tanh": math.tanh, "sin": math.sin}[activation]
    data = network_teacher(4, 3, N1=2, activation=activation, T=0)
    w, v = data.teacher.w, data.teacher.v
    expected = [sum(v[i] * sigma(w[i] @ x / math.sqrt(3)) for i in range(2)) / math.sqrt(2) for x in data.X]
    np.testing.assert_allclose(data.y, expected, rtol=1e-13)


def test_teachers_are_prior_draws():
    """w ~ N(0, 1/lambda0), v ~ N(0, 1/lambda1), and Var(y) = T + K/lambda1 with K the erf kernel, over 4000 teachers."""
    makes = [network_teacher(40, 2, N1=3, T=0.2, lambda0=1.5, lambda1=0.8, seed=seed) for seed in range(4000)]
    w, v = (np.concatenate([np.ravel(getattr(data.teacher, name)) for data in makes]) for name in ("w", "v"))
    assert is_standard_normal(w * math.sqrt(1.5))
    assert is_standard_normal(v * math.sqrt(0.8))
    C = np.array([(data.X[0] @ data.X[0]) / (2 * 1.5) for data in makes])
    variance = 0.2 + (2 / np.pi) * np.arcsin(2 * C / (1 + 2 * C)) / 0.8
    ratio = np.array([data.y[0] for data in makes]) ** 2 / variance

    def z(values):
        return (values.mean() - 1) / (values.std() / math.sqrt(len(values)))

    limit = stats.norm.isf(ALARM / 2)
    assert abs(z(ratio)) < limit
    assert abs(z(ratio * variance / (variance + 0.1))) > limit  # negative control: T wrong by 0.1


def test_teacher_start_is_handed_out_for_its_own_problem_only():
    data = network_teacher(20, 5, N1=7, T=0.2, lambda0=1.5, lambda1=0.8, activation="sin", seed=4)
    right = {"N1": 7, "T": 0.2, "lambda0": 1.5, "lambda1": 0.8, "activation": "sin"}
    w, v = data.teacher.weights(Problem(data, **right))
    assert (w.shape, v.shape) == ((7, 5), (7,))
    for name, other in (("N1", 8), ("T", 0.1), ("lambda0", 1.0), ("lambda1", 1.0), ("activation", "erf")):
        with pytest.raises(InputError, match=f"the teacher has {name} = "):
            data.teacher.weights(Problem(data, **{**right, name: other}))
    flipped = data.replace(y=data.y[::-1])
    assert flipped.teacher is None
    with pytest.raises(InputError, match="did not make the X and y"):
        data.teacher.weights(Problem(flipped, **right))
    with pytest.raises(InputError, match="teacher did not make this X and y"):
        data.replace(y=data.y[::-1], teacher=data.teacher)
    assert data.replace(name="renamed", classes=-data.classes).teacher is data.teacher
    assert digest(data.X, data.y) == data.teacher.data


def test_by_name_with_parameters():
    data = load("network-teacher:N0=9, N1=4,T=0.5,activation=linear", P=12, seed=3)
    assert data.fingerprint == network_teacher(12, 9, N1=4, T=0.5, activation="linear", seed=3).fingerprint
    assert (data.teacher.N1, data.teacher.T) == (4, 0.5)
    assert load("clusters:signal=2,N0=6", P=8).fingerprint == clusters(8, 6, signal=2.0).fingerprint
    assert load("Gaussian").fingerprint == gaussian().fingerprint
    assert load("linear_teacher", balanced=False, P=30).fingerprint == linear_teacher(30, balanced=False).fingerprint
    assert load("gaussian", standardise="global", P=10, P_test=4).X.std() == pytest.approx(1, rel=1e-14)
    assert {"gaussian", "clusters", "linear-teacher", "network-teacher"} < set(names())


@pytest.mark.parametrize(
    ("name", "more", "message"),
    [
        ("gaussian:M=3", {}, r"cannot read the parameter 'M=3'; it takes N0=..."),
        ("gaussian:P=3", {}, "cannot read the parameter 'P=3'"),
        ("gaussian:N0=many", {}, "N0 = 'many' is not a whole number"),
        ("clusters:signal=x", {}, "signal = 'x' is not a number"),
        ("clusters:signal=nan", {}, "signal = nan"),
        ("gaussian:N0=0", {}, "N0 = 0"),
        ("gaussian", {"P": 11}, "P = 11 is odd"),
        ("clusters", {"P": 10, "P_test": 3}, "P_test = 3 is odd"),
        ("gaussian", {"classes": "0/1"}, "has no class indices"),
        ("network-teacher:T=-1", {}, "T = -1"),
        ("network-teacher:lambda0=0", {}, "lambda0 = 0"),
        ("network-teacher:activation=relu", {}, "activation = 'relu'"),
        ("network-teacher", {"balanced": True}, "cannot be balanced"),
        ("network-teacher", {"standardise": "global"}, "would change the inputs"),
        ("digits:N0=3", {}, "only synthetic sets take parameters"),
    ],
)
def test_bad_parameters(name, more, message):
    with pytest.raises(InputError, match=message):
        load(name, **more)
