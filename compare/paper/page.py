"""figures.html: each figure with its equation, its settings and data, and links to its files; one page that needs no network."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compare.report.citations import citations
from compare.report.equations import symbols
from compare.report.mathml import mathml
from compare.report.page import fill

if TYPE_CHECKING:
    from compare.paper.job import Made
    from compare.paper.settings import Settings

# key -> (notation, what a screen reader says, what the figure is for)
EQUATIONS = {
    "d2": (
        r"⟨D^2⟩ = N_1 a^{⊤} K a − Δ_1 + Δ_2",
        "<D^2> = N1 a^T K a - Delta1 + Delta2",
        "The headline of the paper is that ⟨D²⟩ is nonmonotonic in T. Eq. (4) is Eq. (3), shown here, without Δ₁; "
        "infinite width is the first term alone. "
        "Random labels are the control: they carry nothing of the classes, so that Δ₂ between the true classes "
        "nearly vanishes.",
    ),
    "lambda2": (
        r"Λ_2 = \frac{\bar Q}{λ_1 λ_0 N_1 N_0} X^{⊤} [ diag ( ( u u^{⊤} ∘ H ) 1 ) + u u^{⊤} ∘ \dot K ] X",
        "Lambda2 = (Q/(lambda1 lambda0 N1 N0)) X^T [diag((u u^T o H) 1) + u u^T o Kdot] X",
        "How learning correlates the hidden weights: ⟨w w⊤⟩ = (1 + Λ₁ + Λ₂)/λ₀, averaged over hidden units. Λ₁ is "
        "the same with −K̃⁻¹ in place of u u⊤. "
        "What chains measure is the sum of the two.",
    ),
    "scaling": (
        r"\frac{1}{P} y^{⊤} K y , \quad Δ_1 = \frac{\bar Q}{λ_1} a^{⊤} K {\tilde K}^{−1} K a",
        "y^T K y / P, and Delta1 = (Q/lambda1) a^T K K~^-1 K a",
        "Eq. (4) drops Δ₁ on the ground that y⊤K y/P stays of order one as P grows. Here it is looked at, with Δ₁ "
        "itself and its share of Δ₂ beside it.",
    ),
    "kernels": (
        r"⟨s s^{⊤}⟩ = K + \frac{\bar Q}{λ_1 N_1} K ( u u^{⊤} − {\tilde K}^{−1} ) K , \quad u = {\tilde K}^{−1} y",
        "<s s^T> = K + (Q/(lambda1 N1)) K (u u^T - K~^-1) K, u = K~^-1 y",
        "The similarity of the hidden features of two patterns, averaged over hidden units, Eq. (1). Learning draws "
        "a class together and the classes apart.",
    ),
}


def render(made: list[Made], settings: Settings) -> str:
    """The page as a string; texts are escaped."""
    from compare.provenance import software

    sections = []
    for one in made:
        notation, alt, words = EQUATIONS[one.key]
        files = [f"{one.figure.name}.svg", f"{one.figure.name}.pdf", *(f"{name}.csv" for name in one.tables)]
        sections.append(
            {
                "key": one.key,
                "figure": one.figure,
                "math": mathml(notation, alt),
                "words": words,
                "settings": list(one.settings.items()),
                "notes": one.notes,
                "files": files,
            }
        )
    names = [word.split(",")[0] for one in made for word in one.settings["data"].split(", ")]
    measured = any(name.endswith("-measured") for one in made for name in one.tables)
    return fill(
        "paper.html.j2",
        title="Figures of arXiv:2508.20989",
        sections=sections,
        symbols=symbols(),
        measured=measured,
        software=list(software().items()),
        citations=citations([], [name.split()[0] for name in names if name], []),
    )
