"""Distance, predictor, Eq. (1) and weights: dense algebra, exact linear networks, limits, invariances, the naive tensor."""

import numpy as np
import pytest

import theory
from data.problem import Dataset, Problem, contrast
from theory import Spectrum, distance, predictor
from theory.similarity import similarity
from theory.weights import WeightTheory


def dataset(P=9, N0=5, plus=3, seed=0):
    rng = np.random.default_rng(seed)
    classes = np.where(np.arange(P) < plus, 1.0, -1.0)
    return Dataset(rng.normal(size=(P, N0)) + 0.4 * classes[:, None], rng.normal(size=P) + classes, classes)


def problem(**changes):
    base = {"N1": 6, "T": 0.2, "lambda0": 1.3, "lambda1": 0.7, "activation": "erf"}
    return Problem(changes.pop("dataset", dataset()), **(base | changes))


def test_terms_against_dense_algebra_with_unbalanced_classes():
    p = problem()
    s = Spectrum.of(p.dataset, "erf", 1.3)
    Q, a, y, K = 1.7, p.a, p.dataset.y, s.K
    inverse = np.linalg.inv(0.2 * np.eye(9) + Q / 0.7 * K)
    found = distance.terms(s, Q, 6, 0.2, 0.7)
    assert found.prior == pytest.approx(6 * a @ K @ a)
    assert found.delta1 == pytest.approx(Q / 0.7 * a @ K @ inverse @ K @ a)
    assert found.delta2 == pytest.approx(Q / 0.7 * (a @ K @ inverse @ y) ** 2)
    assert found.fbar_a == pytest.approx(Q / 0.7 * a @ K @ inverse @ y)
    assert found.delta2 == pytest.approx(0.7 / Q * found.fbar_a**2)
    G = similarity(s, Q, 6, 0.2, 0.7)
    assert 6 * a @ G @ a == pytest.approx(found.eq3), "<D^2> is N1 a^T <s s^T> a with Eq. (1)"
    many = distance.terms(s, np.array([0.5, Q]), 6, 0.2, 0.7)
    assert many.delta1[1] == pytest.approx(found.delta1)
    assert distance.normalise(3.0, P=9, N1=6, eta=1, delta=0.5) == pytest.approx(3.0 / 6 * 9)


def test_held_out_manifolds_at_the_training_points_are_the_training_manifolds():
    p = problem()
    s = Spectrum.of(p.dataset, "erf", 1.3)
    X = p.dataset.X.copy()
    test = distance.terms(s, 1.7, 6, 0.2, 0.7, X=X, classes=p.dataset.classes)
    train = distance.terms(s, 1.7, 6, 0.2, 0.7)
    for name in ("prior", "delta1", "delta2", "fbar_a"):
        assert getattr(test, name) == pytest.approx(getattr(train, name), rel=1e-9), name
    np.testing.assert_allclose(predictor.mean(s, 1.7, 0.2, 0.7, X), predictor.mean(s, 1.7, 0.2, 0.7), rtol=1e-9)
    np.testing.assert_allclose(predictor.variance(s, 1.7, 0.2, 0.7, X), predictor.variance(s, 1.7, 0.2, 0.7), rtol=1e-7)
    np.testing.assert_allclose(similarity(s, 1.7, 6, 0.2, 0.7, X=X), similarity(s, 1.7, 6, 0.2, 0.7), rtol=1e-9)
    block = np.array([0, 4, 8])
    np.testing.assert_allclose(
        similarity(s, 1.7, 6, 0.2, 0.7, block=block), similarity(s, 1.7, 6, 0.2, 0.7)[np.ix_(block, block)]
    )


