"""Log-evidence by thermodynamic integration over chains at a ladder of temperatures, against log p(y) from S(Q)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from compare.measure import Measurement
from compare.verdict import MARGIN, Verdict, equivalence
from data.errors import InputError

if TYPE_CHECKING:
    from data.problem import Problem
    from sampling.run import Run
    from theory import Prediction, Spectrum

NODES = 12


@dataclass(frozen=True, eq=False)
class Ladder:
    """Where to sample, and how to add up.

    T (n,) temperatures, ascending, all above the problem's own;  weights (n,) in int_0^{1/T} g d beta = sum weights g(1/T_k)

    Gauss-Legendre in x = log(1 + c beta), c = l_max/lambda1 from the largest eigenvalue of K: linear in beta where no mode has been
    learned, so that the range reaches beta = 0, and log beta where all have. A mode l adds l/(1 + beta l) and its powers to the
    integrand, with its pole at beta = -1/l: in x it lies pi from the real axis for every l < c, whatever the spread of the spectrum
    (Q above 1 can push it to x < 0, still outside the range), so the error falls geometrically with n.
    """

    T: np.ndarray
    weights: np.ndarray

    @classmethod
    def of(cls, spectrum: Spectrum, T: float, lambda1: float = 1.0, nodes: int = NODES) -> Ladder:
        """Raises InputError for T <= 0 or fewer than 2 nodes."""
        if not (math.isfinite(T) and T > 0):
            raise InputError(f"T = {T}: the evidence of a posterior with a density needs T > 0")
        if nodes < 2:
            raise InputError(f"nodes = {nodes}: thermodynamic integration needs at least 2 temperatures")
        c = float(spectrum.values[-1]) / lambda1
        if c <= 0:
            raise InputError("K is zero: every network gives f = 0, and there is nothing to integrate")
        z, w = np.polynomial.legendre.leggauss(nodes)
        end = math.log1p(c / T)
        x = 0.5 * end * (1.0 + z[::-1])
        beta, slope = np.expm1(x) / c, np.exp(x) / c  # slope = d beta/dx
        return cls(1.0 / beta, 0.5 * end * w[::-1] * slope)


@dataclass(frozen=True, eq=False)
class Evidence:
    """log p(y) at the problem's T, normaliser (2 pi T)^{-P/2} included, in nats.

    measured, se     by thermodynamic integration; se is statistical, independent errors of the runs added up
    quadrature       error of the quadrature rule, estimated on the theory's own integrand, whose integral is exactly known
    theory           log of the integral of p(Q|y)'s density: exact for linear sigma at every N1, P, T
    infinite_width   the Gaussian process at Q = 1: the effect of finite width is measured from it
    verdict          equivalence of theory with measured, the margin a share of |measured - infinite_width|
    T, weights, energy, energy_se, energy_theory   the integrand <sum (y - f)^2>/2 by temperature, and the rule's weights
    converged        whether every run is acceptable
    """

    measured: float
    se: float
    quadrature: float
    theory: float
    infinite_width: float
    verdict: Verdict
    T: np.ndarray
    weights: np.ndarray
    energy: np.ndarray
    energy_se: np.ndarray
    energy_theory: np.ndarray
    converged: bool

    @property
    def difference(self) -> tuple[float, float]:
        """Theory minus measured, with the statistical error."""
        return self.theory - self.measured, self.se

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {
            "measured": self.measured,
            "se": self.se,
            "quadrature": self.quadrature,
            "theory": self.theory,
            "infinite_width": self.infinite_width,
            "theory_minus_measured": self.theory - self.measured,
            "verdict": vars(self.verdict),
            "T": self.T.tolist(),
            "weights": self.weights.tolist(),
            "energy": self.energy.tolist(),
            "energy_se": self.energy_se.tolist(),
            "energy_theory": self.energy_theory.tolist(),
        }


def log_evidence(prediction: Prediction, runs: Sequence[Run], ladder: Ladder, margin: float = MARGIN) -> Evidence:
    """log p(y) of the prediction's problem from one run at each temperature of the ladder, in its order.

    With Z(beta) = int prior exp(-beta E), E = sum (y - f)^2/2:
        log p(y | T) = -(P/2) log(2 pi T) + log Z(1/T),     d log Z/d beta = -<E>_beta,     Z(0) = 1.
    The path tempers the joint likelihood, whose members at other beta are this project's posteriors at other T, so ordinary runs
    serve. <E> is averaged exactly over the readout; since Z(beta) = int dW prior(W) (2 pi T)^{P/2} N(y; 0, A_T(W)), the derivative
    along T of the collapsed log-likelihood is this same number, draw by draw. A path N(y; 0, A)^t with A fixed would need
    chains of its own. At beta = 0 the integrand is |y|^2/2 + Tr K/(2 lambda1); the rule needs no value there.
    Raises InputError where the runs are not those of the ladder, or one comes from a biased sampler.
    """
    from theory import predict

    p = prediction.problem
    if len(runs) != len(ladder.T):
        raise InputError(
            f"the ladder has {len(ladder.T)} temperatures and there are {len(runs)} runs: give one run for each"
        )
    for T, run in zip(ladder.T, runs, strict=True):
        if run.manifest["problem"]["fingerprint"] != p.replace(T=float(T)).fingerprint:
            raise InputError(f"the run given for T = {T:g} belongs to another problem")
        if run.biased:
            raise InputError("thermodynamic integration needs samples of the posterior: one run is of a biased sampler")
    found = [Measurement.of(run) for run in runs]
    energy = np.array([0.5 * one.quantities["residual"].mean for one in found])
    se = np.array([0.5 * one.quantities["residual"].se for one in found])
    others = [predict(p.replace(T=float(T)), spectrum=prediction.spectrum) for T in ladder.T]
    theirs = np.array([mean_energy(one) for one in others])
    normaliser = -0.5 * p.P * math.log(2.0 * math.pi * p.T)
    exact = prediction.q.log_evidence
    measured, error = normaliser - float(ladder.weights @ energy), math.sqrt(float(ladder.weights**2 @ se**2))
    quadrature = abs(normaliser - float(ladder.weights @ theirs) - exact)
    wide = gaussian_process(prediction)
    converged = all(one.converged for one in found)
    return Evidence(
        measured=measured,
        se=error,
        quadrature=quadrature,
        theory=exact,
        infinite_width=wide,
        verdict=equivalence(
            measured,
            math.hypot(error, quadrature),
            exact,
            prior=wide,
            margin=margin,
            dof=max(1.0, min(one.quantities["residual"].dof for one in found)),
            converged=converged,
        ),
        T=ladder.T,
        weights=ladder.weights,
        energy=energy,
        energy_se=se,
        energy_theory=theirs,
        converged=converged,
    )


def measure_evidence(problem: Problem, *, nodes: int = NODES, seed: int = 0, **sampling: Any) -> Evidence:
    """Sample the ladder of a problem and integrate: `sampling` goes to sampling.run (chains, draws or target, warmup, ...)."""
    from compare.verify import sample
    from theory import predict

    prediction = predict(problem)
    ladder = Ladder.of(prediction.spectrum, problem.T, problem.lambda1, nodes)
    runs = sample([problem.replace(T=float(T)) for T in ladder.T], seed=seed, **sampling)
    return log_evidence(prediction, runs, ladder)


def mean_energy(prediction: Prediction) -> float:
    """<sum (y - f)^2>/2 over p(Q|y) and the Gaussian process at each Q: with y = sum_k c_k e_k, T^2 c^2/k^2 + T kappa/k, k = T + kappa."""
    p, s, order = prediction.problem, prediction.spectrum, prediction.order
    kappa = np.multiply.outer(order.Q / p.lambda1, s.values)
    share = p.T / (p.T + kappa)
    return 0.5 * order.mean(((share * s.y) ** 2 + share * kappa).sum(1))


def gaussian_process(prediction: Prediction, Q: float = 1.0) -> float:
    """log N(y; 0, K~(Q)): the evidence of the infinitely wide network at Q = 1."""
    p, s = prediction.problem, prediction.spectrum
    k = p.T + Q * s.values / p.lambda1
    return -0.5 * float((np.log(2.0 * math.pi * k) + s.y**2 / k).sum())
