"""deepbays, the peer at one hidden layer, loaded without its __init__ files: those need torchvision and cupy, its theory does not."""

from __future__ import annotations

import importlib
import importlib.util
import sys
import types
from typing import Any

VERSION = "0.1.11"  # from the package registry, installed without its dependencies: an extra of the benchmarks


class Missing(ImportError):
    """deepbays is not installed, or its theory cannot be imported here; says which."""


def one_hidden_layer() -> Any:
    """deepbays' class of the theory of one hidden layer, scalar output. Raises Missing."""
    found = importlib.util.find_spec("deepbays") if "deepbays" not in sys.modules else sys.modules["deepbays"].__spec__
    if found is None or found.submodule_search_locations is None:
        raise Missing(f"deepbays is not installed: pip install --no-deps deepbays=={VERSION}")
    root = list(found.submodule_search_locations)
    for name, path in (("deepbays", root), *((f"deepbays.{one}", [f"{root[0]}/{one}"]) for one in ("rkgp", "kernels"))):
        if name not in sys.modules:
            package = types.ModuleType(name)
            package.__path__, package.__spec__ = path, found if name == "deepbays" else None
            sys.modules[name] = package
    try:
        kernels = importlib.import_module("deepbays.kernels.kernels")
        # The package's __init__ would have taken these names from there.
        vars(sys.modules["deepbays.kernels"]).update({k: v for k, v in vars(kernels).items() if not k.startswith("__")})
        sys.modules["deepbays"].kernels = sys.modules["deepbays.kernels"]  # type: ignore[attr-defined]
        return importlib.import_module("deepbays.rkgp.theory_1HL_FC_single_output").FC_1HL
    except ImportError as error:
        raise Missing(f"deepbays cannot be imported: {error}") from error
