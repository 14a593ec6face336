"""What made the numbers of a run: versions, device in words, git commit, arithmetic in force. No host name, no path."""

from __future__ import annotations

import contextlib
import importlib.metadata
import platform
import subprocess
from pathlib import Path

import torch

PACKAGES = ("saddlecheck", "torch", "numpy", "scipy", "arviz", "jax", "numpyro", "xarray")
ROOT = Path(__file__).resolve().parent.parent


def versions() -> dict[str, str]:
    """Versions of Python and of each of PACKAGES that is installed; saddlecheck from a checkout has its pyproject's version."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    project = ROOT / "pyproject.toml"
    if "saddlecheck" not in found and project.is_file():
        import tomllib

        found["saddlecheck"] = str(tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"])
    return found


def device_name(device: str) -> str:
    """The device in words: the GPU's name, or the processor's architecture."""
    if device.startswith("cuda"):
        return f"{device} ({torch.cuda.get_device_name(device)})"
    return f"{device} ({platform.machine()})"


def precision() -> dict[str, str]:
    """How float32 matrix products are done on each kind of device ("ieee" is full float32, "tf32" and "bf16" are not)."""
    return {
        "cuda": torch.backends.cuda.matmul.fp32_precision,
        "cpu": torch.backends.mkldnn.matmul.fp32_precision,  # type: ignore[attr-defined]  # not in the stubs
    }


def git_commit() -> str | None:
    """The commit of the checkout that the code runs from, with "+changes" where files differ; None outside a checkout."""
    if not (ROOT / ".git").exists():
        return None

    def git(*words: str) -> str:
        command = ["git", "-C", str(ROOT), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.strip()

    try:
        return git("rev-parse", "HEAD") + ("+changes" if git("status", "--porcelain", "-uno") else "")
    except (OSError, subprocess.SubprocessError):
        return None
