"""A campaign of cells that take a fraction of a second: P = 6 digits, 8 units, a handful of draws."""

from __future__ import annotations

from pathlib import Path

import pytest

from sampling.campaign import catalog, spec
from sampling.campaign.source import parse_toml

SMALL = """
title = "small"
[grid]
data = "digits"
P = 6
N1 = 8
T = {T}
labels = {labels}
[sampling]
chains = 4
warmup = 10
draws = 20
[work]
tries = 2
"""


@pytest.fixture
def small():
    """A function (T, labels, **replace) -> Spec of the small campaign."""

    def make(T="[1.0]", labels='["true"]', more=""):
        return spec.validate(parse_toml(SMALL.format(T=T, labels=labels) + more))

    return make


@pytest.fixture
def planned(small, tmp_path: Path):
    """A function -> (folder, cells) of a small campaign whose catalogue is written."""

    def make(*arguments, folder: Path | None = None, **named):
        folder = tmp_path / "out" if folder is None else folder
        path = catalog.write(folder, small(*arguments, **named))
        return folder, list(catalog.read(path))

    return make
