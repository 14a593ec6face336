"""The report as one self-contained HTML page: no network, readable without script, on a phone and in print."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compare.report import equations, sentences
from compare.report.citations import citations, methods_of
from compare.report.facts import facts, provenance
from compare.report.tables import shown

if TYPE_CHECKING:
    from compare.report.figures import Figure
    from compare.result import Report

HERE = Path(__file__).parent
SECTIONS = (
    ("tested", "What was tested"),
    ("levels", "Levels"),
    ("budget", "Error budget"),
    ("decomposition", "Δ₁ and Δ₂"),
    ("generalisation", "Test patterns"),
    ("weights", "Weights"),
    ("peak", "Peak"),
    ("convergence", "Convergence"),
    ("equations", "Equations"),
    ("provenance", "Provenance"),
    ("cite", "To cite"),
)


def render(report: Report, figures: list[Figure], files: list[str] | None = None) -> str:
    """The page as a string. `files` names what lies beside it; texts from data or user are escaped."""
    from sampling.diagnostics import MIN_ESS, RHAT_LIMIT

    tables = shown(report)
    by_name = {figure.name: figure for figure in figures}
    peak_sentence = f"{sentences.peak(report.peak)} {sentences.peak_answers(report.peak_answers)}".strip()
    present = {
        "decomposition": "decomposition" in tables,
        "generalisation": "generalisation" in tables,
        "weights": "weights_fit" in tables or "weights" in by_name,
        "peak": bool(peak_sentence),
    }
    used = methods_of(not report.weights_fit.empty, bool(peak_sentence), bool((report.peak["method"] == "mbar").any()))
    return fill(
        "page.html.j2",
        title=f"Agreement report: {report.subject}",
        subject=report.subject,
        version=report.version,
        status=report.verdict_word,
        sentence=report.sentence,
        warnings=sentences.cautions(report),
        contents=[(anchor, name) for anchor, name in SECTIONS if present.get(anchor, True)],
        measurement=sentences.measurement(report),
        facts=facts(report),
        margin=f"{100 * report.margin:g} %",
        test_level=f"{100 * report.test_level:g} %",
        rhat_limit=f"{RHAT_LIMIT:g}",
        min_ess=f"{MIN_ESS:g}",
        budget_sentence=sentences.largest_part(report.budget),
        peak_sentence=peak_sentence,
        run_warnings=sentences.reasons(report),
        tables=Lookup(tables),
        figures=Lookup(by_name),
        equations=equations.equations(),
        symbols=equations.symbols(),
        provenance=provenance(report),
        files=files or [],
        citations=citations(report.runs["sampler"], [report.cells[0].problem.dataset.name], used),
        made=report.made,
    )


def fill(template: str, **values: Any) -> str:
    """A template of this folder with style and script put in; every value is escaped unless the template says otherwise."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=False,
        lstrip_blocks=False,
    )
    script = (HERE / "page.js").read_text(encoding="utf-8")
    return environment.get_template(template).render(
        style=(HERE / "page.css").read_text(encoding="utf-8"),
        script=script,
        script_hash="sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        **values,
    )


class Lookup:
    """Attribute access that answers None for a table or figure that this report does not have."""

    def __init__(self, entries: dict[str, Any]):
        self._entries = entries

    def __getattr__(self, name: str) -> Any:
        return self._entries.get(name)
