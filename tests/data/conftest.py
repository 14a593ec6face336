"""Where the shared data lie, and a folder and cache of their own for tests of files at hand."""

import os
from pathlib import Path

import pytest

SHARED = Path(__file__).resolve().parents[2].parent / "shared"


@pytest.fixture
def shared_data(monkeypatch):
    """The shared `.npz` files, through SADDLECHECK_DATA or ../shared/data beside the clone; skips where neither is there."""
    named = os.environ.get("SADDLECHECK_DATA", "").strip()
    top = Path(named) if named else SHARED / "data"
    folder = top / "data" if (top / "data").is_dir() else top
    if not (folder / "cifar10_train_first1000.npz").is_file():
        pytest.skip("needs the shared data: set SADDLECHECK_DATA, or have ../shared/data beside the clone")
    monkeypatch.setenv("SADDLECHECK_DATA", str(top))
    return folder


@pytest.fixture
def reference():
    """The folder of reference numbers; skips where it is not beside the clone."""
    folder = SHARED / "reference"
    if not folder.is_dir():
        pytest.skip("needs ../shared/reference beside the clone")
    return folder


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder that SADDLECHECK_DATA names, an empty cache, and no way to the network."""
    monkeypatch.setenv("SADDLECHECK_DATA", str(tmp_path / "local"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "*")
    (tmp_path / "local").mkdir()
    return tmp_path / "local"
