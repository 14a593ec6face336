"""The battery that a sampler must pass to be believed: `run(name)` gives one CheckResult an item, at a stated false-alarm rate."""

from __future__ import annotations

import dataclasses
import difflib
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from data.errors import InputError
from sampling.battery import (
    calibration,
    density,
    geweke,
    identities,
    importance,
    invariances,
    linear,
    pairwise,
    teacher,
)
from sampling.battery.mutations import mutate, mutations
from sampling.battery.result import CheckResult
from sampling.battery.setting import Setting
from sampling.battery.subject import Subject

__all__ = ["CHECKS", "FALSE_ALARM", "CheckResult", "Setting", "Subject", "mutate", "mutations", "run", "skipped"]

CHECKS: dict[str, Any] = {
    module.NAME: module
    for module in (density, linear, importance, geweke, calibration, teacher, identities, invariances, pairwise)
}
FALSE_ALARM = 1e-3  # that a correct sampler fails any item at all


def skipped(name: str) -> dict[str, str]:
    """Check -> reason, for the checks that have no meaning for a sampler."""
    return {check: module.NOT_FOR[name] for check, module in CHECKS.items() if name in getattr(module, "NOT_FOR", {})}


def run(
    name: str,
    *,
    checks: Sequence[str] | None = None,
    seed: int = 0,
    effort: float = 1.0,
    false_alarm: float = FALSE_ALARM,
    controls: bool = False,
    shared: dict[Any, Any] | None = None,
    progress: Callable[[dict[str, Any]], None] | None = None,
    **options: Any,
) -> list[CheckResult]:
    """Examine the sampler `name`; one CheckResult an item, in the order of CHECKS.

    checks       names of the items, all by default (those of `skipped` are left out)
    effort       factor on the numbers of draws: below 1 quicker and less sharp, above 1 slower and sharper; the false-alarm rate stays
    false_alarm  probability that a correct sampler fails any item, shared equally by the items that involve chance
    controls     after each item, run it on a spoiled sampler; that result, named "... control", passes if the item FAILS there
    shared       a dict that several calls of one seed and effort pass on: what does not depend on the sampler (the partners that it
                 is compared with) is then sampled once
    options      the sampler's own, as for `sampling.run`: density="joint" or "collapsed" where there is a choice, warmup (steps),
                 and those of its `build`

    An unadjusted sampler (langevin) is biased and must fail. Raises InputError for an unknown sampler, check or option.
    """
    subject = Subject(name, options)
    wanted = list(CHECKS) if checks is None else list(checks)
    for check in wanted:
        if check not in CHECKS:
            near = difflib.get_close_matches(check, CHECKS, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise InputError(f"check = {check!r} is unknown ({', '.join(CHECKS)}){hint}")
    left_out = skipped(name)
    wanted = [check for check in wanted if check not in left_out]
    if not effort > 0 or not 0 < false_alarm < 1:
        raise InputError(
            f"effort = {effort}, false_alarm = {false_alarm}: effort > 0 and 0 < false_alarm < 1 are wanted"
        )
    chance = max(1, sum(check != density.NAME for check in wanted))
    kept = {} if shared is None else shared
    setting = Setting(seed=seed, effort=effort, false_alarm=false_alarm / chance, shared=kept)
    results: list[CheckResult] = []
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # the problems are small: more threads would only wait for each other
    begun = time.monotonic()
    try:
        for done, check in enumerate(wanted):
            _report(progress, check, done, len(wanted), begun)
            module = CHECKS[check]
            results.append(module.check(subject, setting))
            if controls:
                results.append(control(module, subject, setting))
        _report(progress, "", len(wanted), len(wanted), begun)
    finally:
        torch.set_num_threads(before)
    return results


def control(module: Any, subject: Subject, setting: Setting) -> CheckResult:
    """The check on the subject spoiled by the check's own mutation: passes if the check fails."""
    spoiled = module.check(mutate(subject, module.CONTROL), setting)
    return dataclasses.replace(
        spoiled,
        name=f"{module.NAME} control",
        passed=not spoiled.passed,
        detail=f"with {module.CONTROL} this must fail; {spoiled.detail}",
    )


def _report(progress: Callable[[dict[str, Any]], None] | None, check: str, done: int, total: int, begun: float) -> None:
    if progress is None:
        return
    elapsed = time.monotonic() - begun
    left = elapsed * (total - done) / done if done else None
    progress({"phase": check, "done": done, "total": total, "elapsed_s": elapsed, "eta_s": left})
