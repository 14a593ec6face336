"""What stands beside the results: the facts of the problem, and the full provenance of data, chains and software."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from compare.payload import common_problem
from compare.provenance import software

if TYPE_CHECKING:
    from compare.result import Report

Rows = list[tuple[str, str]]


def facts(report: Report) -> Rows:
    """The problem in a few lines."""
    problem = common_problem([cell.problem for cell in report.cells])
    plus = problem["P_plus"]
    return [
        ("data", problem["data"]),
        ("patterns P", f"{problem['P']} ({plus} + {problem['P'] - plus})"),
        *network(problem),
    ]


def network(problem: dict[str, Any]) -> Rows:
    """What `common_problem` says of the networks."""
    return [
        ("inputs N₀", str(problem["N0"])),
        ("hidden units N₁", ", ".join(str(width) for width in problem["N1"])),
        ("load α = P/N₁", ", ".join(f"{problem['P'] / width:.4g}" for width in problem["N1"])),
        ("temperatures T", ", ".join(f"{t:g}" for t in problem["T"])),
        ("prior precisions λ₀, λ₁", f"{problem['lambda0']:g}, {problem['lambda1']:g}"),
        ("activation σ", problem["activation"]),
    ]


def provenance(report: Report) -> list[tuple[str, Rows]]:
    """Groups of facts from which the numbers can be made again."""
    cells = report.cells
    dataset = cells[0].problem.dataset
    data: Rows = [("name", dataset.name), ("sha256 of X, y and classes", dataset.fingerprint)]
    data += flat(dataset.provenance)
    chains: Rows = []
    for cell in cells:
        manifest = cell.run.manifest
        kept: dict[str, Any] = {
            key: manifest[key]
            for key in (
                "seed",
                "chains",
                "warmup",
                "draws",
                "thin",
                "settings",
                "options",
                "gradients_per_chain",
                "seconds",
                "resumed",
            )
            if key in manifest
        }
        kept["problem sha256"] = cell.problem.fingerprint
        told = "; ".join(f"{name} {compact(value)}" for name, value in kept.items())
        chains.append((f"N₁ = {cell.problem.N1}, T = {cell.problem.T:g}", told))
    first = cells[0].run.manifest
    machine: Rows = [
        ("device", str(first["device"])),
        ("precision", str(first["dtype"])),
        ("density", str(first.get("density", ""))),
    ]
    machine += [("TF32", "on" if first.get("tf32") else "off")]
    versions = ", ".join(f"{name} {value}" for name, value in first.get("versions", {}).items())
    machine.append(("versions", versions))
    if first.get("git_commit"):
        machine.append(("git commit", str(first["git_commit"])))
    theory: Rows = []
    for cell in cells:
        saddle = cell.prediction.saddle
        theory.append(
            (
                f"N₁ = {cell.problem.N1}, T = {cell.problem.T:g}",
                f"Q̄ = {saddle.value!r}, residual {saddle.residual:.2g}, bracket [{saddle.bracket[0]!r}, {saddle.bracket[1]!r}], "
                f"{saddle.status}, {len(saddle.stationary)} stationary point(s)",
            )
        )
        fourth = cell.prediction.first_order
        if fourth is not None:
            theory.append(("first-order-exact level", f"{fourth.samples} draws of one unit of the prior"))
    return [
        ("Data", data),
        ("Chains", [*machine, *chains]),
        ("Theory", theory),
        ("This report", [*software().items(), *[(key, compact(value)) for key, value in report.settings.items()]]),
    ]


def flat(facts: dict[str, Any], prefix: str = "") -> Rows:
    """Nested facts as rows, `rows: indices` and so on."""
    out: Rows = []
    for key, value in facts.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and value:
            out += flat(value, f"{name}: ")
        else:
            out.append((name, compact(value)))
    return out


def compact(value: Any) -> str:
    """A value as one line of text."""
    if isinstance(value, str):
        return value
    if value is None:
        return "none"
    if isinstance(value, list) and value and all(isinstance(one, (int, str)) for one in value):
        return ", ".join(str(one) for one in value)
    return json.dumps(value, ensure_ascii=False, sort_keys=False)
