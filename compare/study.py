"""Study: one question on several data subsets and on controls; what `compare.verify_subsets` returns, with its tables and files."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compare import store, study_frames
from compare.payload import common_problem, dumps, plain
from compare.provenance import software
from compare.result import JSON, PAGE, Report
from compare.verdict import ALPHA, MARGIN
from data.provenance import version

if TYPE_CHECKING:
    import pandas as pd

    from compare.peak_answer import PeakAnswer
    from compare.peak_subsets import PeakAcross

MAIN = "data"
TABLES = ("answers", "peaks", "levels", "budget", "weights", "cells")


@dataclass(eq=False)
class Series:
    """The reports of one question on every subset: the data themselves (name "data"), or a control.

    reports  one a subset, the same widths and temperatures in each;  folders  of each, relative to the study's; "" where it has none
    """

    name: str
    title: str
    reports: list[Report]
    folders: list[str] = field(default_factory=list)

    @cached_property
    def answers(self) -> list[tuple[int, list[PeakAnswer], PeakAcross | None]]:
        """(N1, the subsets' answers, the one over subsets or None for fewer than three) width by width."""
        return study_frames.peak_answers(self.reports)


@dataclass(eq=False)
class Study:
    """Series of reports, the data first, and what they say together.

    how  how the subsets were chosen: a key of data.subsets.HOW, or ""
    Tables (pandas.DataFrame, columns in compare.study_frames.COLUMNS): answers, peaks, levels, budget, weights, cells.
    """

    series: list[Series]
    how: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    made: str = field(default_factory=lambda: datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"))

    @cached_property
    def answers(self) -> pd.DataFrame:
        """The answer per data set: one row a series and width."""
        return study_frames.frame("answers", study_frames.answers(self.series))

    @cached_property
    def peaks(self) -> pd.DataFrame:
        """The answer on each subset alone."""
        return study_frames.frame("peaks", study_frames.peaks(self.series))

    @cached_property
    def levels(self) -> pd.DataFrame:
        """Every level over the subsets: random-effects mean, spread, prediction interval, verdict."""
        return study_frames.frame("levels", study_frames.levels(self.series, self.margin))

    @cached_property
    def budget(self) -> pd.DataFrame:
        """The error budget of Eq. (4) over the subsets."""
        return study_frames.frame("budget", study_frames.budget(self.series))

    @cached_property
    def weights(self) -> pd.DataFrame:
        """Slope of measured on predicted <w w> over the subsets."""
        return study_frames.frame("weights", study_frames.weights(self.series))

    @cached_property
    def cells(self) -> pd.DataFrame:
        """One row a run: its measurement, Eq. (4)'s verdict, whether it converged."""
        return study_frames.frame("cells", study_frames.cells(self.series))

    @property
    def subsets(self) -> int:
        return len(self.series[0].reports)

    @property
    def margin(self) -> float:
        return float(self.settings.get("margin", MARGIN))

    @property
    def test_level(self) -> float:
        return ALPHA

    @property
    def converged(self) -> bool:
        """Whether every run is acceptable; a biased sampler's run is not an unconverged one."""
        return all(c.measurement.diagnosis.ok for one in self.series for report in one.reports for c in report.cells)

    @cached_property
    def main_levels(self) -> pd.DataFrame:
        """`levels` of the data themselves."""
        return self.levels[self.levels["series"] == MAIN]

    @property
    def verdict_word(self) -> str:
        """differs, inconclusive or agrees: Eq. (4) on the data over all widths and temperatures."""
        from compare.report.sentences import overall

        return overall(self.main_levels)

    @cached_property
    def sentence(self) -> str:
        """The verdict on Eq. (4) over the subsets, and the answer on the peak, in words."""
        from compare.report.study import verdict

        return verdict(self)

    @property
    def subject(self) -> str:
        """What was studied, as a title."""
        from compare.report.sentences import subject

        told = subject(self.problem)
        return told if self.subsets == 1 else f"{told}; {self.subsets} subsets"

    @property
    def problem(self) -> dict[str, Any]:
        """What the cells of the data share, without the rows of one subset."""
        shared = common_problem([cell.problem for cell in self.series[0].reports[0].cells])
        return {key: value for key, value in shared.items() if key != "provenance"}

    @property
    def version(self) -> str:
        return version()

    def to_dict(self) -> dict[str, Any]:
        """The object of `verify --subsets --json`, with plain values: every table as records, and what identifies the study."""
        from data.subsets import HOW

        tables = {name: getattr(self, name).to_dict(orient="records") for name in TABLES}
        series = [
            {
                "name": one.name,
                "title": one.title,
                "subsets": [
                    {
                        "folder": folder,
                        "data": report.cells[0].problem.dataset.name,
                        "fingerprint": report.cells[0].problem.dataset.fingerprint,
                        "status": report.status,
                        "provenance": report.cells[0].problem.dataset.provenance,
                    }
                    for folder, report in zip(one.folders or [""] * len(one.reports), one.reports, strict=True)
                ],
            }
            for one in self.series
        ]
        return dict(
            plain(
                {
                    "problem": self.problem,
                    "verdict": {"eq4": self.verdict_word, "sentence": self.sentence},
                    "status": "ok" if self.converged else "inconclusive",
                    "subsets": {"count": self.subsets, "how": self.how, "words": HOW.get(self.how, "")},
                    "settings": self.settings,
                    "series": series,
                    **tables,
                    "software": software(),
                    "made": self.made,
                }
            )
        )

    def write(self, folder: str | Path) -> Path:
        """report.html, report.json, tables/ (CSV and Parquet) and figures/ in `folder`; returns the page's path.

        The subsets' own reports and runs lie in their folders, where `compare.verify_subsets` put them.
        """
        from compare.report.figures import write_figures
        from compare.report.shown import write_frames
        from compare.report.study import figures, render

        folder = Path(folder)
        for name in ("tables", "figures"):
            store.own(folder, name)
        write_frames({name: getattr(self, name) for name in TABLES}, folder / "tables")
        drawn = figures(self)
        write_figures(drawn, folder / "figures")
        store.replace(folder / JSON, dumps(self.to_dict()) + "\n")
        return store.replace(folder / PAGE, render(self, drawn))


def light(report: Report) -> Report:
    """The report without the draws, which lie on disk: what its tables and answers need is computed first."""
    import dataclasses

    from compare.report.tables import NAMES

    for name in (*NAMES, "peak_verdicts", "peak_answers", "sentence"):
        getattr(report, name)
    report.cells = [
        dataclasses.replace(
            cell, run=dataclasses.replace(cell.run, series={"d2": cell.run.series["d2"][:, -1:].copy()}, sums={})
        )
        for cell in report.cells
    ]
    return report
