"""What made numbers: the version of saddlecheck, those of the packages beside it, the git commit. No person, no host name, no path."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def version() -> str:
    """Of the installed distribution, else as the source tree's pyproject.toml says; "unknown" where there is neither."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version("saddlecheck")
    project = ROOT / "pyproject.toml"
    if not project.is_file():
        return "unknown"
    import tomllib

    return str(tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"])


def versions(packages: Sequence[str]) -> dict[str, str]:
    """Of saddlecheck, Python and each of `packages` that is installed."""
    found = {"saddlecheck": version(), "python": platform.python_version()}
    for name in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


@functools.cache
def git_commit() -> str | None:
    """The commit of the checkout that the code runs from, with "+changes" where files differ, as this process found it; None
    outside a checkout."""
    if not (ROOT / ".git").exists():
        return None

    def git(*words: str) -> str:
        command = ["git", "-C", str(ROOT), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.strip()

    try:
        return git("rev-parse", "HEAD") + ("+changes" if git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.SubprocessError):
        return None
