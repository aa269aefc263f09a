"""The report as a browser shows it: charts drawn, nothing fetched, nothing hostile run."""

from __future__ import annotations

import json

import pytest
from fixture_run import run_view

from nodeprep.reports.html import render

pytestmark = pytest.mark.browser

# WCAG 2.1, 1.4.3: contrast of text with what is behind it, over all ancestors up to an opaque one.
CONTRAST = """
(() => {
  const rgb = text => (text.match(/[\\d.]+/g) || []).map(Number);
  const linear = c => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  const light = colour => colour.slice(0, 3).map(linear)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = element => {
    for (; element; element = element.parentElement) {
      const colour = rgb(getComputedStyle(element).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const found = {};
  for (const element of document.querySelectorAll("body *")) {
    const words = Array.from(element.childNodes).some(n => n.nodeType === 3 && n.textContent.trim());
    if (!words || !element.getClientRects().length || element.closest("svg, script, style")) continue;
    const a = light(rgb(getComputedStyle(element).color)), b = light(behind(element));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) found[element.tagName + "." + element.className] = ratio.toFixed(2);
  }
  return JSON.stringify(found);
})()
"""

OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def open_details(browser):
    """Opens every node and brings each group of charts into view, as a reader would."""
    browser.evaluate("document.querySelectorAll('details.node').forEach(node => { node.open = true; })")
    for index in range(browser.evaluate("document.querySelectorAll('.charts').length")):
        browser.evaluate(f"document.querySelectorAll('.charts')[{index}].scrollIntoView()")
        browser.settle()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    file = tmp_path_factory.mktemp("report") / "report.html"
    file.write_bytes(render(run_view(gpus=8)))
    return file.as_uri()


@pytest.fixture
def page(browser, report):
    browser.open(report)
    return browser


def test_the_page_loads_itself_and_nothing_else(page, report):
    open_details(page)
    assert page.requests == [report]
    assert page.blocked == []
    assert page.errors == []


def test_hostile_text_in_reasons_logs_and_names_did_not_run(page):
    open_details(page)
    assert page.evaluate("window.pwned === undefined")
    assert page.evaluate("document.querySelectorAll('img').length") == 0
    assert page.evaluate("document.body.innerText.includes('<script>window.pwned=1</script>')")


def test_the_policy_stops_what_gets_in_all_the_same(page, report):
    page.evaluate(
        """(() => {
            const script = document.createElement("script");
            script.textContent = "window.pwned = 1";
            document.body.append(script);
            const image = document.createElement("img");
            image.src = "http://203.0.113.7/beacon";
            document.body.append(image);
        })()"""
    )
    page.settle()
    assert page.evaluate("window.pwned === undefined")
    refused = page.evaluate("fetch('http://203.0.113.7/').then(() => 'sent', error => error.name)")
    assert refused == "TypeError"
    assert page.requests == [report]
    assert "csp http://203.0.113.7/beacon" in page.blocked


def test_every_cell_shows_host_verdict_and_reason(page):
    cells = json.loads(
        page.evaluate(
            "JSON.stringify(Array.from(document.querySelectorAll('.rack .cell'), cell => "
            "['.host', '.verdict', '.why'].map(part => cell.querySelector(part).innerText.trim())))"
        )
    )
    assert [verdict for _, verdict, _ in cells] == [
        "certified",
        "rejected",
        "rejected",
        "rejected",
        "rejected",
        "inconclusive",
        "unreachable",
        "missing",
        "unknown",
    ]
    assert all(host and reason for host, _, reason in cells)


def test_verdicts_differ_in_shape_not_only_in_colour(page):
    shapes = json.loads(
        page.evaluate(
            "JSON.stringify(Array.from(document.querySelectorAll('.rack .cell .verdict'), verdict => "
            "[verdict.innerText.trim(), verdict.querySelector('use').getAttribute('href')]))"
        )
    )
    assert len(set(dict(shapes).values())) == len(dict(shapes))


def test_a_click_on_a_cell_opens_the_node(page):
    page.evaluate("document.querySelector('#node-gpu01').open = false")
    page.evaluate("document.querySelector('.cell[href=\"#node-gpu01\"]').click()")
    page.settle()
    assert page.evaluate("document.querySelector('#node-gpu01').open")
    top = page.evaluate("document.querySelector('#node-gpu01').getBoundingClientRect().top")
    assert 0 <= top < 900


def test_charts_are_drawn_with_lines_in_them(page):
    open_details(page)
    # Five charts each on five nodes with telemetry, and the link width of gpu02.
    assert page.evaluate("document.querySelectorAll('.plot canvas').length") == 26
    blank = page.evaluate(
        """Array.from(document.querySelectorAll(".plot canvas")).filter(canvas => {
            const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
            const colours = new Set();
            for (let at = 0; at < pixels.length; at += 4) {
                const [red, green, blue, alpha] = pixels.subarray(at, at + 4);
                if (alpha === 255) colours.add(red << 16 | green << 8 | blue);
            }
            return colours.size < 2;
        }).length"""
    )
    assert blank == 0
    assert page.evaluate("document.getElementById('script-error').hidden")


def test_charts_out_of_sight_are_left_for_later(page):
    assert page.evaluate("document.querySelectorAll('#node-gpu05 .plot canvas').length") == 0


