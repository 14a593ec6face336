"""Sphinx: the guide and the API reference, from docstrings. `make docs`; warnings are errors."""

project = "saddlecheck"
author = "The saddlecheck developers"
copyright = author
extensions = ["sphinx.ext.autodoc", "myst_parser"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build"]
html_theme = "furo"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
myst_heading_anchors = 3


def _verbatim(app, what, name, obj, options, lines):
    """Docstrings here are aligned text with equations, not reStructuredText: they are shown as they are written."""
    if lines:
        lines[:] = ["::", "", *("   " + line for line in lines), ""]


def setup(app):
    app.connect("autodoc-process-docstring", _verbatim)
