"""The page as text: everybody is on it with a reason, and nothing in it runs or is fetched."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from fixture_run import EVENT_XSS, IMAGE, WAIVER, healthy, run_view

from nodeprep.model.run import HostRecord, NodeView, RunView
from nodeprep.reports import _page
from nodeprep.reports.html import render

VOID = {"meta", "input", "br", "img", "link"}


class Page(HTMLParser):
    """Elements with their attributes and text; unbalanced tags are a fault."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: list[str] = []
        self.raw: list[tuple[str, dict[str, str], str]] = []
        self.open: list[tuple[str, dict[str, str]]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        attributes = {name: value or "" for name, value in attrs}
        self.elements.append((tag, attributes))
        if tag not in VOID:
            self.open.append((tag, attributes))

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1][0] == tag, f"</{tag}> closes <{self.open[-1][0]}>"
        self.open.pop()

    def handle_data(self, data):
        if self.open and self.open[-1][0] in ("script", "style"):
            self.raw.append((*self.open[-1], data))
        elif data.strip():
            self.texts.append(" ".join(data.split()))

    @property
    def text(self) -> str:
        return " ".join(self.texts)


@pytest.fixture(scope="module")
def html() -> str:
    return render(run_view()).decode()


@pytest.fixture(scope="module")
def page(html) -> Page:
    return Page(html)


def test_the_markup_is_balanced_and_ids_are_unique(page):
    assert page.open == []
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_every_link_within_the_page_leads_somewhere(page):
    ids = {attributes["id"] for _, attributes in page.elements if "id" in attributes}
    inner = [a["href"][1:] for _, a in page.elements if a.get("href", "").startswith("#")]
    assert inner
    assert set(inner) <= ids


def test_every_requested_host_has_a_cell_and_a_section_with_a_reason():
    built = _page.build(run_view())
    assert [(node.host[:5], node.standing) for node in built.nodes] == [
        ("gpu01", "certified"),
        ("gpu02", "rejected"),
        ("gpu03", "rejected"),
        ("gpu04", "rejected"),
        ("gpu05", "rejected"),
        ("gpu06", "inconclusive"),
        ("gpu07", "unreachable"),
        ("gpu08", "missing"),
        ("gpu09", "unknown"),
    ]
    assert all(node.reasons and all(each.text for each in node.reasons) for node in built.nodes)


def test_the_reasons_are_on_the_page(page):
    for reason in (
        "pcie_link_width_load 0000:39:00.0: the link trained to x8 under load, x16 is wanted",
        "gpu_presence: 0000:6c:00.0 is on the PCI bus and not in NVML",
        "observe: ssh: connect to host gpu07 port 22: No route to host",
        "nothing was reported about this node",
        "the run ended before anything was known about this node",
    ):
        assert page.texts.count(reason) >= 2, reason


def test_what_many_checks_say_alike_is_said_once_with_their_names():
    certificate = healthy("a", 0, 2).certificate
    reasons = _page.grouped(
        ("ecc_on: NVML hung", "no_xid: a gap", "power_limit: NVML hung", "not a check: NVML hung"),
        certificate,
    )
    assert reasons == (
        _page.Reason(text="NVML hung", checks=("ecc_on", "power_limit")),
        _page.Reason(text="no_xid: a gap"),
        _page.Reason(text="not a check: NVML hung"),
    )


def test_counts_by_verdict(page):
    tally = page.text.split("started")[0]
    for words in ("1 certified", "4 rejected", "1 inconclusive", "1 unreachable", "1 missing", "1 unknown"):
        assert words in tally


@pytest.mark.parametrize("state", ["unknown", "running", "failed", "unreachable", "missing", "done"])
def test_no_state_is_left_without_a_reason(state):
    view = run_view(gpus=1)
    node = NodeView(record=HostRecord(host="a", state=state))
    standing, reasons = _page.standing(view.run, node)
    assert standing == ("none" if state == "done" else state)
    assert reasons[0]
    assert standing != "certified"


def test_the_phase_that_failed_is_named():
    record = HostRecord(
        host="a", state="failed", phases={"observe": "done", "probe": "failed"}, error="disk full"
    )
    assert _page.standing(run_view(gpus=1).run, NodeView(record=record)) == ("failed", ("probe: disk full",))


def test_a_certificate_without_reasons_that_does_not_certify_says_that():
    view = healthy("a", 0, 1)
    node = replace(view, certificate=replace(view.certificate, verdict="inconclusive"))
    _, reasons = _page.standing(run_view(gpus=1).run, node)
    assert reasons[0].startswith("the certificate gives no reason; its checks: 1 WAIVED")


def test_simulated_is_said_large_in_the_title_and_at_the_end(page, html):
    assert "<title>SIMULATED · " in html
    assert "no real hardware was tested" in page.texts
    classes = [attributes.get("class", "") for _, attributes in page.elements]
    assert "banner" in classes
    assert "watermark" in classes


def test_one_simulated_node_among_real_ones_is_named():
    simulated = healthy("gpu01", 0, 1)
    real = _page.build(_real(run_view(gpus=1)))
    assert real.simulated == ""
    mixed = _real(run_view(gpus=1))
    mixed = replace(mixed, nodes=(simulated, *mixed.nodes[1:]))
    assert _page.build(mixed).simulated == "no real hardware was tested on gpu01"


