"""Several reports as the table of a campaign: the columns of `compare.campaign.table`, and the peaks of every group."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.errors import InputError
from data.labels import kind

if TYPE_CHECKING:
    import pandas as pd

    from compare.result import Report
    from compare.verify import Stage


def cell_rows(name: str, page: str, report: Report) -> Iterator[dict[str, Any]]:
    """One row a cell of a report: problem, sampler, cost, and `compare.campaign.columns`."""
    from compare.campaign import columns

    for cell in report.cells:
        problem, manifest, d2 = cell.problem, cell.run.manifest, cell.measurement.d2
        about = problem.dataset.provenance
        yield {
            "id": problem.fingerprint[:12],
            "group": name,
            "page": page,
            "state": "done",
            "data": problem.dataset.name,
            "labels": kind(problem.dataset) or "true",
            "subset_seed": about["rows"].get("seed") if isinstance(about.get("rows"), dict) else None,
            "P": problem.P,
            "N0": problem.N0,
            "N1": problem.N1,
            "alpha": problem.alpha,
            "T": problem.T,
            "lambda0": problem.lambda0,
            "lambda1": problem.lambda1,
            "activation": problem.activation,
            "sampler": manifest["sampler"],
            "seed": manifest.get("seed"),
            "device": manifest.get("device"),
            "biased": cell.run.biased,
            "d2_ess_bulk": d2.ess,
            "d2_rhat": d2.rhat,
            "seconds": float(sum(manifest["seconds"].values())),
            "git_commit": manifest.get("git_commit"),
            "dataset_fingerprint": problem.dataset.fingerprint,
            "note": "; ".join(cell.measurement.diagnosis.reasons),
        } | columns(cell)


def peak_rows(name: str, page: str, report: Report) -> Iterator[dict[str, Any]]:
    """One row a curve of `Report.peak`, with what identifies the group."""
    shared = {
        "group": name,
        "page": page,
        "data": report.cells[0].problem.dataset.name,
        "labels": kind(report.cells[0].problem.dataset) or "true",
        "P": report.cells[0].problem.P,
    }
    for row in report.peak.to_dict(orient="records"):
        yield shared | row


def collect(reports: Mapping[str, tuple[str, Report]]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """(cells, peaks) of several reports: name of the group -> (path of its page, Report)."""
    import pandas as pd

    cells = [row for name, (page, report) in reports.items() for row in cell_rows(name, page, report)]
    peaks = [row for name, (page, report) in reports.items() for row in peak_rows(name, page, report)]
    return pd.DataFrame(cells), pd.DataFrame(peaks)


def collect_folders(
    folders: Sequence[str | Path], out: str | Path, *, title: str = "Reports", stage: Stage | None = None
) -> Path:
    """One page, with its tables and figures, over folders that `saddlecheck verify` wrote; returns its path.

    Theory, budget and verdicts are computed anew from the stored runs; a folder without its report.html gets one. Raises InputError
    where a folder is given twice, holds no runs, or one of them is damaged.
    """
    from compare.report.campaign_page import write_campaign_page
    from compare.result import PAGE
    from compare.verify import reread

    out = Path(out)
    places = [Path(folder).resolve() for folder in folders]
    if len(set(places)) < len(places):
        raise InputError("a folder is given twice: name each once")
    names = _names(places)
    reports: dict[str, tuple[str, Report]] = {}
    for place, name in zip(places, names, strict=True):
        report = reread(place, stage=stage)
        if not (place / PAGE).is_file():
            report.write(place)
        reports[name] = (Path(os.path.relpath(place / PAGE, out.resolve())).as_posix(), report)
    cells, peaks = collect(reports)
    margins = {report.margin for _, report in reports.values()}
    if len(margins) > 1:
        raise InputError(f"the reports were made with different margins, {sorted(margins)}: make them anew with one")
    return write_campaign_page(cells, out, peaks=peaks, title=title, margin=margins.pop())


def _names(places: Sequence[Path]) -> list[str]:
    """The folders' own names, with as much of the path before them as tells them apart."""
    depth = 1
    while True:
        names = ["/".join(place.parts[-depth:]) for place in places]
        if len(set(names)) == len(names):
            return names
        depth += 1
