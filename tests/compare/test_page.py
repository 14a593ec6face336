"""The report page and the files beside it: self-contained, complete, every number with its error, hostile names harmless."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

import compare
from compare.report.figures import figures, standalone
from compare.report.tables import shown
from data.problem import Dataset, Problem


class _Page(HTMLParser):
    """Collects tags with their attributes, ids, and the text of table cells."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.ids, self.cells, self._cell = [], [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.tags.append((tag, attrs))
        if "id" in attrs:
            self.ids.append(attrs["id"])
        if tag in ("td", "th"):
            self._cell = ""

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.cells.append(self._cell)
            self._cell = None

    def handle_data(self, data):
        if self._cell is not None:
            self._cell += data


@pytest.fixture(scope="module")
def html(job):
    return (job[0] / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(html):
    return _Page(html)


@pytest.fixture(scope="module")
def again(job):
    """The report made anew from the stored runs."""
    report = compare.reread(job[0])
    report.made = job[2]["made"]
    return report


def test_nothing_is_loaded_from_anywhere(page, html):
    for tag, attrs in page.tags:
        for key in ("src", "href", "xlink:href", "data", "action", "poster"):
            value = attrs.get(key)
            if value is None or value.startswith("#") or value == "data:,":
                continue
            assert tag == "a", (
                f"<{tag} {key}={value}> would be fetched"
            )  # citation links are followed only when clicked
            assert value.startswith("https://")
    assert "@import" not in html
    assert not re.search(r"url\((?!#)", html)
    assert not {tag for tag, _ in page.tags} & {"iframe", "object", "embed", "img", "form"}


def test_the_policy_forbids_everything_but_what_the_page_holds(page, html):
    import base64
    import hashlib

    policy = next(a["content"] for t, a in page.tags if t == "meta" and "http-equiv" in a)
    assert policy.startswith("default-src 'none'")
    script = re.search(r"<script>(.*?)</script>", html, re.DOTALL).group(1)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    assert html.count("<script") == 1
    assert "unsafe-eval" not in policy


def test_ids_are_unique_and_links_inside_the_page_lead_somewhere(page):
    assert len(page.ids) == len(set(page.ids))
    targets = {a["href"][1:] for t, a in page.tags if t == "a" and a.get("href", "").startswith("#")}
    assert targets <= set(page.ids)


def test_every_section_is_there(page):
    sections = [attrs["id"] for tag, attrs in page.tags if tag == "section"]
    assert sections == [
        "tested",
        "levels",
        "budget",
        "decomposition",
        "weights",
        "peak",
        "convergence",
        "equations",
        "provenance",
        "cite",
    ]


def test_the_verdict_stands_in_one_sentence_at_the_top(html, job):
    sentence = job[2]["verdict"]["sentence"]
    assert html.index(sentence) < html.index("<main>")
    assert sentence.count(".") >= 1
    assert "Eq. (4)" in sentence


def test_every_measured_number_of_the_tables_has_its_error(again):
    tables = shown(again)
    columns = {
        "levels": ["measured ⟨D²⟩", "measured − predicted"],
        "decomposition": ["measured", "measured − averaged"],
        "weights_fit": ["slope", "misfit"],
        "convergence": ["mean ± MCSE"],
    }
    for name, wanted in columns.items():
        titles = [title for title, _ in tables[name].columns]
        for title in wanted:
            at = titles.index(title)
            for row in tables[name].rows:
                assert "±" in row[at].text, (name, title, row[at].text)
    levels = tables["levels"]
    titles = [title for title, _ in levels.columns]
    for row in levels.rows:
        monte_carlo = row[titles.index("level")].text == "first order, exact"
        assert ("±" in row[titles.index("predicted ⟨D²⟩")].text) == monte_carlo


def test_outcomes_are_told_by_word_and_mark_not_by_colour_alone(page):
    words = {
        cell.strip() for cell in page.cells if cell and cell.strip().endswith(("agrees", "differs", "inconclusive"))
    }
    assert words
    assert all(word[0] in "✓✗?" for word in words)


def test_figures_have_captions_and_text_alternatives_with_numbers(page, html):
    plots = [attrs for tag, attrs in page.tags if tag == "div" and attrs.get("role") == "img"]
    assert len(plots) == 4
    for attrs in plots:
        assert len(re.findall(r"\d", attrs["aria-label"])) > 5
    assert html.count("<figcaption>") == 4


def test_provenance_is_complete(html, job):
    printed = job[2]
    problem = printed["problem"]
    for text in (
        problem["dataset_fingerprint"],
        problem["provenance"]["rows"]["sha256"],
        printed["cells"][0]["problem"]["fingerprint"],
        str(printed["runs"][0]["seed"]),
        "float64",
        "cpu",
        printed["software"]["torch"],
        "arXiv:2508.20989" if "arXiv:2508.20989" in html else "2508.20989",
        "gradients_per_chain",
    ):
        assert text in html, text


def test_every_method_used_is_cited_and_no_other(html, job):
    """hmc's integrator, the tests and the peak, with the paper; MBAR where a curve was reweighted; no other sampler."""
    cited = html[html.index('id="cite"') :]
    assert ("Shirts" in cited) == any(row["method"] == "mbar" for row in job[2]["peak"])
    for text in (
        "2508.20989",
        "McLachlan",
        "Blanes",
        "Vehtari",
        "Schuirmann",
        "Student",
        "F test",
        "Hotelling",
        "York",
        "Berger",
    ):
        assert text in cited, text
    assert "Tweedie" not in cited


def test_every_symbol_of_the_equations_is_explained_once():
    """In the list of symbols, or in the words of the one equation that defines it."""
    from compare.report.equations import equations, symbols

    def letters(math):
        return set(re.findall(r"<mi[^>]*>([^<]+)</mi>", math))

    listed = [name for name, _ in symbols()]
    assert len(set(listed)) == len(listed)
    known = set().union(*map(letters, listed))
    functions = {"log", "exp", "det", "diag"}
    for one in equations():
        for letter in letters(one.math) - known - functions:
            assert letter in one.words, (one.title, letter)
    assert "K\u0307" in known  # an accent makes another symbol


def test_files_beside_the_page_hold_the_same_tables(job, again):
    folder, _, printed = job
    for name in (
        "levels",
        "budget",
        "decomposition",
        "weights",
        "weights_fit",
        "convergence",
        "runs",
        "chains",
        "curves",
    ):
        parquet = pd.read_parquet(folder / "tables" / f"{name}.parquet")
        pd.testing.assert_frame_equal(parquet, getattr(again, name), check_dtype=False)
        csv = pd.read_csv(folder / "tables" / f"{name}.csv")
        assert list(csv.columns) == list(parquet.columns)
        assert len(csv) == len(parquet)
    for suffix in ("svg", "pdf"):
        found = {path.stem for path in (folder / "figures").glob(f"*.{suffix}")}
        assert found == {"distance", "budget", "weights", "chains"}
    assert all(path.read_bytes().startswith(b"%PDF") for path in (folder / "figures").glob("*.pdf"))
    import json

    assert json.loads((folder / "report.json").read_text()) == printed


def test_a_standalone_figure_is_well_formed_and_tells_what_it_shows(job):
    import xml.etree.ElementTree as ElementTree

    for path in (job[0] / "figures").glob("*.svg"):
        root = ElementTree.parse(path).getroot()
        assert root[0].tag.endswith("title")
        assert root[1].tag.endswith("desc")


def test_the_page_and_its_figures_are_the_same_bytes_when_made_again(job, again, html):
    folder = job[0]
    names = ["data.npz", "figures", "report.json", "runs", "tables"]
    assert again.html(names) == html
    for figure in figures(again):
        assert (folder / "figures" / f"{figure.name}.svg").read_text() == standalone(figure)


def test_a_hostile_name_stays_text():
    rng = np.random.default_rng(0)
    name = '<script>alert("1")</script><img src=x onerror=alert(2)>'
    dataset = Dataset(
        rng.normal(size=(8, 5)), np.tile([1.0, -1.0], 4), np.tile([1.0, -1.0], 4), name, {"note": name, '"><b>': "]]>"}
    )
    report = compare.verify(Problem(dataset, N1=4, T=1.0), chains=4, draws=30, warmup=30, first_order=False)
    text = report.html()
    assert text.count("<script") == 1
    assert "<img" not in text
    assert "&lt;script&gt;" in text
