"""One self-contained HTML page for a whole campaign or for several reports, with its tables and figures as files."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from compare import store
from compare.provenance import software
from compare.report import campaign_data as numbers
from compare.report import campaign_tables as show
from compare.report import equations
from compare.report.campaign_figures import campaign_figures
from compare.report.citations import citations, methods_of
from compare.report.figures import Figure, write_figures
from compare.report.page import Lookup, fill
from compare.report.shown import write_frames
from compare.verdict import ALPHA, MARGIN
from compare.widths import WIDTHS, surviving
from data.provenance import version

if TYPE_CHECKING:
    import pandas as pd

PAGE, CELLS = "index.html", "cells"
SECTIONS = (
    ("outcomes", "Outcomes"),
    ("error", "Error of Eq. (4)"),
    ("delta1", "Δ₁"),
    ("curves", "Curves"),
    ("widths", "Infinite width"),
    ("peaks", "Peaks"),
    ("cells", "All cells"),
    ("unresolved", "Without a verdict"),
    ("equations", "Equations"),
    ("provenance", "Provenance"),
    ("cite", "To cite"),
)


def write_campaign_page(
    table: pd.DataFrame,
    out: str | Path,
    *,
    peaks: pd.DataFrame | None = None,
    title: str = "Campaign",
    margin: float = MARGIN,
    facts: Sequence[tuple[str, str]] = (),
    made: str | None = None,
) -> Path:
    """Write index.html, cells.csv and .parquet, tables/ and figures/ into the folder `out`; returns the page's path.

    table   one row a cell, as `compare.campaign.table` or `compare.report.collect.collect` gives it; `page` is the path of the
            cell's report relative to `out`
    peaks   one row a curve, as `collect` gives it;  facts  more rows of provenance (name, value);  made  date, ISO 8601

    Raises InputError where the table has no cells or lacks data, N1 or T.
    """
    from compare.campaign import write_table

    out = Path(out)
    cells, verdicts = _checked(table, peaks)
    out.mkdir(parents=True, exist_ok=True)
    for name in ("tables", "figures"):
        store.own(out, name)
    made_tables = tables(cells, verdicts, margin)
    for suffix in ("csv", "parquet"):
        write_table(table, out / f"{CELLS}.{suffix}")
    write_frames(made_tables, out / "tables")
    drawn = campaign_figures(cells, made_tables["shares"])
    write_figures(drawn, out / "figures")
    names = [f"{CELLS}.csv", f"{CELLS}.parquet", "tables", "figures"]
    return store.replace(
        out / PAGE,
        _render(cells, verdicts, drawn, title=title, margin=margin, facts=facts, made=made, files=names),
    )


def render_campaign(
    table: pd.DataFrame,
    *,
    peaks: pd.DataFrame | None = None,
    title: str = "Campaign",
    margin: float = MARGIN,
    facts: Sequence[tuple[str, str]] = (),
    made: str | None = None,
) -> str:
    """The page as a string, from the same tables; nothing is written. Raises InputError as `write_campaign_page` does."""
    cells, verdicts = _checked(table, peaks)
    drawn = campaign_figures(cells, numbers.shares(cells))
    return _render(cells, verdicts, drawn, title=title, margin=margin, facts=facts, made=made, files=())


def tables(cells: pd.DataFrame, peaks: pd.DataFrame, margin: float = MARGIN) -> dict[str, pd.DataFrame]:
    """What the page's summary shows, full precision, by file name: outcomes, shares, widths, peaks, peak_counts."""
    return {
        "outcomes": numbers.outcomes(cells),
        "shares": numbers.shares(cells),
        "widths": surviving(cells, numbers.TESTED, margin),
        "peaks": peaks,
        "peak_counts": numbers.peak_counts(peaks),
    }


def _checked(table: pd.DataFrame, peaks: pd.DataFrame | None) -> tuple[pd.DataFrame, pd.DataFrame]:
    import pandas as pd

    return numbers.prepared(table), pd.DataFrame() if peaks is None else peaks


