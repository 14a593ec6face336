"""Level 4 of the ladder: <D^2> to first order without the Gaussian closure, by expectations over one unit of the prior."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from data.errors import InputError
from theory import chaos
from theory.spectrum import Spectrum
from theory.unit_draws import Settings, UnitDraws, collect

Array = np.ndarray


class Point(Protocol):
    """What level 4 needs of a theory.action.SaddlePoint: the parameters, and Qbar as `value`."""

    @property
    def T(self) -> float: ...
    @property
    def N1(self) -> int: ...
    @property
    def lambda1(self) -> float: ...
    @property
    def value(self) -> float: ...


@dataclass(frozen=True)
class FirstOrder:
    """Level 4 at one point: value = prior + delta2 + minus_delta1, each with the standard error of its Monte Carlo.

    delta2        (Q/(2 lambda1)) Cov_0((a.s)^2, (u.s)^2): the exact counterpart of Delta2
    minus_delta1  -(Q/(2 lambda1)) Cov_0((a.s)^2, s^T K~^{-1} s): the exact counterpart of -Delta1, of either sign
    samples       one-unit draws behind delta2;  samples_delta1  those behind minus_delta1
    """

    T: float
    N1: int
    lambda1: float
    Q: float
    prior: float
    value: float
    se: float
    minus_delta1: float
    minus_delta1_se: float
    delta2: float
    delta2_se: float
    samples: int
    samples_delta1: int

    @property
    def effect(self) -> float:
        """value - prior."""
        return self.delta2 + self.minus_delta1


@dataclass(frozen=True, eq=False)
class FirstOrderGrid(Sequence[FirstOrder]):
    """Level 4 on a list of points that share their draws, in the order of the saddles given.

    covariance  (2n, 2n) of the estimates: delta2 of every point, then minus_delta1 of every point
    reached     whether the target was met; None when `samples` was given
    worst       largest se/|effect| over the points (see Settings)
    """

    points: tuple[FirstOrder, ...]
    covariance: Array = field(repr=False)
    seed: int
    samples: int
    batches: int
    reached: bool | None
    worst: float

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return self.points[index]

    def __len__(self) -> int:
        return len(self.points)


def first_order(
    spectrum: Spectrum,
    saddles: Iterable[Point],
    settings: Settings | None = None,
    *,
    a: Array | None = None,
    **changes: Any,
) -> FirstOrderGrid:
    """prior + (Q/(2 lambda1)) Cov_0((a.s)^2, (u.s)^2 - s^T K~^{-1} s) at every saddle (physics.md section 3, level 4).

    s = sigma(h) of ONE unit of the prior, h ~ N(0, C); u = K~^{-1} y and K~ = T + (Q/lambda1) K at Qbar. The same draws serve all
    points: in the eigenbasis of K, (u.s)^2 is one matrix product over the points and s^T K~^{-1} s is linear in the squared modes.

    Variance reduction. The odd chaos expansion a.s = alpha_1 + alpha_3 + ... (theory.chaos) gives the control variates
    alpha_1 alpha_j, j = 1, 3, 5, 7, whose covariances with every s_k s_l are exactly known. What is left is about
    (a.s - alpha_1)^2, a few hundredths of (a.s)^2. Means that are exactly known (a^T K a, u^T K u, Tr K~^{-1} K) are subtracted,
    not estimated. For linear sigma nothing is left, and level 4 is Eq. (3) to rounding. The coefficients are fitted on one half of
    the batches and used on the other, so the estimate is unbiased; errors come from the spread between independent batches.

    settings, changes   Settings, or its fields by keyword (samples, rel_error, seed, budget, block, progress)
    a (P,)              contrast to use in the place of the data set's class contrast
    Raises InputError for an empty list of points, T = 0 with a singular K, or a contrast of the wrong shape.
    """
    settings = replace(settings or Settings(), **changes)
    points = list(saddles)
    if not points:
        raise InputError("first_order needs at least one saddle point (T, N1, lambda1, Qbar)")
    for point in points:
        spectrum.check_temperature(point.T)
    a = spectrum.dataset.a if a is None else np.asarray(a, dtype=np.float64)
    if a.shape != (spectrum.P,) or not np.isfinite(a).all():
        raise InputError(
            f"the contrast a must hold one finite number a pattern, shape ({spectrum.P},); it has {a.shape}"
        )
    task = _Task(spectrum, points, a)
    draws = UnitDraws.of(spectrum, settings.block)
    batches, done, reached = collect(draws, settings, task.batch, task.worst)
    return task.result(batches, done, done // (1 + draws.mixed), settings.seed, reached)


class _Task:
    """The arithmetic of one call: products of a batch, their known means, and the estimate from all batches.

    A batch is an array (2, 1 + J, n): for the two halves [delta2, minus_delta1], the mean over draws of (r - E r)(q - E q)
    scaled by Q/(2 lambda1), with r = (a.s)^2 and then alpha_1 alpha_j (J of them), q = (u.s)^2 or -s^T K~^{-1} s, at n
    points. The exact covariance is subtracted from the J control variates, so their mean is 0.
    """

    def __init__(self, spectrum: Spectrum, points: list[Point], a: Array) -> None:
        self.spectrum, self.points = spectrum, points
        self.scale = np.array([0.5 * point.value / point.lambda1 for point in points])
        values, U = spectrum.values, spectrum.vectors
        k = np.array([point.T + point.value * values / point.lambda1 for point in points])
        self.u = U @ (spectrum.y / k).T  # (P, n)
        self.inverse = 1.0 / k.T  # (P, n), K~^{-1} in the eigenbasis
        self.a = a
        self.aKa = float(values @ (U.T @ a) ** 2)
        self.uKu = values @ (spectrum.y[:, None] / k.T) ** 2
        known = chaos.moments(spectrum.activation, spectrum.C)
        self.table = a * chaos.wick_table(known)
        exact, means = [], []
        for row, j in enumerate(known.orders):
            X = chaos.covariance_with_features(known, a, j)
            modes = np.einsum("pk,pk->k", X @ U, U)
            exact.append([np.einsum("pn,pn->n", X @ self.u, self.u), -modes @ self.inverse])
            first = a * known.coefficient(1)
            means.append(float(first @ spectrum.C @ first) if row == 0 else 0.0)
        self.exact = np.swapaxes(np.array(exact), 0, 1) * self.scale  # (2, J, n)
        self.means = np.array([self.aKa, *means])

    def batch(self, blocks: Iterable[Array]) -> Array:
        """The batch made of these blocks of h; the half with K~^{-1}, which has little noise, uses the first block only."""
        total, count = np.zeros((self.table.shape[0] + 1, len(self.points))), 0
        for number, h in enumerate(blocks):
            s = self.spectrum.activation.sigma(h)
            r = self.remainders(h, s)
            count += len(h)
            total += r.T @ ((s @ self.u) ** 2 - self.uKu)
            if number == 0:
                modes = r.T @ ((s @ self.spectrum.vectors) ** 2 - self.spectrum.values)
                solved = -(modes @ self.inverse) / len(h)
        result = np.array([total / count, solved]) * self.scale
        result[:, 1:] -= self.exact
        return result

    def remainders(self, h: Array, s: Array) -> Array:
        """(a.s)^2 and alpha_1 alpha_j minus their means, (draws, 1 + J)."""
        power, square = h, h * h if self.table.shape[1] > 1 else h
        alphas = power @ self.table[:, 0].T
        for i in range(1, self.table.shape[1]):
            power = power * square
            alphas += power @ self.table[:, i].T
        return np.column_stack([(s @ self.a) ** 2, alphas[:, :1] * alphas]) - self.means

    def corrected(self, batches: Array) -> Array:
        """(B, 2, n): every batch with its control variates taken off, by coefficients fitted on the other half of the batches."""
        target, controls = batches[:, :, 0], batches[:, :, 1:]
        default = np.array(
            [1.0] + [2.0] * (controls.shape[2] - 1)
        )  # (a.s)^2 - (a.s - alpha_1)^2, cut at the last order
        target = target - np.einsum("bhjn,j->bhn", controls, default)
        if len(batches) < 16 * controls.shape[2]:
            return target
        out = np.empty_like(target)
        folds = (slice(0, None, 2), slice(1, None, 2))
        for here, other in (folds, folds[::-1]):
            out[here] = target[here] - np.einsum("bhjn,hjn->bhn", controls[here], _fit(target[other], controls[other]))
        return out

    def worst(self, batches: Array) -> float:
        """Largest standard error of the effect relative to it."""
        values = self.corrected(batches)
        halves = values.mean(0)
        effect = np.maximum(np.abs(halves.sum(0)), 0.1 * np.abs(halves).max(0))
        se = values.sum(1).std(0, ddof=1) / np.sqrt(len(values))
        return float(np.max(np.divide(se, effect, out=np.zeros_like(se), where=se > 0)))

    def result(self, batches: Array, samples: int, fresh: int, seed: int, reached: bool | None) -> FirstOrderGrid:
        values = self.corrected(batches)
        n = len(self.points)
        if not np.isfinite(values).all():
            raise InputError(
                "level 4 is not finite: K~ cannot be inverted in float64 at one of the temperatures; raise T"
            )
        mean = values.mean(0)
        covariance = np.atleast_2d(np.cov(values.reshape(len(values), 2 * n), rowvar=False)) / len(values)
        c = covariance
        variance = np.diagonal(c)[:n] + np.diagonal(c)[n:] + 2.0 * np.diagonal(c[:n, n:])
        found = []
        for i, point in enumerate(self.points):
            prior = point.N1 * self.aKa
            found.append(
                FirstOrder(
                    T=point.T,
                    N1=point.N1,
                    lambda1=point.lambda1,
                    Q=point.value,
                    prior=prior,
                    value=prior + float(mean[:, i].sum()),
                    se=float(np.sqrt(max(variance[i], 0.0))),
                    minus_delta1=float(mean[1, i]),
                    minus_delta1_se=float(np.sqrt(c[n + i, n + i])),
                    delta2=float(mean[0, i]),
                    delta2_se=float(np.sqrt(c[i, i])),
                    samples=samples,
                    samples_delta1=fresh,
                )
            )
        return FirstOrderGrid(tuple(found), covariance, seed, samples, len(batches), reached, self.worst(batches))


def _fit(target: Array, controls: Array) -> Array:
    """(2, J, n) least-squares coefficients of target (B, 2, n) on controls (B, 2, J, n), each about its mean."""
    y = target - target.mean(0)
    x = controls - controls.mean(0)
    norm = np.sqrt((x**2).sum(0))
    x = np.divide(x, norm, out=np.zeros_like(x), where=norm > 0)
    gram = np.einsum("bhjn,bhin->hnji", x, x)
    moment = np.einsum("bhjn,bhn->hnj", x, y)
    solved = np.linalg.pinv(gram, rcond=1e-10, hermitian=True) @ moment[..., None]
    return np.divide(np.swapaxes(solved[..., 0], 1, 2), norm, out=np.zeros_like(norm), where=norm > 0)
