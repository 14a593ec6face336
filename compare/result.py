"""Report: the cells of one data set with their tables, verdict and provenance; what `compare.verify` returns."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compare import frames, store
from compare.payload import common_problem, dumps, plain
from compare.provenance import software
from compare.verdict import ALPHA, MARGIN
from data.provenance import version

if TYPE_CHECKING:
    import pandas as pd

    from compare.cell import Cell
    from compare.peak_answer import PeakAnswer
    from theory import Prediction

PAGE, JSON = "report.html", "report.json"


@dataclass(eq=False)
class Report:
    """Cells (N1 outer, T inner) of one data set, and the tables made from them.

    cells     one a width and temperature
    lines     predictions on a grid of T, for the curves of the figure
    settings  what was asked for: margin, seeds, targets
    made      date, ISO 8601, UTC

    Tables (pandas.DataFrame, columns in compare.frames.COLUMNS): levels, budget, decomposition, generalisation, weights, weights_fit,
    convergence, runs, chains, curves, peak.
    """

    cells: list[Cell]
    lines: list[Prediction] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    made: str = field(default_factory=lambda: datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"))

    @cached_property
    def levels(self) -> pd.DataFrame:
        """Every level of the theory against the measurement."""
        return frames.frame("levels", frames.levels(self.cells))

    @cached_property
    def budget(self) -> pd.DataFrame:
        """The error budget of Eq. (4)."""
        return frames.frame("budget", frames.budget(self.cells))

    @cached_property
    def decomposition(self) -> pd.DataFrame:
        """Q, a.fbar, Delta1, Delta2: predicted and measured."""
        return frames.frame("decomposition", frames.decomposition(self.cells))

    @cached_property
    def generalisation(self) -> pd.DataFrame:
        """Generalisation error and <D^2> on test patterns; no rows where the data set has none."""
        return frames.frame("generalisation", frames.generalisation(self.cells))

    @cached_property
    def weights(self) -> pd.DataFrame:
        """Components of <w w>, predicted and measured."""
        return frames.frame("weights", frames.weights(self.cells))

    @cached_property
    def weights_fit(self) -> pd.DataFrame:
        """Slope of measured on predicted <w w>."""
        return frames.frame("weights_fit", frames.weights_fit(self.cells))

    @cached_property
    def convergence(self) -> pd.DataFrame:
        """ESS, R-hat and MCSE of each observable."""
        return frames.frame("convergence", frames.convergence(self.cells))

    @cached_property
    def runs(self) -> pd.DataFrame:
        """What ran and what it cost."""
        return frames.frame("runs", frames.runs(self.cells))

    @cached_property
    def chains(self) -> pd.DataFrame:
        """Mean of D^2 in each chain."""
        return frames.frame("chains", frames.chains(self.cells))

    @cached_property
    def curves(self) -> pd.DataFrame:
        """Levels on a grid of T."""
        return frames.frame("curves", frames.curves(self.lines))

    @cached_property
    def peak_verdicts(self) -> list[Any]:
        """compare.nonmonotone.Verdict of the measured curves and of each level, width by width; none with fewer than three T."""
        from compare.nonmonotone import peaks

        return peaks(self.cells, self.lines)

    @cached_property
    def peak(self) -> pd.DataFrame:
        """Is <D^2> nonmonotonic in T: the measurement and each level; no rows with fewer than three temperatures."""
        from compare.nonmonotone import rows

        return frames.frame("peak", rows(self.peak_verdicts))

    @cached_property
    def peak_answers(self) -> list[PeakAnswer]:
        """Width by width: is there an interior maximum, is it where Eq. (4) puts it, does Delta2 make it."""
        from compare.nonmonotone import answers

        return answers(self.cells, self.peak_verdicts)

    @property
    def margin(self) -> float:
        """Of the equivalence tests, as a share of the effect."""
        return float(self.settings.get("margin", MARGIN))

    @property
    def test_level(self) -> float:
        """Level of each one-sided test."""
        return ALPHA

    @property
    def status(self) -> str:
        """ok, or inconclusive where any run is not acceptable."""
        return "ok" if all(cell.status == "ok" for cell in self.cells) else "inconclusive"

    @cached_property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        from compare.report import sentences

        return sentences.verdict(self)

    @property
    def verdict_word(self) -> str:
        """differs, inconclusive or agrees: Eq. (4) over all cells."""
        from compare.report import sentences

        return sentences.overall(self.levels)

    @property
    def subject(self) -> str:
        """What was studied, as a title."""
        from compare.report.sentences import subject

        return subject(common_problem([cell.problem for cell in self.cells]))

    @property
    def version(self) -> str:
        return version()

    def to_dict(self) -> dict[str, Any]:
        """The object of `verify --json`, with plain values."""
        found = {
            "problem": common_problem([cell.problem for cell in self.cells]),
            "verdict": {"eq4": self.verdict_word, "sentence": self.sentence},
            "status": self.status,
            "settings": self.settings,
            "cells": [cell.to_dict() for cell in self.cells],
            "peak": self.peak.to_dict(orient="records"),
            "peak_answers": [vars(one) | {"sentence": one.sentence} for one in self.peak_answers],
            "runs": self.runs.to_dict(orient="records"),
            "software": software(),
            "made": self.made,
        }
        return dict(plain(found))

    def html(self, files: Sequence[str] = ()) -> str:
        """The report as one self-contained page."""
        from compare.report.figures import figures
        from compare.report.page import render

        return render(self, figures(self), list(files))

    def write(self, folder: str | Path) -> Path:
        """report.html, report.json, tables/ (CSV and Parquet) and figures/ (SVG and PDF) in `folder`; returns the page's path.

        The runs and the data set, which cost, are stored by `compare.verify` as they come.
        """
        from compare.report.figures import figures, write_figures
        from compare.report.page import render
        from compare.report.shown import write_frames
        from compare.report.tables import NAMES

        folder = Path(folder)
        for name in ("tables", "figures"):
            store.own(folder, name)
        written = write_frames({name: getattr(self, name) for name in NAMES}, folder / "tables")
        drawn = figures(self)
        written += write_figures(drawn, folder / "figures")
        written.append(store.replace(folder / JSON, dumps(self.to_dict()) + "\n"))
        kept = [path for path in (folder / store.DATA, folder / store.RUNS) if path.exists()]
        names = sorted({str(path.relative_to(folder).parts[0]) for path in [*written, *kept]})
        return store.replace(folder / PAGE, render(self, drawn, names))
