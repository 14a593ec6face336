"""Several reports as the table of a campaign: the columns of `compare.campaign.table`, and the peaks of every group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from compare.result import Report


def cell_rows(name: str, page: str, report: Report) -> Iterator[dict[str, Any]]:
    """One row a cell of a report: problem, sampler, cost, and `compare.campaign.columns`."""
    from compare.campaign import columns

    for cell in report.cells:
        problem, manifest, d2 = cell.problem, cell.run.manifest, cell.measurement.d2
        about = problem.dataset.provenance
        kind = about.get("labels", {})
        yield {
            "id": problem.fingerprint[:12],
            "group": name,
            "page": page,
            "state": "done",
            "data": problem.dataset.name,
            "labels": kind.get("kind", "true") if isinstance(kind, dict) else str(kind),
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
    kind = report.cells[0].problem.dataset.provenance.get("labels", {})
    shared = {
        "group": name,
        "page": page,
        "data": report.cells[0].problem.dataset.name,
        "labels": kind.get("kind", "true") if isinstance(kind, dict) else str(kind),
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