def test_predictor_is_gaussian_process_regression():
    s = Spectrum.of(dataset(), "erf", 1.3)
    X = np.random.default_rng(1).normal(size=(4, 5))
    K0, K = predictor.cross(s, X), s.K
    inverse = np.linalg.inv(0.2 * np.eye(9) + K)
    np.testing.assert_allclose(predictor.mean(s, 1.0, 0.2, 1.0, X), K0 @ inverse @ s.dataset.y)
    own = s.activation.diagonal((X**2).sum(1) / (1.3 * 5))
    np.testing.assert_allclose(predictor.variance(s, 1.0, 0.2, 1.0, X), own - np.einsum("ij,jk,ik->i", K0, inverse, K0))


def importance(p, draws=400_000, seed=0):
    """Exact <D^2>, <Q> and <w w> of a tiny network by self-normalised importance sampling of the first layer, with errors."""
    rng = np.random.default_rng(seed)
    data, rows = p.dataset, []
    for _ in range(20):
        w = rng.normal(size=(draws // 20, p.N1, p.N0)) / np.sqrt(p.lambda0)
        h = w @ data.X.T / np.sqrt(p.N0)
        s = h  # linear
        A = np.einsum("dip,diq->dpq", s, s) / (p.lambda1 * p.N1) + p.T * np.eye(p.P)
        logdet = np.linalg.slogdet(A)[1]
        b = np.linalg.solve(A, np.broadcast_to(data.y, (len(A), p.P))[..., None])[..., 0]
        log_weight = -0.5 * logdet - 0.5 * (b * data.y).sum(1)
        rows.append(
            (
                log_weight,
                ((s @ p.a) ** 2).sum(1),
                w[:, :, 0] ** 2 @ np.ones(p.N1) / p.N1,
                (w[:, :, 0] * w[:, :, 1]).mean(1),
            )
        )
    log_weight, *values = (np.concatenate(column) for column in zip(*rows, strict=True))
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    means = [float(weight @ v) for v in values]
    return means, [float(np.sqrt((weight**2) @ (v - m) ** 2)) for v, m in zip(values, means, strict=True)]


def test_level_3_and_averaged_weights_are_exact_for_a_linear_network():
    """P = 4, N1 = 3: level 3 and <w w> averaged over p(Q|y) within 4.5 sigma of exact; level 2 and Eq. (4) are far outside."""
    rng = np.random.default_rng(2)
    classes = np.array([1.0, -1.0, -1.0, -1.0])
    p = problem(dataset=Dataset(rng.normal(size=(4, 3)), 1.5 * classes, classes), N1=3, activation="linear", T=0.3)
    found = theory.predict(p)
    (d2, w00, w01), (d2_se, w00_se, w01_se) = importance(p)
    assert abs(found.q.level3 - d2) < 4.5 * d2_se
    assert abs(found.levels["eq3"].value - d2) > 4.5 * d2_se
    assert abs(found.levels["eq4"].value - d2) > 4.5 * d2_se
    ww = found.weight_correlations(averaged=True)
    assert abs(ww[0, 0] - w00) < 4.5 * w00_se
    assert abs(ww[0, 1] - w01) < 4.5 * w01_se
    at_saddle = found.weight_correlations()
    assert abs(at_saddle[0, 0] - w00) > 4.5 * w00_se, "the control: fluctuations of Q matter at N1 = 3"


def test_weights_against_the_naive_tensor():
    """sum_mn M_mn E[d^2/dw_h dw_k of s_m s_n] with the P x P x N0 x N0 tensor, and every way to ask for parts."""
    p = problem(dataset=dataset(P=5, N0=4))
    s = Spectrum.of(p.dataset, "erf", 1.3)
    Q, X, T, lambda0, lambda1, N1, N0 = 1.7, p.dataset.X, 0.2, 1.3, 0.7, 6, 4
    theory_ = WeightTheory(s)
    found = theory_.at(Q, N1, T, lambda1)
    inverse = np.linalg.inv(T * np.eye(5) + Q / lambda1 * s.K)
    u = inverse @ p.dataset.y
    # E[(w_h w_k - delta/lambda0) s_m s_n] = E[d_h d_k (s_m s_n)]/lambda0^2, d_h = d/dw_h, dh_m/dw_h = X_mh/sqrt(N0)
    H, Kdot = theory_.h, theory_.kdot
    tensor = np.einsum("mn,mh,mk->mnhk", H, X, X) + np.einsum("mn,nh,nk->mnhk", H.T, X, X)
    tensor = tensor + np.einsum("mn,mh,nk->mnhk", Kdot, X, X) + np.einsum("mn,nh,mk->mnhk", Kdot, X, X)
    for M, Lambda in ((np.outer(u, u), found.Lambda2), (-inverse, found.Lambda1)):
        naive = Q / (2 * lambda1 * lambda0 * N1 * N0) * np.einsum("mn,mnhk->hk", M, tensor)
        np.testing.assert_allclose(Lambda, naive, rtol=1e-10, atol=1e-13)
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 2)))[0]
    np.testing.assert_allclose(
        theory_.at(Q, N1, T, lambda1, basis).Lambda2, basis.T @ found.Lambda2 @ basis, atol=1e-13
    )
    first, second = theory_.components([(0, 3), (2, 2)], Q, N1, T, lambda1)
    np.testing.assert_allclose(first, [found.Lambda1[0, 3], found.Lambda1[2, 2]])
    np.testing.assert_allclose(second, [found.Lambda2[0, 3], found.Lambda2[2, 2]])
    summary = theory_.summary(Q, N1, T, lambda1)
    assert summary["lambda1_trace"] == pytest.approx(np.trace(found.Lambda1))
    assert summary["lambda2_frobenius"] == pytest.approx(np.linalg.norm(found.Lambda2))


