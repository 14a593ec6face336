"""The page of a study: several data subsets and controls, their joint verdicts, and links to each subset's own report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from compare.report import equations, sentences
from compare.report.citations import citations
from compare.report.facts import Rows, compact, network
from compare.report.figures import COLOURS, LINES, Figure, drawn
from compare.report.figures import budget as budget_figure
from compare.report.page import Lookup, fill
from compare.report.study_tables import shown
from compare.report.wording import label, with_error

if TYPE_CHECKING:
    import pandas as pd

    from compare.study import Study

SECTIONS = (
    ("tested", "What was tested"),
    ("answers", "The answer per data set"),
    ("levels", "Levels"),
    ("budget", "Error budget"),
    ("weights", "Weights"),
    ("subsets", "Subset by subset"),
    ("equations", "Equations"),
    ("provenance", "Provenance"),
    ("cite", "To cite"),
)
DRAWN = ("eq4", "eq3", "first_order")


def verdict(study: Study) -> str:
    """Eq. (4) on the data, over the subsets, and the answer on the maximum at each width."""
    table = study.main_levels
    told = sentences.level_sentence(table, "eq4")
    best = "first_order" if (table["level"] == "first_order").any() else "eq3"
    other = sentences.level_sentence(table, best)
    lead = f"Over {study.subsets} subsets " if study.subsets > 1 else ""
    text = f"{lead}{told}; {other}." if told else "No level was tested."
    peak = " ".join(row.sentence for row in study.answers.itertuples() if row.series == study.series[0].name)
    return f"{text} {peak}".strip()


def cautions(study: Study) -> list[str]:
    """What a reader must know before using the numbers."""
    out = []
    bad = study.cells[study.cells["status"] == "inconclusive"]
    if len(bad):
        out.append(
            f"{len(bad)} of {len(study.cells)} runs did not converge. Where a subset is missing for that reason there is no verdict "
            "over the subsets: those that are easy to sample are no random choice. The reasons stand under Subset by subset."
        )
    if (study.cells["status"] == "biased").any():
        out.append(
            "Unadjusted Langevin samples another density than the posterior: its rows carry no verdict and stand in no mean."
        )
    if study.how == "overlapping":
        from data.subsets import HOW

        out.append(f"The subsets are not disjoint: {HOW[study.how]}.")
    return out


def facts(study: Study) -> Rows:
    """The question in a few lines."""
    from data.subsets import HOW

    problem = study.problem
    rows: Rows = [("data", problem["data"]), ("patterns P of a subset", str(problem["P"]))]
    if study.subsets > 1:
        rows.append(("subsets", f"{study.subsets}: {HOW.get(study.how, 'as given')}"))
    return rows + network(problem)


def provenance(study: Study) -> list[tuple[str, Rows]]:
    """How the subsets were made and sampled; each subset's own report has the rest."""
    from compare.provenance import software

    data: Rows = []
    for one in study.series:
        for k, report in enumerate(one.reports, 1):
            about = report.cells[0].problem.dataset
            rows = about.provenance.get("rows", {})
            told = {"sha256": about.fingerprint[:16], "seed": report.settings.get("seed")}
            told |= {key: rows[key] for key in ("rule", "sha256") if key in rows} if isinstance(rows, dict) else {}
            data.append((f"{one.name}, subset {k}", f"{about.name}: {compact(told)}"))
    run = study.series[0].reports[0].cells[0].run.manifest
    machine: Rows = [("sampler", str(run["sampler"])), ("device", str(run["device"])), ("precision", str(run["dtype"]))]
    if run.get("git_commit"):
        machine.append(("git commit", str(run["git_commit"])))
    settings = [(key, compact(value)) for key, value in study.settings.items()]
    return [
        ("Data", data),
        ("Chains", machine),
        ("This report", [*software().items(), *settings]),
    ]


def figures(study: Study) -> list[Figure]:
    """The effect against T on every series, and the budget of the data."""
    budget = study.budget[study.budget["series"] == study.series[0].name]
    found = [effect(study), budget_figure(budget)]
    if found[1] is not None and study.subsets > 1:
        caption = (
            "Where the error of Eq. (4) comes from: random-effects mean over the subsets, with its standard error. The spread "
            "between subsets stands in the table."
        )
        found[1] = found[1]._replace(caption=caption)
    return [figure for figure in found if figure is not None]


