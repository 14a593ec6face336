"""Imports: the arrows between packages, light packages, no global switch flipped, and the known trap in `import arviz`."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
OURS = {"data", "theory", "sampling", "compare"}
ALLOWED = {"data": {"data"}, "theory": {"data", "theory"}, "sampling": {"data", "sampling"}, "compare": OURS}
HEAVY = {"torch", "jax", "jaxlib", "numpyro", "arviz", "xarray", "pandas", "pydantic", "matplotlib", "dask", "typer"}


def imported(source: str) -> set[str]:
    """Top-level names that a source file imports, anywhere in it, functions and TYPE_CHECKING blocks included."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute, so that the arrows can be read"
            found.add((node.module or "").split(".")[0])
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in ("import_module", "__import__"):
                found.add(str(node.args[0].value).split(".")[0])
    return found


@pytest.mark.parametrize("package", sorted(ALLOWED))
def test_arrows(package):
    files = sorted((ROOT / package).rglob("*.py"))
    assert files, f"{package} has no files"
    wrong = {
        f"{path.relative_to(ROOT)} imports {name}"
        for path in files
        for name in imported(path.read_text(encoding="utf-8")) & (OURS - ALLOWED[package])
    }
    assert not wrong


def test_arrows_are_seen():
    """The reader of imports finds what it is meant to forbid, wherever it hides."""
    for line in ("import theory", "import theory.action as t", "from theory.predict import predict"):
        assert "theory" in imported(f"def f():\n    if True:\n        {line}\n")
    assert "theory" in imported("import importlib\nx = importlib.import_module('theory.action')\n")
    assert "theory" not in imported("import data\n'''import theory'''\n")


@pytest.mark.parametrize(
    ("package", "allowed"),
    [
        ("data", set()),
        ("theory", set()),
        ("sampling", {"torch"}),
        ("compare", set()),
        ("compare.cli", {"typer"}),
    ],
)
def test_import_is_light_and_flips_no_switch(package, allowed):
    """A fresh interpreter that imports a package has loaded nothing heavy, and torch's and jax's defaults are as they were."""
    program = f"""
import json, sys
import {package}
loaded = sorted({{name.split(".")[0] for name in sys.modules}} & set({sorted(HEAVY)!r}))
found = {{"loaded": loaded}}
if "torch" in sys.modules:
    import torch
    found["dtype"] = str(torch.get_default_dtype())
    found["grad"] = torch.is_grad_enabled()
    found["deterministic"] = torch.are_deterministic_algorithms_enabled()
print(json.dumps(found))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert set(found["loaded"]) <= allowed
    if "dtype" in found:
        assert (found["dtype"], found["grad"], found["deterministic"]) == ("torch.float32", True, False)


def test_reference_leaves_jax_as_it_was():
    """Turning on jax's 64-bit mode at import would change everybody else's random numbers."""
    program = "import sampling.reference, jax; print(jax.config.jax_enable_x64, jax.numpy.ones(1).dtype)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["False", "float32"]


def test_arviz_imports_beside_this_matplotlib():
    """arviz 0.23 fails to import beside matplotlib 3.11 and arviz-plots while `pip check` stays clean."""
    import arviz
    import numpy as np

    assert float(arviz.ess(np.random.default_rng(0).normal(size=(4, 500)))) > 1000