def everything(p):
    cell = theory.predict(p).to_dict()
    return {"Qbar": cell["Qbar"], **cell["levels"], **cell["weights"]}


@pytest.mark.parametrize("activation", ["erf", "tanh"])
def test_invariances(activation):
    """physics.md 5.6: labels, inputs, rotations, the order of patterns."""
    p = problem(activation=activation)
    base, data, c = everything(p), p.dataset, 3.0
    labels = p.replace(dataset=data.replace(y=c * data.y), T=c**2 * p.T, lambda1=p.lambda1 / c**2)
    inputs = p.replace(dataset=data.replace(X=c * data.X), lambda0=c**2 * p.lambda0)
    rotation = np.linalg.qr(np.random.default_rng(3).normal(size=(5, 5)))[0]
    turned = p.replace(dataset=data.replace(X=data.X @ rotation))
    order = np.random.default_rng(4).permutation(9)
    shuffled = p.replace(dataset=data.replace(X=data.X[order], y=data.y[order], classes=data.classes[order]))
    for other in (labels, inputs, turned, shuffled):
        for name, value in everything(other).items():
            assert value == pytest.approx(base[name], rel=1e-8), name
    wrong = p.replace(dataset=data.replace(y=c * data.y), T=c**2 * p.T)
    assert everything(wrong)["eq3"] != pytest.approx(base["eq3"], rel=1e-3), "the control: lambda1 left alone"


def test_limits_and_special_labels():
    hot = theory.predict(problem(T=1e9))
    assert hot.levels["eq3"].value == pytest.approx(hot.prior, rel=1e-6)
    np.testing.assert_allclose(hot.weight_correlations(), np.eye(5) / 1.3, atol=1e-6)
    silent = theory.predict(problem(dataset=dataset().replace(y=np.zeros(9))))
    assert silent.delta2 == 0
    assert silent.levels["eq3"].value == pytest.approx(silent.prior - silent.delta1)
    cold = theory.predict(problem(T=0.0))
    assert cold.fbar_a == pytest.approx(float(contrast(cold.problem.dataset.classes) @ cold.problem.dataset.y)), (
        "T = 0 interpolates"
    )


