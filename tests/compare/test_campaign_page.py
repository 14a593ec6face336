"""The page of a campaign: complete without script, sums that close, hostile names harmless, files beside it, links to reports."""

import math
import re

import numpy as np
import pandas as pd
import pytest
from tests_support.campaign_frame import frame

from compare.budget import PARTS
from compare.report import campaign_data as numbers
from compare.report import campaign_tables as show
from compare.report.campaign_figures import chosen
from compare.report.campaign_page import render_campaign, write_campaign_page
from compare.report.collect import collect
from compare.report.wording import with_error
from data.errors import InputError


@pytest.fixture(scope="module")
def made():
    return frame(150)


@pytest.fixture(scope="module")
def cells(made):
    return numbers.prepared(made[0])


@pytest.fixture(scope="module")
def folder(made, tmp_path_factory):
    out = tmp_path_factory.mktemp("campaign")
    write_campaign_page(made[0], out, peaks=made[1], title="Three data sets", made="2026-01-01")
    return out


@pytest.fixture(scope="module")
def html(folder):
    return (folder / "index.html").read_text(encoding="utf-8")


def test_outcomes_are_counted_once_each(made, cells):
    counts = numbers.outcomes(cells)
    assert list(counts["level"]) == ["eq4", "eq3", "eq3_q_averaged", "first_order"]
    for row in counts.itertuples():
        assert row.agrees + row.differs + row.inconclusive + row.no_verdict == len(made[0]) == row.cells
        assert row.differs == (made[0][f"{row.level}_outcome"] == "differs").sum()


def test_shares_of_the_error_add_up_and_their_errors_are_those_of_resampled_noise(cells):
    """The parts of each data set sum to its error; the stated errors are the spread over fresh noise (20 % with 200 repeats: 4 sd)."""
    table = numbers.shares(cells)
    assert table["cells"].sum() == (cells["status"] == "ok").sum()
    for row in table.to_dict(orient="records"):
        assert math.isclose(sum(row[f"of_effect_{name}"] for name in PARTS), row["of_effect"], abs_tol=1e-12)
        if math.isfinite(row["of_error_delta1_dropped"]):
            assert math.isclose(sum(row[f"of_error_{name}"] for name in PARTS), 1.0, abs_tol=1e-9)
        assert sum(row[f"largest_{name}"] for name in PARTS) == row["cells"]
    rng = np.random.default_rng(1)
    some = numbers.usable(cells)
    some = some[(some["data"] == "digits") & (some["labels"] == "true")].copy()
    turned = some.index[::3]  # effects of either sign, as random labels give
    some.loc[turned, ["effect", "budget_total", *(f"budget_{name}" for name in PARTS)]] *= -1
    stated, found = numbers._pooled(some), []
    for _ in range(200):
        again = some.copy()
        noise = again["measured_se"] * rng.normal(size=len(again))
        groups = again["group"].unique()
        shared = dict(zip(groups, rng.normal(size=len(groups)), strict=True))
        theory = again["budget_gaussian_closure_se"] * again["group"].map(shared)
        again["measured"] += noise
        again["effect"] += noise
        again["budget_total"] += noise
        again["budget_gaussian_closure"] += theory
        again["budget_remainder"] += noise - theory
        found.append(numbers._pooled(again))
    spread = pd.DataFrame(found)
    for name in ("of_effect", *(f"of_effect_{part}" for part in PARTS if part != "q_fluctuations")):
        assert spread[name].std() == pytest.approx(stated[f"{name}_se"], rel=0.2), name


def test_a_share_of_an_error_that_is_not_told_from_zero_is_not_stated(cells):
    some = numbers.usable(cells).head(5).copy()
    some["measured_se"] = 10 * some["budget_total"].abs() + 1
    assert math.isnan(numbers._pooled(some)["of_error_delta1_dropped"])


def test_every_cell_is_on_the_page_without_script_with_its_outcomes_and_link(html, made):
    body = html[html.index('id="table-cells"') :].split("</table>")[0]
    rows = re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL)[1:]
    assert len(rows) == len(made[0])
    linked = [row for row in rows if re.search(r'<a href="[^"]+/report\.html">report</a>', row)]
    assert len(linked) == made[0]["page"].notna().sum()
    for word, mark in (("agrees", "✓"), ("differs", "✗"), ("inconclusive", "?")):
        expected = sum((made[0][f"{level}_outcome"] == word).sum() for level in numbers.TESTED)
        assert sum(row.count(f">{mark} {word}<small>") for row in rows) == expected
    assert "killed after 3 tries" in html
    assert "R-hat of Q is 1.031" in html


def test_the_page_says_what_a_reader_needs(html):
    for anchor in (
        "outcomes",
        "error",
        "delta1",
        "curves",
        "peaks",
        "cells",
        "unresolved",
        "equations",
        "provenance",
        "cite",
    ):
        assert f'<section id="{anchor}">' in html
    for text in (
        "2508.20989",
        "git commit",
        "sha256 of digits",
        "effective draws of D²",
        "McLachlan",
        "the control",
        "0.1.0",
    ):
        assert text in html, text
    assert html.count("<figure ") == 3
    assert '<html lang="en">' in html
    assert not re.search(r'(src|srcset)="', html)
    headers = re.findall(r"<th\b[^>]*>", html)
    assert headers
    assert all('scope="col"' in one for one in headers)


