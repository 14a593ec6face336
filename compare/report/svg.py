"""Matplotlib figures as reproducible SVG and PDF: one style, fixed ids, no date, ready to stand several in one page."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titleweight": "normal",
    "axes.labelsize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.7,
    "axes.edgecolor": "#555555",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "xtick.color": "#333333",
    "ytick.color": "#333333",
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "lines.linewidth": 1.6,
    "errorbar.capsize": 2.5,
    "svg.fonttype": "path",  # glyph outlines: the same picture on a machine without the font
    "svg.hashsalt": "saddlecheck",
    "pdf.fonttype": 42,  # text stays text that can be searched and edited
    "figure.facecolor": "white",
}


def draw(name: str, size: tuple[float, float], paint: Callable[[Figure], None]) -> str:
    """The `<svg>` element of a figure of `size` inches that `paint` fills.

    Ids carry `name` as a prefix, so that several figures can stand in one page; the same data give the same bytes.
    """
    return clean(name, _save(size, paint, "svg", {"Date": None, "Creator": None}).decode())


def pdf(size: tuple[float, float], paint: Callable[[Figure], None]) -> bytes:
    """The same figure as a PDF file of one page, fonts embedded; the same data give the same bytes."""
    return _save(size, paint, "pdf", {"CreationDate": None, "Creator": None, "Producer": None})


def _save(size: tuple[float, float], paint: Callable[[Figure], None], kind: str, metadata: dict[str, None]) -> bytes:
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        paint(figure)
        out = io.BytesIO()
        figure.savefig(out, format=kind, metadata=metadata)
    return out.getvalue()


def clean(name: str, text: str) -> str:
    """The bare `<svg>` element: no XML prologue or metadata, ids prefixed by `name`, size left to the page."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r'(xlink:href|href)="#([^"]+)"', rf'\1="#{name}-\2"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", text)
    return text.strip()
