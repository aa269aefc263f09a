"""The drawing of the topology as a browser lays it out: nothing is cut off, and nothing is written over."""

from __future__ import annotations

import json

import pytest

from nodeprep.model.run import HostRecord, NodeView, Run, RunView
from nodeprep.reports.html import render
from tests.cases.base.documents import context

pytestmark = pytest.mark.browser

SECOND_SOCKET = {f"/pci/devices/0000:{bus}:00.0/numa_node": 1 for bus in ("63", "64", "9a", "9b")}

# Texts that stick out of the drawing, and pairs of texts that cover each other.
TEXTS = """
(() => {
  const map = document.querySelector(".map"), size = map.viewBox.baseVal;
  const texts = Array.from(map.querySelectorAll("text")).map(t => [t.textContent, t.getBBox()]);
  const outside = texts.filter(([, b]) =>
    b.x < 0 || b.y < 0 || b.x + b.width > size.width || b.y + b.height > size.height).map(([t]) => t);
  const over = [];
  texts.forEach(([a, p], i) => texts.slice(i + 1).forEach(([b, q]) => {
    const wide = Math.min(p.x + p.width, q.x + q.width) - Math.max(p.x, q.x);
    const high = Math.min(p.y + p.height, q.y + q.height) - Math.max(p.y, q.y);
    if (wide > 1 && high > 3) over.push(a + " / " + b);
  }));
  return JSON.stringify({count: texts.length, outside, over});
})()
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    documents = context(facts=SECOND_SOCKET, probe={"/peers/pairs/2/gbps": 187.0})
    node = NodeView(
        record=HostRecord(host="node01", state="done"),
        facts_before=documents.before,
        facts_after=documents.after,
        probe=documents.probe,
    )
    run = Run(id="r", verb="certify", started_at="2026-11-30T10:00:00Z", ended_at="", hosts=(node.record,))
    file = tmp_path_factory.mktemp("topology") / "report.html"
    file.write_bytes(render(RunView(run=run, nodes=(node,))))
    return file.as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_eight_gpus_are_readable(browser, page, scheme):
    browser.open(page, scheme=scheme)
    found = json.loads(browser.evaluate(TEXTS))
    assert found["count"] > 60
    assert found["outside"] == []
    assert found["over"] == []
    assert browser.blocked == []


def test_the_table_of_pairs_is_open_where_one_stands_out(browser, page):
    browser.open(page)
    assert browser.evaluate("document.querySelector('.topology details').open")
    assert browser.evaluate("document.querySelector('.pairs .grave').textContent") == "187"
