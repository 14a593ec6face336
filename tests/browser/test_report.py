"""The report in a real browser: silent, offline, nothing blank, usable on a phone, sortable, and whole without script."""

import itertools

import pytest


@pytest.fixture
def opened(browser, report):
    """Open the report; returns the page and what it said or asked for."""
    pages = []

    def open_(width=1280, height=900, **options):
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        page = context.new_page()
        heard, asked = [], []
        page.on("console", lambda message: heard.append(message.text))
        page.on("pageerror", lambda error: heard.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(report.as_uri())
        pages.append(context)
        return page, heard, asked

    yield open_
    for context in pages:
        context.close()


def test_no_console_message_and_no_request_but_the_page_itself(opened, report):
    page, heard, asked = opened()
    page.wait_for_timeout(200)
    assert heard == []
    assert asked == [report.as_uri()]


def test_a_request_would_have_been_seen_and_stopped(opened):
    """Negative control: an image added to the page is refused by its own policy, and the refusal is heard."""
    page, heard, _ = opened()
    page.evaluate("document.body.append(Object.assign(new Image(), {src: 'https://example.org/x.png'}))")
    page.wait_for_timeout(200)
    assert any("Content Security Policy" in text for text in heard)


def test_no_figure_is_blank(opened):
    """Each figure's pixels hold ink of several colours; a blank one of the same size does not."""
    import io

    import numpy as np
    from PIL import Image

    def colours(png):
        pixels = np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).reshape(-1, 3)
        ink = pixels[(pixels < 250).any(1)]
        return len(ink) / len(pixels), len(np.unique(ink // 32, axis=0)) if len(ink) else 0

    page, _, _ = opened()
    figures = page.locator("figure .plot")
    assert figures.count() == 4
    for index in range(figures.count()):
        share, kinds = colours(figures.nth(index).screenshot())
        assert share > 0.01
        assert kinds > 5
    page.evaluate("document.querySelector('figure .plot svg').replaceChildren()")
    share, kinds = colours(figures.first.screenshot())
    assert share < 0.001


def test_equations_are_typeset(opened):
    page, _, _ = opened()
    heights = page.eval_on_selector_all(
        ".equation math mfrac", "all => all.map(one => one.getBoundingClientRect().height)"
    )
    line = page.evaluate("parseFloat(getComputedStyle(document.querySelector('.equation math')).fontSize)")
    assert heights
    assert min(heights) > 1.2 * line  # a fraction stands above itself; unrendered MathML would be one line


def test_tables_sort_and_filter(opened):
    page, _, _ = opened()

    def column(index):
        return page.eval_on_selector_all(
            "#table-levels tbody tr:not([hidden])", f"rows => rows.map(row => row.cells[{index}].textContent)"
        )

    titles = page.eval_on_selector_all("#table-levels thead th", "all => all.map(one => one.textContent)")
    z = titles.index("z")

    def numbers():
        return [float(text.replace("−", "-")) for text in column(z)]

    button = page.locator("#table-levels thead th").nth(z).locator("button")
    button.click()
    assert numbers() == sorted(numbers())
    button.press("Enter")  # by keyboard, and the other way round
    assert numbers() == sorted(numbers(), reverse=True)
    assert page.locator("#table-levels thead th").nth(z).get_attribute("aria-sort") == "descending"

    rows = page.locator("#table-budget tbody tr")
    select = page.locator("#budget label.filter select")
    every = rows.count()
    select.select_option("remainder")
    shown = [row for row in rows.all() if row.is_visible()]
    assert len(shown) == 4  # two widths, two temperatures
    assert all("remainder" in row.inner_text() for row in shown)
    select.select_option("all")
    assert sum(row.is_visible() for row in rows.all()) == every


def test_it_reads_without_script(opened):
    page, _, _ = opened(java_script_enabled=False)
    assert page.locator("#table-levels tbody tr").count() == 16
    assert page.locator(".verdict").inner_text()
    assert page.locator("figure svg").count() == 4


@pytest.mark.parametrize("width", [375, 768, 1280])
def test_nothing_sticks_out_at_any_width(opened, width):
    page, _, _ = opened(width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator(".verdict").bounding_box()["width"] > 0.8 * min(width, 1088) - 60


def test_text_has_contrast(opened):
    """WCAG AA, 4.5 to 1, of every kind of text against what is behind it."""
    page, _, _ = opened()
    ratios = page.evaluate(
        """() => {
        const lum = c => { const [r, g, b] = c.match(/[\\d.]+/g).map(Number).map(v => v / 255)
          .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
        const behind = e => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
          if (!c.startsWith('rgba(0, 0, 0, 0')) return c; } return 'rgb(255, 255, 255)'; };
        return [...document.querySelectorAll('p, a, dt, dd, td, th button, h1, h2, h3, summary, figcaption, label, li, span, ' +
          'small, select, button, caption')]
          .filter(e => e.textContent.trim()).map(e => { const a = lum(getComputedStyle(e).color), b = lum(behind(e));
            return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), e.tagName + '.' + e.className]; });
        }"""
    )
    assert len(ratios) > 100
    worst, what = min(ratios)
    assert worst >= 4.5, what


def test_lines_and_marks_stand_out_from_white():
    """WCAG 1.4.11, 3 to 1, of every colour that a figure or a focus ring uses; white on white is 1, black on white 21."""
    import re

    from compare.report import campaign_figures, wording
    from compare.report.page import HERE

    def ratio(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        red, green, blue = (v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in parts)
        return 1.05 / (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05)

    assert ratio("#ffffff") == pytest.approx(1)
    assert ratio("#000000") == pytest.approx(21)
    rings = re.findall(r"outline: 3px solid (#\w{6})", (HERE / "page.css").read_text())
    assert len(rings) == 2
    for colour in (*wording.COLOURS.values(), *campaign_figures.KINDS, *rings):
        assert ratio(colour) >= 3.0, colour


def test_landmarks_headings_and_headers_tell_where_one_is(opened):
    page, _, _ = opened()
    assert page.get_attribute("html", "lang") == "en"
    for landmark in ("header", "nav[aria-label]", "main", "footer"):
        assert page.locator(f"body > {landmark}").count() == 1
    assert page.locator("h1").count() == 1
    levels = page.eval_on_selector_all("h1, h2, h3", "all => all.map(one => Number(one.tagName[1]))")
    assert all(later - earlier <= 1 for earlier, later in itertools.pairwise(levels))
    assert page.locator("th:not([scope=col])").count() == 0
    assert page.locator("table:not(:has(caption))").count() == 0
    assert page.locator("[role=img]:not([aria-label])").count() == 0
    assert page.locator(".equation math:not([alttext])").count() == 0


def test_the_keyboard_reaches_skip_link_sort_buttons_and_what_scrolls(opened):
    page, _, _ = opened(width=375)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the results"
    assert page.evaluate("document.activeElement.getBoundingClientRect().width") > 50  # seen when it has the focus
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#levels"
    reached = set()
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate(
                "document.activeElement.closest('th') ? 'sort' : document.activeElement.className || document.activeElement.tagName"
            )
        )
    assert {"sort", "table", "SUMMARY"} <= reached  # buttons, the region that scrolls, the explanation of the columns
    scrolling = page.eval_on_selector_all(
        ".table, .plot.wide, .math",
        "all => all.filter(e => e.scrollWidth > e.clientWidth + 1 && e.tabIndex < 0).length",
    )
    assert scrolling == 0


def test_it_prints(opened, tmp_path):
    page, _, _ = opened()
    page.pdf(path=tmp_path / "report.pdf", format="A4")
    assert (tmp_path / "report.pdf").stat().st_size > 50_000
    page.emulate_media(media="print")
    assert not page.locator("nav").is_visible()
    assert page.locator("#table-levels").is_visible()


def test_the_command_that_the_page_names_makes_a_pdf(browser, report, tmp_path):
    """As it stands on the page, but for the flag that root needs and a profile of its own."""
    import html
    import os
    import re
    import shlex
    import shutil
    import subprocess

    said = re.search(r"<code>(chromium [^<]*)</code>", report.read_text(encoding="utf-8")).group(1)
    command = shlex.split(html.unescape(said))
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    extra = [f"--user-data-dir={tmp_path / 'profile'}", "--disable-gpu"] + ["--no-sandbox"] * (os.getuid() == 0)
    shutil.copy(report, tmp_path / "report.html")
    subprocess.run([found, *extra, *command[1:]], cwd=tmp_path, check=True, capture_output=True, timeout=300)
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
