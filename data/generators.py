"""Synthetic sets by name, with parameters written after a colon: "gaussian:N0=50", "network-teacher:N1=50,T=0.1"."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from data import synthetic
from data.errors import InputError
from data.problem import Dataset
from data.scaling import Scaling

SYNTHETIC: dict[str, Callable[..., Dataset]] = {
    "gaussian": synthetic.gaussian,
    "clusters": synthetic.clusters,
    "linear-teacher": synthetic.linear_teacher,
    "network-teacher": synthetic.network_teacher,
}


def parameters(name: str) -> dict[str, Any]:
    """Parameters of a synthetic set with their defaults."""
    return {key: parameter.default for key, parameter in inspect.signature(SYNTHETIC[name]).parameters.items()}


def generate(
    name: str,
    options: str,
    classes: str | None,
    P: int | None,
    seed: int | None,
    balanced: bool | None,
    kind: str,
    P_test: int,
) -> Dataset:
    """The synthetic set `name` with `options` ("N0=50,signal=0.3"), standardised by `kind`.

    Raises InputError for an unknown parameter, a value that is no number, or a choice that the set does not have.
    """
    if classes is not None:
        raise InputError(f"classes = {classes!r}: {name} has no class indices to choose among; leave it out")
    defaults = parameters(name)
    free = [key for key in defaults if key not in ("P", "P_test", "seed", "balanced")]
    chosen: dict[str, Any] = {}
    for item in filter(None, (part.strip() for part in options.split(","))):
        key, equals, text = (part.strip() for part in item.partition("="))
        if not equals or key not in free:
            raise InputError(
                f"{name}: cannot read the parameter {item!r}; it takes {', '.join(f'{k}=...' for k in free)}"
            )
        try:
            chosen[key] = type(defaults[key])(text)
        except ValueError:
            raise InputError(
                f"{name}: {key} = {text!r} is not a {'whole ' * isinstance(defaults[key], int)}number"
            ) from None
    if "balanced" in defaults:
        chosen["balanced"] = True if balanced is None else bool(balanced)
    elif balanced:
        raise InputError(f"{name}: classes are the signs of y and cannot be balanced; leave balanced out")
    if kind != "none" and name == "network-teacher":
        raise InputError(f"{name}: standardise = {kind!r} would change the inputs its y was made from; leave it out")
    data = SYNTHETIC[name](P=defaults["P"] if P is None else P, seed=seed or 0, P_test=P_test, **chosen)
    scaling = Scaling.of(data.X, kind)
    changes: dict[str, Any] = {"provenance": {**data.provenance, "standardise": scaling.describe()}}
    if kind != "none":
        changes["X"] = scaling.apply(data.X)
        if data.X_test is not None:
            changes["X_test"] = scaling.apply(data.X_test)
    return data.replace(**changes)
