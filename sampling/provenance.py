"""What made the numbers of a run, beside `data.provenance`: packages that sampling rests on, device in words, arithmetic in force."""

from __future__ import annotations

import platform

import torch

PACKAGES = ("torch", "numpy", "scipy", "arviz", "jax", "numpyro", "xarray")


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
