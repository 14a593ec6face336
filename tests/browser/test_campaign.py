"""A campaign of 500 cells in a real browser: opens fast, sorts, filters and pages; 10^4 cells do not hang; whole without script."""

import re

import pytest
from tests_support.campaign_frame import frame

from compare.report.campaign_page import write_campaign_page

OPENS, SORTS = 2.0, 0.2  # seconds of the page's own thread: what a reader waits for, whatever else the machine does


@pytest.fixture(scope="session")
def campaigns(tmp_path_factory):
    """Pages of 500 and of 10^4 cells, each beside its files; links lead to a page that is there."""
    folder = tmp_path_factory.mktemp("campaigns")
    made = {}
    for count in (500, 10_000):
        table, peaks = frame(count)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("compare.report.campaign_page.write_figures", lambda figures, folder: [])  # tested elsewhere
            if count > 500:
                patch.setattr("compare.report.campaign_page.campaign_figures", lambda cells, shares: [])
            made[count] = write_campaign_page(table, folder / str(count), peaks=peaks, title=f"{count} cells")
    first = table["page"].dropna().iloc[0]
    target = folder / "500" / first
    target.parent.mkdir(parents=True)
    target.write_text("<!DOCTYPE html><title>The group's report</title>")
    return made


@pytest.fixture
def opened(browser, campaigns):
    """Open a campaign; returns the page, what it said or asked for, and a clock of the page's thread."""
    contexts = []

    def open_(count=500, width=1280, **options):
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(120_000)
        heard, asked = [], []
        page.on("console", lambda message: heard.append(message.text))
        page.on("pageerror", lambda error: heard.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        session = context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})

        def busy():
            """Seconds that the page's thread has worked since it was opened."""
            if options.get("java_script_enabled", True):
                page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
            metrics = session.send("Performance.getMetrics")["metrics"]
            return next(one["value"] for one in metrics if one["name"] == "TaskDuration")

        page.goto(campaigns[count].as_uri())
        return page, heard, asked, busy

    yield open_
    for context in contexts:
        context.close()


def _column(page, title):
    titles = page.eval_on_selector_all("#table-cells thead th", "all => all.map(one => one.textContent)")
    return titles.index(title)


def _select(page, name):
    """The choice of the table of cells with this title."""
    return page.locator("#cells label.filter").filter(has_text=re.compile(f"^{name}:")).locator("select")


def _numbers(page, index):
    texts = page.eval_on_selector_all(
        "#table-cells tbody tr", f"all => all.map(row => row.cells[{index}].dataset.sort)"
    )
    return [float(text) for text in texts if text is not None]


def test_500_cells_open_and_sort_fast_in_silence(opened, campaigns):
    page, heard, asked, busy = opened(500)
    assert busy() < OPENS
    for title in ("data set", "measured ⟨D²⟩", "Eq. (4)"):
        index = _column(page, title)
        before = busy()
        page.evaluate("i => document.querySelectorAll('#table-cells thead button')[i].click()", index)
        assert busy() - before < SORTS, title
    assert heard == []
    assert asked == [campaigns[500].as_uri()]


def test_sorting_orders_all_500_and_keeps_what_is_missing_last(opened):
    page, *_ = opened(500)
    index = _column(page, "effect")
    button = page.locator("#table-cells thead th").nth(index).locator("button")
    button.focus()
    page.keyboard.press("Enter")
    up = _numbers(page, index)
    assert up == sorted(up)
    assert len(up) == page.locator("#table-cells tbody tr").count()
    page.keyboard.press("Enter")
    down = _numbers(page, index)
    assert down == sorted(down, reverse=True)
    assert down[0] > up[-1]  # the first page of the other end: all rows take part, not those shown
    assert page.locator("#table-cells thead th").nth(index).get_attribute("aria-sort") == "descending"


def test_filters_by_data_temperature_load_level_and_outcome_together(opened):
    page, *_ = opened(500)
    table, _ = frame(500)
    want = (table["data"] == "digits") & (table["T"] == 0.1) & (table["alpha"] == 4)
    choose = {"data set": "digits", "T": "0.1", "α": "4"}
    for name, value in choose.items():
        _select(page, name).select_option(value)
    rows = page.locator("#table-cells tbody tr")
    assert rows.count() == want.sum() > 0
    _select(page, "level").select_option("Eq. (4)")
    _select(page, "outcome").select_option("differs")
    assert rows.count() == (want & (table["eq4_outcome"] == "differs")).sum() > 0
    assert "rows that match, of 500" in page.locator("#cells [role=status]").inner_text()
    _select(page, "outcome").select_option("no verdict")
    assert rows.count() == (want & table["eq4_outcome"].isna()).sum()
    page.locator("#cells .controls button").click()
    assert page.locator("#cells [role=status]").inner_text().startswith("1 to 50 of 500")


def test_pages_of_the_table_turn_and_a_link_leads_to_the_groups_report(opened):
    page, *_ = opened(500)
    seen = page.locator("#table-cells tbody tr").first.inner_text()
    page.locator("#cells .pager button", has_text="Next").click()
    assert page.locator("#cells [role=status]").inner_text().startswith("51 to 100 of 500")
    assert page.locator("#table-cells tbody tr").first.inner_text() != seen
    page.locator("#cells .pager button", has_text="Previous").click()
    assert page.locator("#table-cells tbody tr").first.inner_text() == seen
    page.locator("#table-cells tbody a").first.click()
    assert page.title() == "The group's report"


def test_it_is_whole_without_script(opened):
    page, *_ = opened(500, java_script_enabled=False)
    assert page.locator("#table-cells tbody tr").count() == 500
    assert page.locator("#cells .controls").count() == 0
    assert page.locator("figure svg").count() == 3


def test_ten_thousand_cells_do_not_hang(opened):
    page, heard, _, busy = opened(10_000)
    assert busy() < 5 * OPENS
    before = busy()
    page.evaluate("i => document.querySelectorAll('#table-cells thead button')[i].click()", _column(page, "effect"))
    assert busy() - before < 2 * SORTS
    assert heard == []
    note = page.locator("#cells .warning")
    assert "2000 of 10000 cells" in note.inner_text()
    assert note.locator("a").get_attribute("href") == "cells.csv"


@pytest.mark.parametrize("width", [375, 1280])
def test_nothing_sticks_out(opened, width):
    page, *_ = opened(500, width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
