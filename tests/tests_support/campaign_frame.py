"""A synthetic table of a campaign: consistent budgets, planted outcomes, failed and inconclusive cells; no sampling."""

import numpy as np
import pandas as pd

SETS = ("digits", "fashion-mnist", "mnist")
LEVELS = ("eq4", "eq3", "eq3_q_averaged", "first_order")


def frame(cells=500, seed=0, name=None):
    """(table, peaks) of about `cells` cells, in groups of 5 widths by 5 temperatures; numbers follow a made-up but consistent law."""
    rng = np.random.default_rng(seed)
    rows = []
    groups = -(-cells // 25)
    for g in range(groups):
        data, labels = name or SETS[g % 3], ("true", "random")[g // 3 % 2]
        group = f"{SETS[g % 3]}-{labels}-{g}"
        for N1 in (25, 50, 100, 200, 400):
            for T in (0.01, 0.1, 0.3, 1.0, 10.0):
                rows.append(_cell(rng, group, data, labels, g, N1, T))
    table = pd.DataFrame(rows[:cells])
    return table, _peaks(table)


def _cell(rng, group, data, labels, g, N1, T):
    P = 100
    prior = N1 * 0.1
    effect = 0.3 * prior * np.exp(-((np.log(T) + 1) ** 2) / 8) * (1.0 if labels == "true" else 0.2)
    delta1, q = 0.05 * effect, 0.01 * effect
    closure = effect * 0.2 / (1 + T) * (P / N1) / 4
    remainder = 0.01 * effect
    eq4 = prior + effect - (-delta1 + q + closure + remainder)
    se = 0.01 * effect
    closure_se = 0.002 * effect
    row = {
        "id": f"{abs(hash((group, N1, T))):016x}", "group": group, "class": "default", "state": "done", "note": "",
        "data": data, "classes": "even/odd", "labels": labels, "subset_seed": g // 6, "P": P, "N1": N1, "alpha": P / N1,
        "T": T, "lambda0": 1.0, "lambda1": 1.0, "activation": "erf", "sampler": "hmc", "seed": 0, "device": "cpu",
        "version": "0.1.0", "git_commit": "0" * 40, "seconds": 12.0, "dataset_fingerprint": f"{g:064x}",
        "page": f"{group}/report.html",
    }  # fmt: skip
    kind = rng.uniform()
    if kind < 0.02:
        return row | {
            "state": "failed",
            "note": "killed after 3 tries",
            "left_out": "failed: killed after 3 tries",
            "page": None,
        }
    measured = prior + effect + se * rng.normal()
    row |= {"measured": measured, "measured_se": se, "prior_theory": prior, "Qbar": 0.9, "infinite_width": prior}
    row |= {"d2_ess_bulk": rng.integers(400, 5000), "d2_rhat": 1 + rng.exponential(0.002)}
    row["status"] = "inconclusive" if kind < 0.06 else "ok"
    if row["status"] != "ok":
        row["note"] = "R-hat of Q is 1.031, above 1.01"
    values = {
        "eq4": eq4,
        "eq3": eq4 - delta1,
        "eq3_q_averaged": eq4 - delta1 + q,
        "first_order": eq4 - delta1 + closure,
    }
    for level, value in values.items():
        level_se = closure_se if level == "first_order" else 0.0
        off, off_se = (measured - value) / (measured - prior), np.hypot(se, level_se) / effect
        word = (
            "agrees" if abs(off) + 1.7 * off_se < 0.1 else "differs" if abs(off) - 2 * off_se > 0.1 else "inconclusive"
        )
        row |= {level: value, f"{level}_se": level_se, f"{level}_z": off / off_se, f"{level}_relative_to_effect": off}
        row |= {f"{level}_relative_se": off_se, f"{level}_outcome": word if row["status"] == "ok" else "inconclusive"}
    parts = {"delta1_dropped": (-delta1, 0.0), "q_fluctuations": (q, 0.0), "gaussian_closure": (closure, closure_se)}
    known = -delta1 + q + closure
    parts |= {"remainder": (measured - eq4 - known, np.hypot(se, closure_se)), "total": (measured - eq4, se)}
    for part, (value, error) in parts.items():
        row |= {f"budget_{part}": value, f"budget_{part}_se": error}
    return row


def _peaks(table):
    rows = []
    for (group, N1), some in table.groupby(["group", "N1"], sort=False):
        one = some.iloc[0]
        shared = {
            "group": group,
            "page": f"{group}/report.html",
            "data": one["data"],
            "labels": one["labels"],
            "P": one["P"],
        }
        for curve in ("measured", "eq4"):
            yes = one["labels"] == "true"
            at = (
                {"T_peak": 0.37, "T_low": 0.2, "T_high": 0.6}
                if yes
                else {"T_peak": np.nan, "T_low": np.nan, "T_high": np.nan}
            )
            rows.append(
                shared
                | {
                    "N1": N1,
                    "curve": curve,
                    "outcome": "yes" if yes else "no",
                    "reason": "",
                    "T_min": 0.01,
                    "T_max": 10.0,
                }
                | {"p": 1e-5 if yes else 0.6, **at, "height": 1.0, "height_se": 0.01, "rise": 0.3, "rise_se": 0.02}
                | {"fall": 0.2, "fall_se": 0.02, "witness": "yes", "flat": 0.05}
            )
    return pd.DataFrame(rows)