def effect(study: Study) -> Figure | None:
    """measured - prior against T: every subset thin, the mean over subsets with its 95% interval, and the levels' means."""
    panels = [(one, N1) for one in study.series for N1 in dict.fromkeys(c.problem.N1 for c in one.reports[0].cells)]
    several = [panel for panel in panels if len({c.problem.T for c in panel[0].reports[0].cells}) > 1]
    if not several:
        return None
    columns = min(2, len(several))
    rows = -(-len(several) // columns)

    def paint(figure: Any) -> None:
        axes = figure.subplots(rows, columns, squeeze=False).ravel()
        for ax, (one, N1) in zip(axes, several, strict=False):
            _panel(ax, study.levels[(study.levels["series"] == one.name) & (study.levels["N1"] == N1)], one, N1)
            ax.set_title(f"{one.name}, N₁ = {N1}", loc="left")
        for ax in axes[len(several) :]:
            ax.set_visible(False)
        handles, names = axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=4)

    told = "; ".join(
        f"{row.series}, N1 = {row.N1}, T = {row.T:g}: measured minus Eq. (4) {with_error(row.difference, row.se, sign=True)}"
        for row in study.levels[study.levels["level"] == "eq4"].itertuples()
    )
    caption = (
        "What learning adds to the prior's ⟨D²⟩, against temperature, on the data and on each control. Black: measured, the mean over "
        "subsets with its standard error over subsets; grey: each subset; an open circle is a run that did not converge. Coloured: "
        "levels of the theory, averaged over the same subsets."
    )
    size = (4.2 * columns + 0.4, 3.1 * rows + 0.7)
    return drawn("effect", "The effect against temperature", size, paint, caption, f"Effect against T. {told}.", True)


def _panel(ax: Any, levels: pd.DataFrame, one: Any, N1: int) -> None:
    rows = [sorted((c for c in r.cells if c.problem.N1 == N1), key=lambda c: c.problem.T) for r in one.reports]
    T = np.array([c.problem.T for c in rows[0]])
    effects = np.array([[c.measurement.d2.mean - c.prediction.prior for c in row] for row in rows])
    good = np.array([[c.measurement.converged for c in row] for row in rows])
    for values, usable in zip(effects, good, strict=True):
        ax.plot(T, values, color="#b5bbc1", linewidth=0.8, zorder=1)
        ax.plot(T[~usable], values[~usable], "o", color="#8a949c", markerfacecolor="white", markersize=4, zorder=2)
    if len(rows) > 1:
        error = effects.std(axis=0, ddof=1) / np.sqrt(len(rows))
    else:
        error = np.array([c.measurement.d2.se for c in rows[0]])
    ax.errorbar(
        T, effects.mean(axis=0), error, fmt="o", color=COLOURS["measured"], markersize=4, label="measured", zorder=5
    )
    for level in DRAWN:
        if level in set(levels["level"]):
            means = [
                np.mean([row[i].prediction.levels[level].value - row[i].prediction.prior for row in rows])
                for i in range(len(T))
            ]
            ax.plot(T, means, color=COLOURS[level], linestyle=LINES[level], label=label(level), zorder=3)
    ax.set_xscale("log")
    ax.set_xlabel("temperature T")
    ax.set_ylabel("⟨D²⟩ − prior")


def render(study: Study, figures: list[Figure]) -> str:
    """The page as a string; texts from data or user are escaped."""
    tables = shown(study)
    present = {"answers": "answers" in tables, "weights": "weights" in tables}
    main = study.series[0]
    samplers = {cell.run.manifest["sampler"] for one in study.series for r in one.reports for cell in r.cells}
    names = [report.cells[0].problem.dataset.name for report in main.reports[:1]]
    return fill(
        "study.html.j2",
        title=f"Agreement report: {study.subject}",
        subject=study.subject,
        version=study.version,
        status=study.verdict_word,
        sentence=study.sentence,
        warnings=cautions(study),
        contents=[(anchor, name) for anchor, name in SECTIONS if present.get(anchor, True)],
        facts=facts(study),
        subsets=study.subsets,
        titles=[(one.name, one.title) for one in study.series],
        answers=[f"{row.series}: {row.sentence}" for row in study.answers.itertuples()],
        margin=f"{100 * study.margin:g} %",
        test_level=f"{100 * study.test_level:g} %",
        tables=Lookup(tables),
        figures=Lookup({figure.name: figure for figure in figures}),
        equations=equations.equations(),
        symbols=equations.symbols(),
        provenance=provenance(study),
        citations=citations(sorted(samplers), names),
        made=study.made,
    )