def _render(
    cells: pd.DataFrame,
    peaks: pd.DataFrame,
    figures: Sequence[Figure],
    *,
    title: str,
    margin: float,
    facts: Sequence[tuple[str, str]],
    made: str | None,
    files: Sequence[str],
) -> str:
    from sampling.diagnostics import MIN_ESS, RHAT_LIMIT

    found = tables(cells, peaks, margin)
    kept = show.some_rows(cells)
    shown = [
        show.outcomes(found["outcomes"]),
        show.shares(found["shares"]),
        show.widths(found["widths"]),
        show.all_cells(kept),
        show.unresolved(cells),
    ]
    if not peaks.empty:
        shown += [show.peak_counts(found["peak_counts"]), show.peaks(peaks)]
    by_name = {one.name: one for one in shown if one.rows}
    drawn = {figure.name: figure for figure in figures}
    present = {
        "error": "shares" in by_name,
        "delta1": "delta1_share" in drawn,
        "curves": "curves" in drawn,
        "widths": "widths" in by_name,
        "peaks": "peaks" in by_name,
        "unresolved": "unresolved" in by_name,
    }
    counts = {word: int(found["outcomes"][word].iloc[0]) for word in numbers.OUTCOMES} if len(found["outcomes"]) else {}
    reweighted = "method" in peaks and bool((peaks["method"] == "mbar").any())
    used = methods_of("weights_slope" in cells, not peaks.empty, reweighted)
    return fill(
        "campaign.html.j2",
        title=f"Campaign report: {title}",
        subject=title,
        version=version(),
        status=next((word for word in ("differs", "inconclusive", "agrees") if counts.get(word)), "inconclusive"),
        sentence=numbers.sentence(cells, found["outcomes"]),
        contents=[(anchor, name) for anchor, name in SECTIONS if present.get(anchor, True)],
        margin=f"{100 * margin:g} %",
        test_level=f"{100 * ALPHA:g} %",
        rhat_limit=f"{RHAT_LIMIT:g}",
        min_ess=f"{MIN_ESS:g}",
        told=show.told_from_zero(),
        widths=WIDTHS,
        total=len(cells),
        shown=len(kept),
        largest=numbers.largest(found["shares"]),
        peak_sentence=numbers.peak_sentence(found["peak_counts"]),
        facts=summary(cells),
        provenance=[("Cells", [*facts, *origin(cells)]), ("This report", list(software().items()))],
        tables=Lookup(by_name),
        figures=Lookup(drawn),
        equations=equations.equations(),
        symbols=equations.symbols(),
        citations=citations(_seen(cells, "sampler"), _seen(cells, "data"), used),
        files=list(files),
        made=made or datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
    )


def _seen(cells: pd.DataFrame, name: str) -> list[str]:
    """The values of a column in order of appearance, absent ones left out."""
    if name not in cells:
        return []
    return [str(one) for one in cells[name].dropna().unique() if str(one)]


def _few(values: Sequence[str], most: int = 8) -> str:
    return (
        ", ".join(values) if len(values) <= most else f"{', '.join(values[:3])} … {values[-1]} ({len(values)} values)"
    )


def summary(cells: pd.DataFrame) -> list[tuple[str, str]]:
    """The grid in a few lines."""

    def span(name: str) -> str:
        return _few([f"{one:g}" for one in sorted(cells[name].dropna().unique())])

    rows = [
        ("data sets", _few(_seen(cells, "data"))),
        ("labels", _few(_seen(cells, "labels"))),
        ("patterns P", span("P")),
    ]
    rows += [("hidden units N₁", span("N1")), ("load α = P/N₁", span("alpha")), ("temperatures T", span("T"))]
    rows += [
        ("sampler", _few(_seen(cells, "sampler")) or "–"),
        ("activation σ", _few(_seen(cells, "activation")) or "–"),
    ]
    return rows


def origin(cells: pd.DataFrame) -> list[tuple[str, str]]:
    """Provenance of the cells: states, versions, commits, devices, seeds, data checksums, effective draws and cost."""
    rows = []
    for name, words in (
        ("state", "states"),
        ("version", "versions"),
        ("git_commit", "git commits"),
        ("device", "devices"),
    ):
        if name in cells:
            counts = cells[name].dropna().astype(str).value_counts()
            rows.append((words, ", ".join(f"{key} ({count} cells)" for key, count in counts.items() if key)))
    if "seed" in cells:
        rows.append(("seeds of the chains", _few(_seen(cells, "seed"))))
    ess, seconds = cells["d2_ess_bulk"], cells["seconds"].sum()
    told = f"{ess.sum():.0f} in all, {ess.min():.0f} to {ess.max():.0f} a cell" if ess.notna().any() else ""
    rows.append(("effective draws of D²", told))
    rows.append(("cost", f"{seconds:.0f} s of wall time in all, {seconds / 3600:.3g} h"))
    if "dataset_fingerprint" in cells:
        prints = cells.dropna(subset=["dataset_fingerprint"]).drop_duplicates("dataset_fingerprint")
        rows += [
            (f"sha256 of {row['data']}, {row['labels']} labels, P = {row['P']:.0f}", str(row["dataset_fingerprint"]))
            for row in prints.head(100).to_dict(orient="records")
        ]
        if len(prints) > 100:
            rows.append(("further checksums", f"{len(prints) - 100} more in {CELLS}.csv"))
    return [(name, value) for name, value in rows if value]