def test_the_odd_one_out_is_coloured_and_said(page):
    open_details(page)
    colours = page.evaluate(
        "new Set(Array.from(document.querySelectorAll('#node-gpu02 .legend rect'), "
        "rect => rect.getAttribute('fill'))).size"
    )
    assert colours == 2
    said = page.evaluate(
        "document.querySelector('#node-gpu02 [data-chart=\"pcie_rx_gbps\"] .odd').textContent"
    )
    assert "39:00.0: 12.6 GB/s, median of the node 24.2 GB/s" in said


def test_the_pointer_reads_values(page):
    open_details(page)
    page.evaluate("document.querySelector('#node-gpu02 .charts').scrollIntoView()")
    page.settle()
    box = json.loads(
        page.evaluate(
            "JSON.stringify(document.querySelector('#node-gpu02 [data-chart=\"pcie_rx_gbps\"] .u-over')"
            ".getBoundingClientRect())"
        )
    )
    page.call(
        "Input.dispatchMouseEvent",
        type="mouseMoved",
        x=box["x"] + box["width"] / 2,
        y=box["y"] + box["height"] / 2,
    )
    page.settle()
    text = page.evaluate(
        "document.querySelector('#node-gpu02 [data-chart=\"pcie_rx_gbps\"] output').innerText"
    )
    assert "39:00.0 12" in text
    assert "others 2" in text


def test_a_gpu_can_be_pinned(page):
    open_details(page)
    page.evaluate("document.querySelector('#node-gpu02 .legend button:nth-child(4)').click()")
    pressed = page.evaluate(
        "Array.from(document.querySelectorAll('#node-gpu02 .legend button'), b => b.ariaPressed).join()"
    )
    assert pressed == "false,false,false,true,false,false,false,false"
    assert page.errors == []


def test_checks_can_be_filtered_by_status(page):
    page.evaluate("document.querySelector('#node-gpu05 .filter [data-kind=\"fail\"]').click()")
    shown = json.loads(
        page.evaluate(
            "JSON.stringify(Array.from(document.querySelectorAll('#node-gpu05 .check-table > tbody > tr'))"
            ".filter(row => !row.hidden).map(row => row.querySelector('.status').innerText.trim()))"
        )
    )
    assert shown == ["FAIL", "FAIL"]


def test_nodes_can_be_found_by_host_or_reason(page):
    page.evaluate(
        "(() => { const box = document.getElementById('node-search'); box.value = 'no route';"
        " box.dispatchEvent(new Event('input')); })()"
    )
    shown = page.evaluate(
        "Array.from(document.querySelectorAll('.rack > li')).filter(cell => !cell.hidden)"
        ".map(cell => cell.querySelector('.host').innerText).join()"
    )
    assert shown == "gpu07"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(browser, report, scheme):
    browser.open(report, scheme=scheme)
    open_details(browser)
    assert json.loads(browser.evaluate(CONTRAST)) == {}


@pytest.mark.parametrize("width", [400, 1280])
def test_the_page_does_not_scroll_sideways(browser, report, width):
    browser.open(report, width=width)
    open_details(browser)
    assert browser.evaluate(OVERFLOW) == 0


def test_on_a_narrow_screen_reasons_are_in_view(browser, report):
    browser.open(report, width=400)
    right = browser.evaluate(
        "Math.max(...Array.from(document.querySelectorAll('#node-gpu05 .check-table td.reason'), "
        "cell => cell.getBoundingClientRect().right))"
    )
    assert right <= 400


def test_the_watermark_covers_the_view_and_catches_no_click(page):
    mark = json.loads(
        page.evaluate(
            "(() => { const mark = document.querySelector('.watermark'), box = mark.getBoundingClientRect();"
            " return JSON.stringify([box.width, box.height, getComputedStyle(mark).pointerEvents]); })()"
        )
    )
    assert mark == [1280, 900, "none"]


def test_printing_opens_everything_and_closes_it_again(page, tmp_path):
    before = page.evaluate("document.querySelectorAll('details[open]').length")
    page.paper(tmp_path / "page.pdf")
    assert (tmp_path / "page.pdf").read_bytes().startswith(b"%PDF")
    assert page.evaluate("document.querySelectorAll('details[open]').length") == before
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("document.querySelectorAll('details.node:not([open])').length") == 0
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.errors == []


def test_a_rack_of_a_hundred_is_usable(browser, tmp_path):
    file = tmp_path / "large.html"
    file.write_bytes(render(run_view(gpus=8, extra=91)))
    browser.open(file.as_uri())
    assert browser.evaluate("document.querySelectorAll('.rack .cell').length") == 100
    ready_ms = browser.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
    assert ready_ms < 10_000
    browser.evaluate("location.hash = 'node-node090'")
    browser.wait_for("document.querySelector('#node-node090').open")
    browser.evaluate("document.querySelector('#node-node090 .charts').scrollIntoView()")
    browser.wait_for("document.querySelectorAll('#node-node090 .plot canvas').length === 5")
    assert browser.errors == []


def test_without_scripts_the_verdicts_are_still_there(browser, report):
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.call("Page.navigate", url=report)
        browser.wait_for_load()
        text = browser.call("DOM.getDocument", depth=-1)
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
    flat = json.dumps(text)
    assert "Scripts are off" in flat
    assert "the link trained to x8 under load, x16 is wanted" in flat
