"""Kinds of start: what each is, that it is repeatable and resumable, and that kinds which do not meet carry no verdict."""

import math

import numpy as np
import pytest
import torch

import sampling
from compare.measure import Measurement
from data.errors import InputError
from data.problem import Problem
from data.synthetic import gaussian, linear_teacher, network_teacher
from sampling.anneal import BELOW, RATIO, ladder
from sampling.posterior import Collapsed, Joint
from sampling.protocol import Streams
from sampling.starts import KINDS

TEACHER = {"N1": 5, "T": 0.05, "lambda0": 1.4, "lambda1": 0.6}


def taught(P=12, N0=4, seed=3, **changes):
    return Problem(network_teacher(P, N0, **TEACHER, seed=seed), **(TEACHER | changes))


def two_phases():
    """The teacher case of physics.md section 8: at T = 0.01 units that align with the teacher are another phase."""
    return Problem(linear_teacher(P=50, N0=30, seed=0), N1=20, T=0.01)


@pytest.mark.parametrize("T", [1e-4, 0.01, 3.0])
def test_ladders_end_at_T_in_small_steps(T):
    for kind in ("hot", "cold"):
        temperatures = ladder(kind, T)
        assert temperatures[0] == pytest.approx(max(1.0, 100 * T))
        assert temperatures[-1] == pytest.approx(T)
        assert np.abs(np.diff(np.log(temperatures))).max() <= math.log(RATIO) * (1 + 1e-9)
    assert ladder("hot", T).min() == pytest.approx(T)
    assert ladder("cold", T).min() == pytest.approx(T / BELOW)


@pytest.mark.parametrize("target", [Collapsed, Joint])
def test_every_kind_is_a_finite_position_and_leaves_the_others_alone(target):
    problem = taught()
    chosen = target.of(problem)
    position = chosen.initial([*KINDS, "prior"], Streams(0, len(KINDS) + 1))
    assert torch.isfinite(position).all()
    assert torch.isfinite(chosen.value_and_grad(position)[0]).all()
    plain = chosen.initial(["prior"] * (len(KINDS) + 1), Streams(0, len(KINDS) + 1))
    r = chosen.model.r
    for row in (KINDS.index("prior"), len(KINDS)):
        assert torch.equal(position[row, :, :r], plain[row, :, :r])
    for kind in ("hot", "cold", "teacher"):
        row = KINDS.index(kind)
        assert not torch.allclose(position[row, :, :r], plain[row, :, :r])


def test_annealed_starts_have_fitted_the_labels_and_prior_draws_have_not():
    """At T = 0.01 a prior draw is hundreds of nats from the typical log-likelihood; annealed ones are near it, from both sides."""
    chosen = Collapsed.of(two_phases())
    loglik = {}
    for kind in ("prior", "hot", "cold"):
        loglik[kind] = chosen.observe(chosen.initial([kind] * 2, Streams(1, 2)))["loglik"]
    assert (loglik["prior"] < loglik["hot"].min() - 100).all()
    assert abs(loglik["hot"].mean() - loglik["cold"].mean()) < 20


def test_the_teacher_start_is_the_teacher():
    problem = taught()
    w, _ = problem.dataset.teacher.weights(problem)
    chosen = Collapsed.of(problem)
    g = chosen.initial(["teacher"] * 2, Streams(0, 2))
    assert torch.equal(g[0], g[1])
    h, _ = chosen.model.features(g)
    np.testing.assert_allclose(h[0].T.numpy(), problem.dataset.X @ w.T / math.sqrt(problem.N0), atol=1e-12)


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (Problem(gaussian(10, 4), 5, 0.1), "keep the network that made them, which gaussian do not"),
        (taught(T=0.1), "the teacher has T = 0.05, the problem T = 0.1"),
        (taught(N1=7), "the teacher has N1 = 5, the problem N1 = 7"),
    ],
)
@pytest.mark.parametrize("sampler", ["hmc", "nuts"])
def test_a_teacher_that_is_none_is_refused(problem, message, sampler):
    with pytest.raises(InputError, match=message):
        sampling.run(problem, sampler, chains=2, warmup=2, draws=4, starts=("teacher",))


def test_nuts_says_which_starts_it_has():
    with pytest.raises(InputError, match="nuts knows prior, aligned, zero and teacher, not 'hot'"):
        sampling.run(taught(), "nuts", chains=2, warmup=2, draws=4, starts=("hot",))


def test_annealed_starts_are_repeatable_and_resumable(tmp_path):
    options = {"chains": 3, "warmup": 30, "draws": 30, "threads": 1, "starts": ("hot", "cold", "teacher"), "seed": 4}
    whole = sampling.run(taught(), **options)
    path = tmp_path / "checkpoint.npz"

    for phase in ("warmup", "sample"):

        def stop(event, phase=phase):
            if event["phase"] == phase:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            sampling.run(taught(), **options, checkpoint=path, checkpoint_seconds=0.0, progress=stop)
    again = sampling.run(taught(), **options, checkpoint=path)
    for name, value in whole.series.items():
        np.testing.assert_array_equal(value, again.series[name], err_msg=name)
    assert whole.starts == ["hot", "cold", "teacher"]


def test_starts_that_do_not_meet_carry_no_verdict():
    """No warm-up and few draws: cooled chains and prior ones are still apart, and with all else long enough the run says which."""
    run = sampling.run(
        two_phases(), chains=16, warmup=1, draws=30, threads=1, starts=("prior", "hot", "cold", "aligned")
    )
    diagnosis = sampling.assess(run, rhat_limit=math.inf, min_ess=0.0)
    apart = [reason for reason in diagnosis.reasons if reason.startswith("starts disagree")]
    assert any("hot minus prior" in reason for reason in apart), diagnosis.reasons
    assert diagnosis.status == "inconclusive"
    assert not Measurement.of(run).converged
