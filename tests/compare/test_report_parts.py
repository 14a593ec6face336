"""Numbers with errors, equations as MathML, SVG, sentences: the parts that a report page is made of."""

import math
import xml.etree.ElementTree as ElementTree

import pandas as pd
import pytest

from compare.report import equations, sentences, svg, wording
from compare.report.mathml import mathml


@pytest.mark.parametrize(
    ("value", "se", "text"),
    [
        (14.3401, 0.0182, "14.340 ± 0.018"),
        (-0.1104, 0.021, "−0.110 ± 0.021"),
        (1234.5, 67.8, "1234 ± 68"),
        (1234.5, 678.0, "1234 ± 678"),
        (0.0, 0.5, "0.00 ± 0.50"),
        (13.71604, 0.0, "13.716"),
        (13.71604, None, "13.716"),
        (math.nan, 0.1, "–"),
        (None, None, "–"),
        (2.5e-9, 1.2e-10, "(2.50 ± 0.12)·10⁻⁹"),
        (3.0e8, 2.0e6, "(3.000 ± 0.020)·10⁸"),
    ],
)
def test_a_number_is_written_with_its_error(value, se, text):
    assert wording.with_error(value, se) == text


def test_sign_and_percent():
    assert wording.with_error(0.5, 0.01, sign=True) == "+0.500 ± 0.010"
    assert wording.percent(0.1906, 0.0055, sign=True) == "(+19.06 ± 0.55) %"
    assert wording.percent(-0.032) == "−3.2 %"
    assert wording.number(1e-9) == "1.000·10⁻⁹"
    assert wording.number(0.0) == "0.0000"


def test_every_equation_is_well_formed_xml_with_words_for_those_who_cannot_see_it():
    for equation in equations.equations():
        root = ElementTree.fromstring(equation.math.replace("&nbsp;", " "))
        assert root.tag.endswith("math")
        assert root.attrib["alttext"]
        assert equation.words.endswith(".")
    for math_text, meaning in equations.symbols():
        ElementTree.fromstring(math_text)
        assert meaning


def test_each_symbol_is_explained_once():
    symbols = [ElementTree.fromstring(m).attrib["alttext"] for m, _ in equations.symbols()]
    assert len(symbols) == len(set(symbols))


def test_mathml_structure():
    text = mathml(r"x_i^2 + \frac{a}{b}")
    assert "<msubsup><mi>x</mi><mi>i</mi><mn>2</mn></msubsup>" in text
    assert "<mfrac><mrow><mi>a</mi></mrow><mrow><mi>b</mi></mrow></mfrac>" in text
    assert "&lt;" in mathml("a < b", "a < b")


@pytest.mark.parametrize("bad", [r"\frac{a}{b", "a }", r"\nosuch x"])
def test_a_malformed_equation_is_an_error(bad):
    with pytest.raises(ValueError):
        mathml(bad)


def test_a_figure_is_reproducible_and_its_ids_do_not_collide_with_another_figure():
    def paint(figure):
        figure.subplots().plot([1, 2], [3, 4])

    one, again, other = svg.draw("a", (3, 2), paint), svg.draw("a", (3, 2), paint), svg.draw("b", (3, 2), paint)
    assert one == again
    assert one.startswith("<svg")
    ElementTree.fromstring(one)

    def ids(text):
        return {e.attrib["id"] for e in ElementTree.fromstring(text).iter() if "id" in e.attrib}

    assert ids(one)
    assert not ids(one) & ids(other)
    targets = {v[1:] for e in ElementTree.fromstring(one).iter() for k, v in e.attrib.items() if k.endswith("href")}
    assert targets <= ids(one)  # every reference still leads somewhere after the renaming


def _levels(outcomes, T=(0.01, 0.1, 1.0), level="eq4", share=0.2):
    return pd.DataFrame(
        [
            {"N1": 100, "T": t, "level": level, "outcome": o, "relative_to_effect": share, "relative_se": 0.01}
            for t, o in zip(T, outcomes, strict=True)
        ]
    )


def test_the_verdict_says_where_and_by_how_much():
    text = sentences.level_sentence(_levels(["differs", "differs", "agrees"]), "eq4")
    assert "Eq. (4) differs from the measured ⟨D²⟩ at T = 0.01 and 0.1" in text
    assert "above it by (20.0 ± 1.0) % to (20.0 ± 1.0) % of the effect" in text
    assert "agrees with it at T = 1" in text
    below = sentences.level_sentence(_levels(["differs"], T=[0.1], share=-0.2), "eq4")
    assert "below it by (20.0 ± 1.0) % of the effect" in below


def test_overall_never_hides_a_difference_or_a_doubt():
    assert sentences.overall(_levels(["agrees", "inconclusive", "differs"])) == "differs"
    assert sentences.overall(_levels(["agrees", "inconclusive", "agrees"])) == "inconclusive"
    assert sentences.overall(_levels(["agrees"] * 3)) == "agrees"