def test_files_hold_the_same_tables_and_figures(folder, made):
    pd.testing.assert_frame_equal(pd.read_parquet(folder / "cells.parquet"), made[0], check_dtype=False)
    assert len(pd.read_csv(folder / "cells.csv")) == len(made[0])
    for name in ("outcomes", "shares", "peaks", "peak_counts"):
        whole = pd.read_parquet(folder / "tables" / f"{name}.parquet")
        text = pd.read_csv(folder / "tables" / f"{name}.csv")
        assert list(text.columns) == list(whole.columns)
        exact = whole.select_dtypes("number")
        pd.testing.assert_frame_equal(text[list(exact.columns)], exact, check_dtype=False)
    for name in ("curves", "delta1_share", "error_parts"):
        assert (folder / "figures" / f"{name}.svg").read_text().startswith("<?xml")
        assert (folder / "figures" / f"{name}.pdf").read_bytes().startswith(b"%PDF")


@pytest.mark.parametrize(
    "page", ["javascript:alert(1)", '"><script>alert(1)</script>', "//example.org/x", "/etc/passwd"]
)
def test_a_link_can_be_no_scheme_and_no_markup(page):
    text = show.link(page)
    assert ":" not in text
    assert '"' not in text
    assert "<" not in text
    assert not text.startswith("/")


def test_hostile_names_and_messages_stay_text():
    name = '<script>alert("1")</script><img src=x onerror=alert(2)> $\\frac{1'
    table, peaks = frame(25, name=name)
    table["note"] = name
    table["left_out"] = name
    table["classes"] = name
    table["git_commit"] = name
    html = render_campaign(table, peaks=peaks.assign(data=name, labels=name), title=name, facts=[(name, name)])
    assert html.count("<script") == 1
    assert "<img" not in html
    assert html.count("&lt;script&gt;") > 25


def test_a_campaign_of_nothing_but_missing_cells_has_a_page():
    table = pd.DataFrame([{"data": "digits", "N1": 10, "T": 1.0, "state": "missing", "page": None, "P": None}])
    html = render_campaign(table)
    assert "No level was tested" in html
    assert '<section id="curves">' not in html


@pytest.mark.parametrize(
    ("table", "message"), [({"data": []}, "lacks N1, T"), ({"data": [], "N1": [], "T": []}, "is empty")]
)
def test_a_table_that_is_none_is_refused(table, message):
    with pytest.raises(InputError, match=message):
        render_campaign(pd.DataFrame(table))


def test_a_very_large_campaign_is_listed_in_part_and_says_so(monkeypatch, made):
    monkeypatch.setattr(show.some_rows, "__defaults__", (40,))
    monkeypatch.setattr(
        "compare.report.campaign_page.campaign_figures", lambda cells, shares: []
    )  # which take their time
    html = render_campaign(made[0])
    assert "40 of 150 cells" in html
    assert 'href="cells.csv"' in html
    assert html[html.index('id="table-cells"') :].split("</table>")[0].count("<tr>") == 41
    counts = numbers.outcomes(numbers.prepared(made[0]))
    assert f"differs in {counts['differs'][0]}" in html  # the summary is made from all


def test_the_curves_drawn_show_every_kind_of_problem(cells):
    names, of = chosen(cells, most=6)
    assert len(names) == 6 < of
    drawn = cells[cells["curve"].isin(names)]
    assert len(drawn[["data", "labels"]].drop_duplicates()) == len(cells[["data", "labels"]].drop_duplicates())


def test_reports_become_a_campaign(job, monkeypatch):
    """Two reports, here the same one twice, give the table that the page needs, with the numbers of the reports."""
    import compare

    report = compare.reread(job[0])
    table, peaks = collect({"a": ("a/report.html", report), "b": ("b/report.html", report)})
    assert len(table) == 2 * len(report.cells)
    eq4 = report.levels[report.levels["level"] == "eq4"]
    assert table["eq4_outcome"].tolist() == eq4["outcome"].tolist() * 2
    assert table["measured"].tolist() == eq4["measured"].tolist() * 2
    assert len(peaks) == 2 * len(report.peak)
    monkeypatch.setattr("compare.report.campaign_page.campaign_figures", lambda cells, shares: [])
    html = render_campaign(table, peaks=peaks)
    assert 'href="b/report.html"' in html


def test_folders_of_verify_become_one_page(job, invoke, tmp_path, monkeypatch):
    """Through the command line; the link leads from the page to the report, wherever both lie."""
    monkeypatch.setattr("compare.report.campaign_page.campaign_figures", lambda cells, shares: [])
    result = invoke(
        "campaign", "collect", job[0], "--out", tmp_path / "deep" / "page", "--title", "Two & more", "--quiet"
    )
    assert result.exit_code == 0, result.output
    html = (tmp_path / "deep" / "page" / "index.html").read_text(encoding="utf-8")
    assert "Two &amp; more" in html
    address = re.search(r'<a href="([^"]+)">report</a>', html).group(1)
    assert (tmp_path / "deep" / "page" / address).resolve() == (job[0] / "report.html").resolve()
    cells = pd.read_parquet(tmp_path / "deep" / "page" / "cells.parquet")
    assert cells["eq4_outcome"].tolist() == [one["verdicts"]["eq4"]["outcome"] for one in job[2]["cells"]]
    twice = invoke("campaign", "collect", job[0], job[0], "--out", tmp_path / "page")
    assert twice.exit_code == 2
    assert "given twice" in twice.stderr


def test_an_error_far_below_its_value_is_written_out():
    assert with_error(8.1, 1e-9) == "8.1000000000 ± 0.0000000010"
    assert with_error(-8.1e-9, 1e-10) == "(−8.10 ± 0.10)·10⁻⁹"
