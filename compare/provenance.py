"""What made a report: versions, git commit, machine. Nothing here identifies a person or names a machine."""

from __future__ import annotations

import os
import platform

from data.provenance import git_commit, versions

PACKAGES = ("numpy", "scipy", "torch", "arviz", "pandas", "xarray", "matplotlib")


def software() -> dict[str, str]:
    """Versions of saddlecheck, Python and the packages that the numbers depend on."""
    found = versions(PACKAGES)
    commit = git_commit()
    if commit is not None:
        found["git commit"] = commit
    found["platform"] = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return found