def test_a_real_run_has_no_banner():
    html = render(_real(run_view(gpus=2))).decode()
    assert "SIMULATED" not in Page(html).text
    assert 'class="watermark"' not in html


def _real(view: RunView) -> RunView:
    def real(document):
        return replace(document, simulated=False) if document is not None else None

    nodes = tuple(
        replace(
            node,
            facts_before=real(node.facts_before),
            facts_after=real(node.facts_after),
            plan=real(node.plan),
            probe=real(node.probe),
            certificate=real(node.certificate),
            telemetry=tuple(real(series) for series in node.telemetry),
        )
        for node in view.nodes
    )
    return RunView(run=replace(view.run, simulated=False), nodes=nodes)


def test_hostile_text_stays_text(page):
    assert not [tag for tag, _ in page.elements if tag == "img"]
    assert EVENT_XSS in page.texts
    assert f"gpu09{IMAGE}" in page.texts
    assert len([tag for tag, _ in page.elements if tag == "script"]) == 3


def test_hostile_names_cannot_end_the_data_block():
    view = run_view(gpus=1)
    first = view.nodes[0]
    hostile = replace(first.telemetry[0], gpu="</script><script>alert(1)</script>")
    html = render(replace(view, nodes=(replace(first, telemetry=(hostile,)), *view.nodes[1:]))).decode()
    (data,) = [text for tag, attributes, text in Page(html).raw if attributes.get("id") == "chart-data"]
    assert json.loads(data)["0"]["gpus"] == ["</script><script>alert(1)</script>"]
    assert "<" not in data


def test_no_attribute_runs_or_styles_anything(page):
    for tag, attributes in page.elements:
        for name in attributes:
            assert not name.startswith("on"), (tag, name)
            assert name not in ("style", "src", "srcset", "action", "ping", "background"), (tag, name)


def test_links_are_local(page):
    for tag, attributes in page.elements:
        href = attributes.get("href", "#")
        assert href.startswith("#") or (
            tag == "a" and re.match(r"^(certificates|facts|plan|probe|evidence)/", href)
        )
        assert tag not in ("link", "iframe", "object", "embed", "base", "form", "audio", "video"), tag


def test_styles_fetch_nothing(page):
    for _, _, text in page.raw:
        assert "@import" not in text
        assert "url(" not in text


def test_the_policy_allows_the_pages_own_code_and_nothing_else(page):
    (policy,) = [a["content"] for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"]
    parts = dict(part.split(" ", 1) for part in policy.split("; "))
    assert parts["default-src"] == "'none'"
    assert "connect-src" not in parts
    assert "unsafe" not in policy
    for tag, attributes, text in page.raw:
        if attributes.get("type") == "application/json":
            continue
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in parts[f"{tag}-src"]
    assert parts["script-src"].count("sha256-") == 2


def test_the_licence_of_the_library_travels_with_it(html):
    assert "Copyright (c) 2022 Leon Sorokin" in html


def test_a_waiver_is_visible_with_its_owner_and_end(page):
    assert f"waived: was FAIL; {WAIVER.owner} answers for it until 2027-01-31: {WAIVER.why}" in page.texts


def test_what_was_skipped_tells_why(page):
    assert "this board has no NVLink fabric to register with" in page.texts


def test_an_injected_fault_is_confessed(page):
    assert "flip:block=7,bit=0" in page.texts
    assert any("can never certify" in text for text in page.texts)


def test_limits_stand_with_their_source(page):
    assert "policy gpu.power_limit: 93 % of 700 W" in page.texts


def test_configuration_of_gpus_is_a_table():
    node = _page.build(run_view(gpus=3)).nodes[0]
    assert node.gpu_configuration.gpus[0] == "17:00.0"
    assert dict(node.gpu_configuration.rows) == {
        "ecc": ("on",),
        "persistence": ("on",),
        "power_limit_w": ("651",),
    }
    assert [key for key, _ in node.configuration] == ["driver.version", "kernel.cmdline", "kernel.release"]


def test_nodes_of_the_same_letters_have_sections_of_their_own():
    view = run_view(gpus=1)
    twins = tuple(NodeView(record=HostRecord(host=host)) for host in ("a b", "a-b", "a/b"))
    anchors = [node.anchor for node in _page.build(replace(view, nodes=twins)).nodes]
    assert len(set(anchors)) == 3


def test_many_nodes_put_what_needs_attention_first_in_the_rack_table():
    few, many = _page.build(run_view(gpus=1)), _page.build(run_view(gpus=1, extra=30))
    assert few.columns == few.nodes
    assert [node.standing for node in many.columns[:4]] == ["rejected"] * 4
    assert many.columns[-1].standing == "certified"
    cells = next(row for row in many.matrix if row.id == "pcie_link_width_load").cells
    assert cells[[node.host for node in many.columns].index("gpu02")].kind == "fail"


def test_a_rack_of_eight_is_small_and_one_of_a_hundred_bearable():
    assert len(render(run_view(gpus=8, samples=800))) < 1_500_000
    assert len(render(run_view(gpus=8, extra=91))) < 7_000_000


def test_an_empty_run_is_a_page_too():
    html = render(RunView(run=replace(run_view(gpus=1).run, hosts=()), nodes=())).decode()
    assert Page(html).open == []
