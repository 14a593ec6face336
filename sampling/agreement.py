"""Whether chains agree with each other as well as their own autocorrelation says they should: spread, and kinds of start."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Within:
    """What the chains say of their own errors, each looked at around its own mean, so that a disagreement cannot hide in it.

    means     (C,) the chains' means
    variance  of the mean of one chain: s^2/n, with s^2 the sum of the autocovariance over lags
    tau       integrated autocorrelation time in entries (1 for independent ones)
    dof       effective degrees of freedom of `variance`: it is distributed about as chi^2_dof/dof
    """

    means: np.ndarray
    variance: float
    tau: float
    dof: float


def within(values: np.ndarray) -> Within:
    """Of (C, n) finite values, n >= 4, not all constant.

    Autocovariances are pooled over chains and summed over Geyer's initial monotone sequence of W lags (Stat. Sci. 7, 473 (1992)).
    Centring on chain means takes about s^2/n from each lag, which is given back by the factor 1/(1 - (2W + 1)/n); the relative
    variance of the sum is 2 (2W + 1)/(C n) (Wolff, Comput. Phys. Commun. 156, 143 (2004), eqs. 42 and 49), hence dof = C n/(2W + 1).
    """
    chains, n = values.shape
    means = values.mean(1)
    centred = values - means[:, None]
    size = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(centred, size, axis=1)
    covariance = np.fft.irfft((spectrum.real**2 + spectrum.imag**2).mean(0), size)[:n] / n
    rho = covariance / covariance[0]
    pairs = rho[: n - n % 2].reshape(-1, 2).sum(1)
    negative = np.flatnonzero(pairs <= 0)
    count = max(1, int(negative[0]) if len(negative) else len(pairs))
    window = 2 * count - 1
    tau = -1.0 + 2.0 * float(np.minimum.accumulate(pairs[:count]).sum())
    # Antithetic chains can have tau < 1, but not below the resolution of the sample.
    tau = max(tau, 1.0 / math.log10(max(10.0, chains * n)))
    lags = 2 * window + 1
    tau /= max(1.0 - lags / n, 0.1)
    return Within(means, float(covariance[0]) * tau / n, tau, max(1.0, chains * n / lags))


def spread_p(one: Within) -> tuple[float, float]:
    """(p_wide, p_narrow): how likely independent stationary chains would spread as much, or as little, as these.

    F test of the variance between chain means against that expected from within them, on (C - 1, dof) degrees of freedom. Wide: a
    slow mode that no single chain shows. Narrow: chains that are not independent, such as copies.
    """
    from scipy.stats import f

    ratio = float(one.means.var(ddof=1)) / one.variance
    law = f(len(one.means) - 1, one.dof)
    return float(law.sf(ratio)), float(law.cdf(ratio))


def starts_p(one: Within, kinds: Sequence[str], left: str, right: str) -> tuple[float, float]:
    """(difference of the means, two-sided p) between the chains of two kinds of start, t test on `dof` degrees of freedom."""
    from scipy.stats import t

    here, there = (one.means[[kind == which for kind in kinds]] for which in (left, right))
    gap = float(here.mean() - there.mean())
    se = math.sqrt(one.variance * (1.0 / len(here) + 1.0 / len(there)))
    return gap, float(2.0 * t.sf(abs(gap) / se, one.dof))
