"""What every sampler must do as a kernel: protocol, lanes, chain independence, restored adaptation, reversibility, order."""

import importlib
import math

import numpy as np
import pytest
import torch

from data.errors import InputError
from data.problem import Dataset, Problem
from sampling.adaptation import PooledMetric, StepSize
from sampling.hmc import HMC
from sampling.lanes import LaneKernel
from sampling.posterior import Collapsed, Joint
from sampling.protocol import Streams

EXACT = ["hmc", "mala", "underdamped", "gibbs", "tempering"]
ALL = [*EXACT, "langevin"]


def problem(P=8, N0=5, N1=6, T=0.3, activation="erf", seed=0):
    rng = np.random.default_rng(seed)
    classes = np.where(np.arange(P) < P // 2, 1.0, -1.0)
    return Problem(Dataset(rng.normal(size=(P, N0)), classes, classes), N1, T, 1.3, 0.7, activation)


def build(name, warmup=20, target=None, **options):
    target = target or (Joint if name in ("langevin", "mala") else Collapsed).of(problem())
    return importlib.import_module(f"sampling.{name}").build(target, warmup, **options)


def advance(kernel, streams, warmup, draws, kinds=None):
    """Final state and the series of observed scalars."""
    state = kernel.init(kernel.target.initial(kinds or ["prior"] * streams.chains, streams))
    for _ in range(warmup):
        state, info = kernel.step(state, streams)
        state = kernel.adapt(state, info)
    kernel.finish()
    series = []
    for _ in range(draws):
        state, info = kernel.step(state, streams)
        series.append(kernel.observe(state))
    return state, {name: torch.stack([one[name] for one in series], 1) for name in series[0]}


@pytest.mark.parametrize("name", ALL)
def test_every_kernel_has_the_same_shape(name):
    kernel = build(name)
    assert kernel.name == name
    assert kernel.biased == (name == "langevin")
    assert "invariant" in type(kernel).__doc__.lower(), "the docstring must state the density it leaves invariant"
    streams = Streams(0, 4)
    state, series = advance(kernel, streams, 20, 3)
    new, info = kernel.step(state, streams)
    assert {"position", "logp", "grad"} <= set(state._fields)
    assert [field.shape for field in new] == [field.shape for field in state]
    assert info.accept.shape == info.moved.shape == info.nan.shape == (4,)
    assert ((info.accept >= 0) & (info.accept <= 1)).all()
    assert info.gradients >= 1
    # The cached density and gradient are those of the position.
    logp, grad = kernel.target.value_and_grad(new.position)
    torch.testing.assert_close(new.logp, logp)
    torch.testing.assert_close(new.grad, grad)
    for values in series.values():
        assert values.shape == (4, 3)
        assert values.dtype == torch.float64
        assert torch.isfinite(values).all()
    # and the scalars are those of the position
    fresh = kernel.target.observe(new.position)
    for name_, value in kernel.observe(new).items():
        torch.testing.assert_close(value, fresh[name_])


@pytest.mark.parametrize("name", ALL)
def test_adaptation_survives_a_checkpoint_and_settings_are_json(name):
    import json

    kernel = build(name)
    streams = Streams(1, 3)
    state, _ = advance(kernel, streams, 20, 1)
    twin = build(name)
    twin.load_state_dict({key: np.array(value) for key, value in kernel.state_dict().items()})
    stored = streams.state_dict()
    other = Streams(99, 3)
    other.load_state_dict(stored)
    for left, right in zip(kernel.step(state, streams)[0], twin.step(state, other)[0], strict=True):
        assert torch.equal(left, right)
    assert json.loads(json.dumps(kernel.settings())) == json.loads(json.dumps(twin.settings()))


@pytest.mark.parametrize("name", ALL)
def test_lanes_change_nothing(name):
    """To rounding: that of float64, since how a product rounds may depend on how many are batched; so no float32 kicks here."""
    options = {"kicks": "exact"} if name in ("hmc", "tempering") else {}
    serial, laned = build(name, **options), LaneKernel(build(name, **options), 3)
    first = advance(serial, Streams(2, 5), 6, 4)
    second = advance(laned, Streams(2, 5), 6, 4)
    laned.close()
    for left, right in zip(first[0], second[0], strict=True):
        torch.testing.assert_close(left, right, rtol=1e-9, atol=1e-9)
    for key in first[1]:
        torch.testing.assert_close(first[1][key], second[1][key], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("name", ALL)
def test_a_chain_does_not_depend_on_its_neighbours(name):
    """Chain 0 of five is chain 0 of one, while nothing is adapted."""
    many = advance(build(name), Streams(3, 5), 0, 4)[1]
    one = advance(build(name), Streams(3, 1), 0, 4)[1]
    for key in many:
        torch.testing.assert_close(many[key][:1], one[key], rtol=1e-9, atol=1e-9)
    assert not torch.allclose(many["d2"][0], many["d2"][1]), "two chains must not share their noise"


def test_trajectories_retrace_their_steps_and_keep_the_energy_to_second_order():
    kernel = HMC(Collapsed.of(problem()), warmup=0)
    kernel.metric.mass = torch.linspace(0.5, 2.0, kernel.target.model.r, dtype=torch.float64)
    state = kernel.init(kernel.target.initial(["prior"] * 3, Streams(4, 3)))
    p0 = torch.randn(state.position.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    end, p, gain = kernel.trajectory(state, p0, 0.1, 10)
    back, _, loss = kernel.trajectory(end, -p, 0.1, 10)
    torch.testing.assert_close(back.position, state.position, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(loss, -gain, rtol=1e-7, atol=1e-9)
    half = kernel.trajectory(state, p0, 0.05, 20)[2]
    ratio = (gain.abs().mean() / half.abs().mean()).item()
    assert 3.0 < ratio < 5.5, f"halving e must quarter the energy error (second order); it fell by {ratio:.2f}"
    assert gain.abs().max() > 1e-6, "an energy error of nothing would make this test empty"


def test_kicks_need_not_be_gradients():
    """Energies at the ends decide: with kicks inside that are 20% wrong the trajectory still retraces its steps."""

    class Sloppy(Collapsed):
        def kick(self, g):
            return 1.2 * super().kick(g)

    kernel = HMC(Sloppy.of(problem()), warmup=0)
    kernel.single = True
    state = kernel.init(kernel.target.initial(["prior"] * 3, Streams(4, 3)))
    p0 = torch.randn(state.position.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    end, p, gain = kernel.trajectory(state, p0, 0.1, 10)
    back, _, loss = kernel.trajectory(end, -p, 0.1, 10)
    torch.testing.assert_close(
        back.position, state.position, rtol=0, atol=1e-6
    )  # float32 at positions that differ by rounding
    torch.testing.assert_close(loss, -gain, rtol=1e-4, atol=1e-6)
    assert gain.abs().max() > 1e-2, "such kicks must cost energy"


def test_float32_kicks_are_taken_only_where_they_are_accurate():
    """The linear features are of rank 5 < P, so that A has the condition number 1/T."""
    for T, wanted in ((0.3, True), (1e-9, False)):
        kernel = HMC(Collapsed.of(problem(T=T, N1=30, activation="linear")), warmup=10)
        state = kernel.init(kernel.target.initial(["prior"] * 3, Streams(4, 3)))
        assert kernel.close_in_single(state) is wanted, T


def test_rotation_alone_is_exact():
    """With no likelihood to speak of (T huge) a quarter turn is an independent prior draw and is always accepted."""
    kernel = HMC(Collapsed.of(problem(T=1e12)), warmup=0, step=math.pi / 2, path=math.pi / 2)
    streams = Streams(5, 4)
    state = kernel.init(kernel.target.initial(["prior"] * 4, streams))
    _, info = kernel.step(state, streams)
    assert kernel.steps == 1
    assert (info.accept > 1 - 1e-6).all()


def test_a_nan_is_a_rejection_and_is_counted():
    class Broken(Collapsed):
        def likelihood(self, g):
            loglik, force = super().likelihood(g)
            loglik[1] = math.nan
            return loglik, force

    kernel = HMC(Broken.of(problem()), warmup=10)
    good = HMC(Collapsed.of(problem()), warmup=10)
    streams = Streams(6, 3)
    state = good.init(good.target.initial(["prior"] * 3, streams))
    new, info = kernel.step(state, streams)
    assert info.nan.tolist() == [False, True, False]
    assert info.accept[1] == 0
    assert torch.equal(new.position[1], state.position[1])


def test_dual_averaging_finds_the_step_of_the_wanted_acceptance():
    """On the toy response accept(e) = exp(-e^2) with noise, the step that gives 0.8 is sqrt(-log 0.8)."""
    rng = np.random.default_rng(0)
    step = StepSize(1.7, 0.8)
    for _ in range(600):
        step.update(float(np.clip(math.exp(-(step.value**2)) + 0.1 * rng.normal(), 0, 1)))
    step.freeze()
    assert abs(step.value / math.sqrt(-math.log(0.8)) - 1) < 0.1


def test_the_metric_is_the_mean_square_gradient():
    metric = PooledMetric(3, torch.device("cpu"))
    sd = torch.tensor([0.5, 1.0, 4.0], dtype=torch.float64)
    metric.add(torch.randn((50, 400, 3), dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * sd)
    metric.adopt()
    torch.testing.assert_close(metric.mass, sd**2, rtol=0.05, atol=0)  # 20,000 squares: sd 1%, so this is 5 sigma


def test_bad_options_are_refused():
    target = Collapsed.of(problem())
    with pytest.raises(InputError, match="proposals = 0"):
        build("gibbs", target=target, proposals=0)
    with pytest.raises(InputError, match="rungs = 1"):
        build("tempering", target=target, rungs=1)
    with pytest.raises(InputError, match="hottest > T"):
        build("tempering", target=target, hottest=0.1)
