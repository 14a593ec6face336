"""Eq. (1) to first order without the Gaussian closure: <s s^T> on a chosen block of patterns, with standard errors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from data.errors import InputError
from theory import chaos
from theory.first_order import Point
from theory.spectrum import Spectrum
from theory.unit_draws import Settings, UnitDraws, collect

Array = np.ndarray
MOST_BATCHES = 64  # kept in memory: a batch holds 5 matrices (B, B) a point


@dataclass(frozen=True, eq=False)
class FirstOrderSimilarity:
    """<s_m s_n> (B, B) for m, n in `block`, the mean over units, to first order in 1/N1, with standard errors (B, B)."""

    T: float
    N1: int
    lambda1: float
    Q: float
    block: Array
    value: Array
    se: Array
    samples: int
    reached: bool | None


def first_order_similarity(
    spectrum: Spectrum,
    saddles: Iterable[Point],
    block: Array,
    settings: Settings | None = None,
    **changes: Any,
) -> list[FirstOrderSimilarity]:
    """K_mn + (Q/(2 lambda1 N1)) Cov_0(s_m s_n, (u.s)^2 - s^T K~^{-1} s), m and n in `block` (B,), at every saddle.

    With Gaussian s this is Eq. (1) (theory.similarity); for linear sigma it is Eq. (1) to rounding. Control variates as in
    theory.first_order: the products alpha_1^m alpha_j^n of the chaos parts of s_m and s_n, with one coefficient for all pairs. The
    target rel_error is for the root mean square error of the block relative to the root mean square of <s s^T> - K.
    Raises InputError for an empty list of points, or indices that are not patterns.
    """
    settings = replace(settings or Settings(), **changes)
    points = list(saddles)
    block = np.asarray(block)
    if not points:
        raise InputError("first_order_similarity needs at least one saddle point (T, N1, lambda1, Qbar)")
    if (
        block.ndim != 1
        or block.size == 0
        or block.dtype.kind not in "iu"
        or block.min() < 0
        or block.max() >= spectrum.P
    ):
        raise InputError(f"block must be a list of pattern indices, whole numbers from 0 to {spectrum.P - 1}")
    for point in points:
        spectrum.check_temperature(point.T)
    task = _Task(spectrum, points, block)
    draws = UnitDraws.of(spectrum, settings.block)
    batches, done, reached = collect(draws, settings, task.batch, task.worst, MOST_BATCHES)
    values = task.corrected(batches)
    if not np.isfinite(values).all():
        raise InputError("level 4 is not finite: K~ cannot be inverted in float64 at one of the temperatures; raise T")
    K, se = spectrum.K[np.ix_(block, block)], values.std(0, ddof=1) / np.sqrt(len(values))
    return [
        FirstOrderSimilarity(p.T, p.N1, p.lambda1, p.value, block, K + values[:, i].mean(0), se[i], done, reached)
        for i, p in enumerate(points)
    ]


class _Task:
    """A batch is (n, 1 + J, B, B): for s_m s_n and then the J control variates, the mean of (r - E r)(q - E q), scaled."""

    def __init__(self, spectrum: Spectrum, points: list[Point], block: Array) -> None:
        self.spectrum, self.block = spectrum, block
        values, U = spectrum.values, spectrum.vectors
        k = np.array([point.T + point.value * values / point.lambda1 for point in points])
        self.scale = np.array([0.5 * point.value / (point.lambda1 * point.N1) for point in points])[:, None, None, None]
        self.u = U @ (spectrum.y / k).T
        self.uKu = values @ (spectrum.y[:, None] / k.T) ** 2
        self.inverse = 1.0 / k.T
        known = chaos.moments(spectrum.activation, spectrum.C)
        self.table = chaos.wick_table(known)[:, :, block]
        first = known.coefficient(1)[block]
        C = spectrum.C[np.ix_(block, block)]
        self.means = np.zeros((1 + len(known.orders), len(block), len(block)))
        self.means[0], self.means[1] = spectrum.K[np.ix_(block, block)], np.multiply.outer(first, first) * C
        self.exact = np.empty((len(points), *self.means[1:].shape))
        for row, j in enumerate(known.orders):
            for i in range(len(points)):
                M = np.multiply.outer(self.u[:, i], self.u[:, i]) - (U * self.inverse[:, i]) @ U.T
                self.exact[i, row] = chaos.covariance_with_form(known, M, block, j)

    def batch(self, blocks: Iterable[Array]) -> Array:
        """The batch made of these blocks of h; the part with K~^{-1}, which has little noise, uses the first block only."""
        total, count = np.zeros((self.exact.shape[0], *self.means.shape)), 0
        for number, h in enumerate(blocks):
            s = self.spectrum.activation.sigma(h)
            count += len(h)
            parts = self.parts(h[:, self.block])
            total += self.products(s, parts, (s @ self.u) ** 2 - self.uKu)
            if number == 0:
                modes = (s @ self.spectrum.vectors) ** 2 - self.spectrum.values
                solved = self.products(s, parts, modes @ self.inverse) / len(h)
        result = (total / count - solved) * self.scale
        result[:, 1:] -= self.exact * self.scale
        return result

    def parts(self, h: Array) -> list[Array]:
        """The chaos parts of s on the block, one (draws, B) for each order."""
        powers = [h]
        for _ in range(self.table.shape[1] - 1):
            powers.append(powers[-1] * h * h)
        return [sum(t * p for t, p in zip(row, powers, strict=True)) for row in self.table]

    def products(self, s: Array, parts: list[Array], q: Array) -> Array:
        """Sum over draws of q times [s_m s_n, alpha_1 alpha_1, alpha_1 alpha_j + alpha_j alpha_1, ...] minus their means."""
        out = np.empty((q.shape[1], *self.means.shape))
        own = s[:, self.block]
        for i in range(q.shape[1]):
            weighted = parts[0] * q[:, i, None]
            out[i, 0] = (own * q[:, i, None]).T @ own
            for row, part in enumerate(parts):
                product = weighted.T @ part
                out[i, 1 + row] = product if row == 0 else product + product.T
            out[i] -= self.means * q[:, i].sum()
        return out

    def corrected(self, batches: Array) -> Array:
        """(batches, n, B, B) with the control variates taken off, by coefficients fitted on the other half of the batches."""
        target = batches[:, :, 0] - batches[:, :, 1:].sum(
            2
        )  # s_m s_n - alpha_1 s_n - s_m alpha_1 + alpha_1 alpha_1, cut
        controls = batches[:, :, 1:]
        out = np.empty_like(target)
        folds = (slice(0, None, 2), slice(1, None, 2))
        for here, other in (folds, folds[::-1]):
            out[here] = target[here] - np.einsum("bijmn,ij->bimn", controls[here], _fit(target[other], controls[other]))
        return out

    def worst(self, batches: Array) -> float:
        """Largest over the points of rms standard error/rms effect."""
        values = self.corrected(batches)
        noise = np.sqrt((values.var(0, ddof=1) / len(values)).mean((1, 2)))
        effect = np.sqrt((values.mean(0) ** 2).mean((1, 2)))
        return float(np.max(np.divide(noise, effect, out=np.zeros_like(noise), where=noise > 0)))


def _fit(target: Array, controls: Array) -> Array:
    """(n, J) least-squares coefficients of target (b, n, B, B) on controls (b, n, J, B, B), pooled over the pairs."""
    y, x = target - target.mean(0), controls - controls.mean(0)
    spread = np.sqrt((y**2).sum(0))
    weight = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
    y, x = y * weight, x * weight[:, None]
    norm = np.sqrt((x**2).sum((0, 3, 4)))
    gram = np.einsum("bijmn,bilmn->ijl", x, x)
    moment = np.einsum("bijmn,bimn->ij", x, y)
    unit = np.divide(1.0, norm, out=np.zeros_like(norm), where=norm > 0)
    scaled = np.linalg.pinv(gram * unit[:, :, None] * unit[:, None, :], rcond=1e-10, hermitian=True)
    return unit * (scaled @ (unit * moment)[:, :, None])[:, :, 0]