def test_a_grid_is_its_cells_and_costs_one_eigendecomposition(monkeypatch):
    calls = []
    original = np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda *a, **k: (calls.append(1), original(*a, **k))[1])
    grid = theory.predict_grid(dataset(), N1=[4, 8], T=[0.1, 1.0], lambda1=[0.7, 2.0], lambda0=1.3)
    assert len(calls) == 1
    assert [(c.problem.N1, c.problem.T, c.problem.lambda1) for c in grid[:3]] == [
        (4, 0.1, 0.7),
        (4, 0.1, 2.0),
        (4, 1.0, 0.7),
    ]
    for cell in grid:
        alone = theory.predict(cell.problem)
        assert cell.levels["eq3_q_averaged"].value == pytest.approx(alone.levels["eq3_q_averaged"].value, rel=1e-12)


def test_a_grid_takes_any_iterable_and_refuses_an_empty_one():
    from data.errors import InputError

    once = theory.predict_grid(dataset(), N1=iter([4, 8]), T=iter([0.1, 1.0]), lambda1=iter([0.7, 2.0]))
    assert len(once) == 8
    with pytest.raises(InputError, match="grid is empty"):
        theory.predict_grid(dataset(), N1=[4], T=[])


def test_golden_numbers_on_the_embedded_digits():
    """Three cells of reference/digits_even_odd.json, frozen here so that a clone without it is still held to them."""
    from data.registry import load

    golden = {
        (50, 0.01): (2.1310274721782285, 7.3489276240487, 7.238452917991332, 7.248399887216786),
        (50, 10): (0.9759141993218129, 5.696322619432383, 5.667489390734369, 5.665718759144711),
        (100, 0.1): (1.217471912942669, 13.668475224399604, 13.560740042497073, 13.582573835753303),
    }
    digits = load("digits", classes="even/odd", P=100)
    for (N1, T), expected in golden.items():
        found = theory.predict(Problem(digits, N1, T))
        seen = (found.Qbar, *(found.levels[name].value for name in ("eq4", "eq3", "eq3_q_averaged")))
        assert seen == pytest.approx(expected, rel=1e-8)
    cold = theory.predict(Problem(digits, 50, 0.01))
    assert cold.fbar_a == pytest.approx(1.967196739284421, rel=1e-8)
    assert cold.q.sd == pytest.approx(0.20609746425839873, rel=1e-8)
    assert cold.y_K_y_over_P == pytest.approx(2.7664832576733334, rel=1e-8)
    assert cold.weights == pytest.approx(
        {
            "lambda1_trace": -1.4524689503000692,
            "lambda1_frobenius": 0.30517975823628485,
            "lambda2_trace": 3.0656173226715318,
            "lambda2_frobenius": 1.250359868595666,
        },
        rel=1e-8,
    )
    pairs = [(0, 0), (0, 1), (1, 2)]
    first, second = cold.weight_theory.components(pairs, cold.Qbar, 50, 0.01)
    assert first == pytest.approx([0.0024040763080661687, 0.0024812000886488992, -0.0013959086115340245], rel=1e-8)
    assert second == pytest.approx([-0.0007279566135358205, -0.00042375166263143485, 0.007159845888488443], rel=1e-8)


def test_a_cell_of_json():
    """The keys of design.md, as plain JSON; level 4 with its error where it was asked for."""
    import json

    from theory.first_order import Settings

    cell = theory.predict(problem(), first_order=Settings(samples=2000)).to_dict()
    assert json.loads(json.dumps(cell)) == cell
    assert cell["problem"]["fingerprint"] == problem().fingerprint
    assert set(cell) >= {"problem", "Qbar", "prior", "delta1", "delta2", "fbar_a", "levels", "weights"}
    assert set(cell["levels"]) == {"infinite_width", "eq4", "eq3", "eq3_q_averaged", "first_order"}
    assert set(cell["levels"]["first_order"]) == {"value", "se"}
    assert set(cell["weights"]) == {"lambda1_trace", "lambda2_trace", "lambda1_frobenius", "lambda2_frobenius"}
    assert "first_order" not in theory.predict(problem()).to_dict()["levels"]
