"""What survives at infinite width, over the cells of a campaign: planted limits are found, spread between subsets is counted."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import t as student

from compare.report.campaign_data import prepared
from compare.report.campaign_page import render_campaign
from compare.widths import fitted, surviving

WIDTHS = (25, 50, 100, 200)


def table(rng, c0, c1=2.0, se=0.01, seeds=1, tau=0.0, alpha=1.0, widths=WIDTHS, **more):
    """Cells whose Eq. (4) is off by c0 + c1/N1 of the effect, with noise se and a spread tau between subsets."""
    rows = []
    for N1 in widths:
        for seed in range(seeds):
            off = c0 + c1 / N1 + se * rng.normal() + tau * rng.normal()
            rows.append(
                {"data": "digits", "labels": "true", "activation": "erf", "lambda0": 1.0, "lambda1": 1.0, "T": 0.1}
                | {"N1": N1, "P": round(alpha * N1), "alpha": alpha, "subset_seed": seed, "group": f"{N1}-{seed}"}
                | {"state": "done", "status": "ok", "measured": 2.0, "measured_se": se, "prior_theory": 1.0}
                | {"eq4": 2.0 - off, "eq4_se": 0.0, "eq4_outcome": "differs", "eq4_z": off / se}
                | {"eq4_relative_to_effect": off, "eq4_relative_se": se}
                | more
            )
    return pd.DataFrame(rows)


def draw(rng, c0, seeds, tau, se=0.01):
    """(N1, values, errors) alone, of such cells."""
    N1 = np.repeat(WIDTHS, seeds).astype(float)
    return N1, c0 + 2.0 / N1 + np.hypot(se, tau) * rng.normal(size=len(N1)), np.full(len(N1), se)


def verdict(frame):
    found = surviving(prepared(frame), ("eq4",))
    assert len(found) == 1
    return found.iloc[0]


@pytest.mark.parametrize(
    ("c0", "outcome"), [(0.3, "survives"), (-0.3, "survives"), (0.0, "vanishes"), (0.1, "inconclusive")]
)
def test_a_planted_limit_is_judged(c0, outcome):
    found = verdict(table(np.random.default_rng(0), c0))
    assert found["outcome"] == outcome
    assert abs(found["c0"] - c0) < 4 * found["c0_se"]
    assert abs(found["c1"] - 2.0) < 4 * found["c1_se"]
    assert (found["widths"], found["cells"], found["N1_min"], found["N1_max"]) == (4, 4, 25, 200)


def test_spread_between_subsets_is_in_the_error():
    """Five subsets a width that spread by five times their errors, 400 tables: an interval of 95% covers c0 in 0.95 +- 0.011 of them
    (limits: four of these); without the spread the errors would be five times too small and cover a third."""
    rng = np.random.default_rng(1)
    found = [fitted(*draw(rng, 0.2, 5, 0.05)) for _ in range(400)]
    reach = student.isf(0.025, 16)
    assert 0.906 < np.mean([abs(fit.c0 - 0.2) < reach * fit.c0_se for fit, _, _ in found]) < 0.994
    assert np.mean([tau for _, _, tau in found]) == pytest.approx(0.05, rel=0.05)
    assert np.mean([fit.p < 0.05 for fit, _, _ in found]) < 0.1, "the form holds, and its fit says so"
    assert np.mean([abs(fit.c0 - 0.2) < 0.4 * fit.c0_se for fit, _, _ in found]) < 0.5, "errors five times too small"


def test_false_verdicts_at_the_margin_are_as_rare_as_stated():
    """c0 exactly at the margin, 600 tables with spread: "vanishes" 5% (sd 0.9%), "survives" 2.5% (sd 0.6%); four sd up."""
    rng = np.random.default_rng(2)
    outcomes = [fitted(*draw(rng, 0.1, 4, 0.03))[1].outcome for _ in range(600)]
    assert outcomes.count("vanishes") / 600 < 0.086
    assert outcomes.count("survives") / 600 < 0.05


def test_only_converged_cells_of_one_alpha_are_fitted_together():
    rng = np.random.default_rng(2)
    frame = table(rng, 0.3)
    assert surviving(prepared(table(rng, 0.3, widths=(25, 50))), ("eq4",)).empty, "two widths cannot test the form"
    spoiled = frame.assign(status=["inconclusive", "ok", "ok", "ok"])
    assert verdict(spoiled)["cells"] == 3
    assert surviving(prepared(frame.assign(status="inconclusive")), ("eq4",)).empty
    both = pd.concat([frame, table(rng, 0.0, alpha=0.5)])
    outcomes = surviving(prepared(both), ("eq4",)).set_index("alpha")["outcome"]
    assert outcomes.to_dict() == {1.0: "survives", 0.5: "vanishes"}


def test_the_page_shows_it_with_its_error():
    html = render_campaign(table(np.random.default_rng(3), 0.3))
    assert 'id="widths"' in html
    section = html[html.index('id="widths"') :].split("</section>")[0]
    assert "survives" in section
    assert "25 to 200, 4 of them" in section
    assert "±" in section
    assert 'id="widths"' not in render_campaign(table(np.random.default_rng(3), 0.3, widths=(25, 50)))
