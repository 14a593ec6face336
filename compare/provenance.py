"""Where numbers come from: versions, git commit, machine. Nothing here identifies a person or names a machine."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

PACKAGES = ("numpy", "scipy", "torch", "arviz", "pandas", "xarray", "matplotlib")


def version() -> str:
    """Version of saddlecheck: of the installed distribution, else as the source tree's pyproject.toml says."""
    try:
        return importlib.metadata.version("saddlecheck")
    except importlib.metadata.PackageNotFoundError:
        import tomllib

        source = Path(__file__).parent.parent / "pyproject.toml"
        if not source.is_file():
            return "unknown"
        return str(tomllib.loads(source.read_text(encoding="utf-8"))["project"]["version"])


@functools.cache
def git_commit() -> str | None:
    """Commit of the source tree, with `+changes` where it is not clean, as this process found it; None outside a checkout."""
    root = Path(__file__).parent.parent
    if not (root / ".git").exists():
        return None

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, timeout=10, check=True)
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout.strip()

    commit = git("rev-parse", "HEAD")
    if commit is None:
        return None
    return commit + ("+changes" if git("status", "--porcelain", "--untracked-files=no") else "")


def software() -> dict[str, str]:
    """Versions of saddlecheck, Python and the packages that the numbers depend on."""
    found = {"saddlecheck": version(), "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    commit = git_commit()
    if commit is not None:
        found["git commit"] = commit
    found["platform"] = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return found
