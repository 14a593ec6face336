"""Names, one-line meanings and colours of levels, budget parts and observables; numbers written with their errors."""

from __future__ import annotations

import math

LEVELS = {
    "infinite_width": ("infinite width", "prior term only: what an infinitely wide network gives, whatever the labels"),
    "eq4": ("Eq. (4)", "prior + Δ₂ at the saddle point: the paper's formula, with Δ₁ dropped"),
    "eq3": ("Eq. (3)", "prior − Δ₁ + Δ₂ at the saddle point: the paper's formula before Δ₁ is dropped"),
    "eq3_q_averaged": ("Eq. (3), Q averaged", "Eq. (3) averaged over p(Q|y) at this width; exact for a linear network"),
    "first_order": ("first order, exact", "the same order of the theory without taking the features as Gaussian"),
}
PARTS = {
    "delta1_dropped": ("Δ₁ dropped", "−Δ₁, the term that Eq. (4) leaves out of Eq. (3)"),
    "q_fluctuations": ("fluctuations of Q", "Eq. (3) averaged over p(Q|y), minus Eq. (3) at the saddle point"),
    "gaussian_closure": ("Gaussian closure", "first-order-exact level minus Eq. (3): the features are not Gaussian"),
    "remainder": ("remainder", "what is left: beyond first order"),
    "total": ("measured − Eq. (4)", "the whole error of Eq. (4)"),
}
OBSERVABLES = {
    "d2": "⟨D²⟩ between the classes",
    "d2_labels": "⟨D²⟩ between the labels",
    "d2_test": "⟨D²⟩ between the test classes",
    "loss_test": "generalisation error, ⟨(y − f)²⟩ on test patterns",
    "saddle_point": "Gaussian process at Q̄",
    "q_averaged": "averaged over p(Q|y)",
    "Q": "order parameter Q",
    "fbar_a": "class difference of the mean output, a·f̄",
    "residual": "Σ(y − f)²",
    "loglik": "collapsed log-likelihood",
    "norm_w": "|w|² per weight",
    "delta1": "Δ₁",
    "delta2": "Δ₂",
}
# After Okabe and Ito: told apart under the common colour-vision deficiencies, each with a line style or mark of its own as well; the
# sky blue is darkened so that all stand out from white by 3 to 1.
COLOURS = {
    "infinite_width": "#767676",
    "eq4": "#D55E00",
    "eq3": "#0072B2",
    "eq3_q_averaged": "#2B93CC",
    "first_order": "#009E73",
    "measured": "#111111",
    "delta1_dropped": "#0072B2",
    "q_fluctuations": "#2B93CC",
    "gaussian_closure": "#009E73",
    "remainder": "#CC79A7",
    "total": "#111111",
}


def label(name: str) -> str:
    """What a reader calls a level, a budget part or an observable."""
    for table in (LEVELS, PARTS):
        if name in table:
            return table[name][0]
    return OBSERVABLES.get(name, name)


def number(value: float | None, digits: int = 4) -> str:
    """A number with `digits` significant figures, a proper minus sign, and a dash where there is none."""
    if value is None or not math.isfinite(value):
        return "–"
    size = abs(value)
    if size != 0 and (size >= 1e6 or size < 1e-3):
        mantissa, exponent = f"{value:.{max(digits - 1, 0)}e}".split("e")
        return f"{mantissa}·10{_superscript(int(exponent))}".replace("-", "−")
    decimals = digits if size == 0 else max(0, digits - 1 - math.floor(math.log10(size)))
    return f"{value:.{decimals}f}".replace("-", "−")


def with_error(value: float | None, se: float | None, *, sign: bool = False) -> str:
    """`14.340 ± 0.018`: the error to two figures, the value to the same place; an exact value to five figures."""
    if value is None or not math.isfinite(value):
        return "–"
    if se is None or not math.isfinite(se) or se <= 0:
        text = number(value, 5)
        return f"+{text}" if sign and value > 0 else text
    place = math.floor(math.log10(se))
    power = math.floor(math.log10(max(abs(value), se)))
    if (place - 1 < -6 or place > 5) and power != 0:  # far from 1: one common power of ten
        scaled = _scaled(value / 10.0**power, se / 10.0**power, sign)
        return f"({scaled})·10{_superscript(power)}"
    return _scaled(value, se, sign)


def _scaled(value: float, se: float, sign: bool) -> str:
    """Value and error to the same decimal place, two figures of the error."""
    place = math.floor(math.log10(se))
    decimals = max(0, 1 - place)
    text = f"{value:+.{decimals}f}" if sign else f"{value:.{decimals}f}"
    return f"{text} ± {se:.{decimals}f}".replace("-", "−")


def percent(value: float | None, se: float | None = None, *, sign: bool = False, digits: int = 1) -> str:
    """A share as a percentage with its error."""
    if value is None or not math.isfinite(value):
        return "–"
    if se is None or not math.isfinite(se) or se <= 0:
        return f"{100 * value:{'+' if sign else ''}.{digits}f} %".replace("-", "−")
    return f"({with_error(100 * value, 100 * se, sign=sign)}) %"


def _superscript(power: int) -> str:
    return str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
