"""The targets: hand-written gradients against automatic differentiation, both Gram forms, float32, invariances, readout draws."""

import math

import numpy as np
import pytest
import torch

from data.errors import InputError
from data.problem import Dataset, Problem
from sampling import observables
from sampling.model import Model, factor, spd_inverse
from sampling.posterior import Collapsed, Joint, unpack
from sampling.protocol import Streams
from sampling.starts import readout

SHAPES = [(12, 20, 7), (9, 5, 14), (10, 10, 10)]  # (P, N0, N1): N1 < P, N1 > P with rank N0, N1 = P
KINDS = ["prior", "aligned", "zero"]


def problem(P=12, N0=20, N1=7, activation="erf", T=0.3, seed=0, **changes):
    rng = np.random.default_rng(seed)
    classes = np.where(np.arange(P) < P // 3, 1.0, -1.0)
    data = Dataset(rng.normal(size=(P, N0)), rng.normal(size=P), classes)
    return Problem(data, N1, T, **({"lambda0": 1.3, "lambda1": 0.7, "activation": activation} | changes))


def direct_logp(target, position):
    """The log-density written the plain way: dense covariance or explicit residual, for automatic differentiation."""
    model = target.model
    s = model.sigma.sigma(position[..., : model.r] @ model.R.T)
    if isinstance(target, Collapsed):
        A = s.mT @ s / model.scale + model.T * torch.eye(model.P, dtype=torch.float64)
        loglik = torch.distributions.MultivariateNormal(torch.zeros(model.P, dtype=torch.float64), A).log_prob(model.y)
    else:
        f = (position[..., model.r :] * s).sum(-2) / math.sqrt(model.scale)
        loglik = -((model.y - f) ** 2).sum(-1) / (2 * model.T)
    return loglik - 0.5 * (position**2).sum((-2, -1))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("activation", ["erf", "linear", "tanh", "sin"])
@pytest.mark.parametrize("kind", [Collapsed, Joint])
def test_value_and_gradient_are_those_of_automatic_differentiation(kind, activation, shape):
    target = kind.of(problem(*shape, activation=activation))
    position = target.initial(KINDS, Streams(1, 3))
    leaf = position.clone().requires_grad_()
    expected = direct_logp(target, leaf)
    expected.sum().backward()
    value, grad = target.value_and_grad(position)
    torch.testing.assert_close(value, expected.detach(), rtol=1e-12, atol=1e-10)
    torch.testing.assert_close(grad, leaf.grad, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("T", [1e-4, 1e-2, 1.0, 100.0])
def test_the_two_gram_forms_agree(T):
    """N1 x N1 and P x P are the same function; forced by lying about which one is smaller."""

    class Other(Model):
        wide = property(lambda self: self.N1 < self.P)

    model = Model.of(problem(T=T))
    other = Other(**{name: getattr(model, name) for name in model.__dataclass_fields__})
    g = torch.randn((4, model.N1, model.r), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for left, right in zip(Collapsed(model).likelihood(g), Collapsed(other).likelihood(g), strict=True):
        torch.testing.assert_close(left, right, rtol=1e-7, atol=1e-7)
    first, second = (Collapsed(m).observe(g) for m in (model, other))
    for name in first:
        torch.testing.assert_close(first[name], second[name], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_float32_is_float64_to_single_precision(shape):
    p = problem(*shape)
    single, double = Collapsed.of(p, dtype=torch.float32), Collapsed.of(p)
    g = double.initial(KINDS, Streams(2, 3))
    (v32, g32), (v64, g64) = single.value_and_grad(g.float()), double.value_and_grad(g)
    assert v32.dtype == torch.float64
    torch.testing.assert_close(v32, v64, rtol=1e-5, atol=1e-4)
    torch.testing.assert_close(g32.double(), g64, rtol=1e-3, atol=1e-3)


def test_a_wrong_temperature_is_another_density():
    """Negative control of the agreement above: T/2 must not pass for T."""
    right, wrong = (Collapsed.of(problem(T=T)) for T in (0.3, 0.15))
    g = right.initial(KINDS, Streams(1, 3))
    assert (right.value_and_grad(g)[0] - wrong.value_and_grad(g)[0]).abs().min() > 0.1


@pytest.mark.parametrize("shape", SHAPES)
def test_observables_are_averages_over_the_exact_readout(shape):
    """Rao-Blackwellised Q, a.f and residual against 20,000 exact readout draws at one first layer: 5 sigma each."""
    target = Collapsed.of(problem(*shape))
    model = target.model
    g = target.initial(["prior"], Streams(3, 1))
    draws = 20_000
    x = readout(model, g.expand(draws, -1, -1), _OneStream(draws))
    _, s = model.features(g[0])
    f = x @ s / math.sqrt(model.scale)
    a = torch.tensor(model.problem.a)
    seen = {
        "Q": (x**2).mean(-1),
        "fbar_a": f @ a,
        "residual": ((model.y - f) ** 2).sum(-1),
    }
    exact = target.observe(g)
    for name, values in seen.items():
        se = values.std() / math.sqrt(draws)
        assert abs(values.mean() - exact[name][0]) < 5 * se, name
    plug_in = (x.mean(0) ** 2).mean()  # the readout's spread forgotten: must be seen
    assert abs(plug_in - exact["Q"][0]) > 5 * seen["Q"].std() / math.sqrt(draws)


class _OneStream:
    """Streams look-alike that draws all chains at once (20,000 generators would be slow)."""

    def __init__(self, chains):
        self.chains, self.generator = chains, torch.Generator().manual_seed(5)

    def normal(self, shape, dtype):
        return torch.randn((self.chains, *shape), generator=self.generator, dtype=dtype)


def test_stein_variates_are_the_generator_of_their_test_functions():
    """L q = Laplacian q + grad log p . grad q, by automatic differentiation of q, for all six."""
    target = Collapsed.of(problem(5, 4, 3))
    model, tools = target.model, target.instruments
    g = target.initial(["prior"], Streams(4, 1))
    grad = target.value_and_grad(g)[1]
    h, s = model.features(g)
    seen, _ = observables.stein_variates(model, tools, h, s, model.sigma.first(h, s), grad)

    def units(flat):
        h = flat.view(model.N1, model.r) @ model.R.T
        return [model.sigma.sigma(h) @ tools.a, h @ tools.a, h @ tools.ridge]

    pairs = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
    for name, (j, k) in zip(observables.STEIN, pairs, strict=True):

        def q(flat, j=j, k=k):
            c = units(flat)
            return (c[j] * c[k]).sum()

        flat = g.flatten()
        slope = torch.autograd.functional.jacobian(q, flat)
        hessian = torch.autograd.functional.hessian(q, flat)
        expected = hessian.trace() + slope @ grad.flatten()
        torch.testing.assert_close(seen[name][0], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_loglik_at_other_temperatures(shape):
    g = Collapsed.of(problem(*shape)).initial(KINDS, Streams(6, 3))
    temperatures = [0.01, 0.3, 5.0]
    table = observables.loglik_at(Model.of(problem(*shape)), g, temperatures)
    for column, T in enumerate(temperatures):
        model = Model.of(problem(*shape, T=T))
        torch.testing.assert_close(table[:, column], factor(model, model.features(g)[1]).loglik, rtol=1e-8, atol=1e-8)


def test_invariances():
    """physics.md 5.6: (y, T, lambda1) -> (c y, c^2 T, lambda1/c^2); (X, lambda0) -> (c X, c^2 lambda0); units."""
    base = problem()
    g = Collapsed.of(base).initial(KINDS, Streams(7, 3))
    value = Collapsed.of(base).likelihood(g)[0]
    c = 3.0
    data = base.dataset
    labels = base.replace(dataset=data.replace(y=c * data.y), T=c * c * base.T, lambda1=base.lambda1 / c**2)
    shift = base.P * math.log(c)  # the density of c y is 1/c^P that of y
    torch.testing.assert_close(Collapsed.of(labels).likelihood(g)[0] + shift, value)
    inputs = Collapsed.of(base.replace(dataset=data.replace(X=c * data.X), lambda0=c * c * base.lambda0))
    torch.testing.assert_close(inputs.model.R.abs(), Collapsed.of(base).model.R.abs())
    flipped = -g.flip(1)
    torch.testing.assert_close(Collapsed.of(base).likelihood(flipped)[0], value)


def test_joint_integrates_to_collapsed():
    """log p(g, x) - log p(g) = log N(x; mean, cov): -log det(2 pi cov)/2 with x at its mean."""
    p = problem()
    joint, collapsed = Joint.of(p), Collapsed.of(p)
    g = collapsed.initial(["prior"], Streams(8, 1))
    model = collapsed.model
    _, s = model.features(g)
    gram = factor(model, s)
    mean = (s @ gram.b.unsqueeze(-1)).squeeze(-1) / math.sqrt(model.scale)
    precision = torch.eye(model.N1, dtype=torch.float64) + s[0] @ s[0].T / (model.scale * model.T)
    position = torch.cat([g, mean.unsqueeze(-1)], -1)
    assert torch.equal(unpack(position).v, mean)
    # the joint leaves out its constants: -N1/2 log 2 pi from the readout's prior, -P/2 log(2 pi T) from the likelihood
    constants = -0.5 * model.N1 * math.log(2 * math.pi) - 0.5 * model.P * math.log(2 * math.pi * model.T)
    ratio = joint.value_and_grad(position)[0] + constants - collapsed.value_and_grad(g)[0]
    expected = 0.5 * torch.logdet(precision) - 0.5 * model.N1 * math.log(2 * math.pi)
    torch.testing.assert_close(ratio[0], expected)


def test_zero_temperature_is_refused():
    with pytest.raises(InputError, match="T > 0"):
        Collapsed.of(problem(T=0.0))


def test_unknown_names_are_refused():
    with pytest.raises(InputError, match="did you mean 'erf'"):
        Model.of(problem(activation="erff"))
    with pytest.raises(InputError, match="starts: 'warm'"):
        Collapsed.of(problem()).initial(["warm"], Streams(0, 1))


@pytest.mark.parametrize("activation", ["erf", "linear", "tanh", "sin"])
@pytest.mark.parametrize("N1", [40, 150])
def test_the_float32_kick_is_the_force(activation, N1):
    """P = 130, so that the inverse goes through two levels of blocks in either form; T = 1 keeps float32 near its rounding."""
    rng = np.random.default_rng(3)
    y = np.where(np.arange(130) < 65, 1.0, -1.0)
    target = Collapsed.of(Problem(Dataset(rng.normal(size=(130, 20)), y, y), N1, 1.0, activation=activation))
    g = torch.tensor(rng.normal(size=(3, N1, target.model.r)))
    force, kick = target.likelihood(g)[1], target.kick(g)
    assert kick.dtype == torch.float64
    assert float((kick - force).norm() / force.norm()) < 1e-4
    assert float((kick - 1.01 * force).norm() / force.norm()) > 1e-3, "the comparison must see one per cent"


def test_the_block_inverse_is_the_inverse():
    rng = np.random.default_rng(4)
    for n in (5, 61, 150):
        root = torch.tensor(rng.normal(size=(2, n, n)))
        A = root @ root.mT / n + 0.1 * torch.eye(n, dtype=torch.float64)
        torch.testing.assert_close(
            spd_inverse(A) @ A, torch.eye(n, dtype=torch.float64).expand(2, n, n), rtol=0, atol=1e-10
        )
    A[1, 100, 100] = -1.0
    assert torch.isnan(spd_inverse(A)).any(dim=(-2, -1)).tolist() == [False, True]
