"""Headless Chromium on a report: found on the machine, never downloaded; skipped with the reason where there is none."""

import shutil

import pytest

ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
]


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    found = next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )
    if found is None:
        pytest.skip("no Chromium on this machine (Debian: apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="session")
def report(tmp_path_factory):
    """The page of a small real job: two widths, two temperatures."""
    from typer.testing import CliRunner

    from compare.cli import app

    folder = tmp_path_factory.mktemp("browser")
    flags = ["--P", "12", "--N1", "6,12", "--T", "0.2,1", "--chains", "4", "--draws", "60", "--warmup", "60"]
    result = CliRunner().invoke(app, ["verify", *flags, "--no-first-order", "--out", str(folder), "--quiet"])
    assert result.exit_code in (0, 3), result.output
    return folder / "report.html"
