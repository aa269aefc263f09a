"""The drawing of how GPUs hang together: what is shared is wide, what was measured stands on its edge."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree

from nodeprep.model.run import HostRecord, NodeView, Run, RunView
from nodeprep.reports import html
from nodeprep.reports._gpus import marks
from nodeprep.reports._topology import LINE, Topology, draw
from tests.cases.base.documents import context

GPU = "0000:18:00.0"
SECOND_SOCKET = {f"/pci/devices/0000:{bus}:00.0/numa_node": 1 for bus in ("63", "64", "9a", "9b")}


def view(**changes: dict[str, object]) -> NodeView:
    """The healthy node of the cases: eight GPUs, two behind each switch."""
    documents = context(**changes)
    return NodeView(
        record=HostRecord(host="node01", state="done"),
        facts_before=documents.before,
        facts_after=documents.after,
        probe=documents.probe,
    )


def drawn(**changes: dict[str, object]) -> Topology:
    node = view(**changes)
    found = draw(node, marks(node))
    assert found is not None
    return found


def titles(found: Topology, kind: str) -> list[str]:
    return [box.title for box in found.boxes if box.kind == kind]


def test_boxes_span_what_is_below_them():
    found = drawn(facts=SECOND_SOCKET)
    gpus = [box for box in found.boxes if box.kind == "gpu"]
    assert len(gpus) == 8
    for box in (each for each in found.boxes if each.kind == "switch"):
        below = [gpu for gpu in gpus if box.x <= gpu.x and gpu.x + gpu.width <= box.x + box.width]
        assert len(below) == 2
    assert titles(found, "numa") == ["NUMA node 0", "NUMA node 1"]
    assert len(titles(found, "root")) == 4


def test_boxes_lie_within_the_drawing_and_do_not_overlap():
    found = drawn()
    for box in found.boxes:
        assert box.x >= 0
        assert box.x + box.width <= found.width
        assert box.y + box.height <= found.height
    places = sorted((box.y, box.x, box.x + box.width) for box in found.boxes)
    for (row, _, end), (next_row, start, _) in pairwise(places):
        assert row != next_row or end < start


def test_measured_numbers_stand_on_their_edges():
    found = drawn(facts=SECOND_SOCKET)
    labels = [label for line in found.lines for label in line.labels]
    assert labels.count("55.1 / 54.8 GB/s") == 8
    assert labels.count("18 of 18 links") == 8
    assert labels.count("374 GB/s") == 8
    notes = [box.note for box in found.boxes]
    assert notes.count("2 together 54.8 / 54.4 GB/s") == 4
    # Under load; the idle GPUs of these facts run their links at Gen1.
    assert labels.count("Gen5 x16") == 12
    assert "all at once 107.6 / 106.4 GB/s" in notes
    (nvlink,) = [box for box in found.boxes if box.kind == "nvlink"]
    assert "all-reduce over 8 GPUs: 368.4 GB/s of bus bandwidth (nccl)" in nvlink.note
    assert "561 TFLOP/s, 641 W" in notes


def test_a_slow_pair_stands_out_in_the_table():
    found = drawn(probe={"/peers/pairs/2/gbps": 187.0})
    assert found.matrix is not None
    odd = [(label, text) for label, cells in found.matrix.rows for text, is_odd in cells if is_odd]
    assert odd == [("18:00.0", "187")]


def test_a_pair_that_was_not_measured_is_said_to_be_none():
    found = drawn(probe={"/peers/pairs/2/gbps": "error: hung"})
    assert found.matrix is not None
    assert [text for _, cells in found.matrix.rows for text, odd in cells if odd] == ["none"]


def test_a_hanging_rank_is_named():
    words = "the all-reduce did not end: rank 4 (GPU 0000:63:00.0) did not arrive"
    found = drawn(probe={"/peers/all_reduce/sizes": f"error: {words}"})
    assert words in found.summary


def test_without_measurements_the_wiring_is_still_drawn():
    found = drawn(probe={"/peers": "error: stopped while the GPUs were measured together"})
    assert len(titles(found, "gpu")) == 8
    assert titles(found, "nvlink") == []
    assert found.matrix is None
    assert found.notes == ("GPUs together: stopped while the GPUs were measured together",)


def test_boards_without_nvlink_have_no_nvlink_row():
    none = "not supported: NVML knows no NVLink of this GPU"
    found = drawn(probe={"/peers/nvlinks/*/before": none, "/peers/nvlinks/*/after": none})
    assert titles(found, "nvlink") == []


def test_a_gpu_directly_below_the_host_is_connected():
    found = drawn(facts={"/pci/gpu_paths/0/hops": [GPU]})
    (box,) = [each for each in found.boxes if each.title == "GPU 18:00.0"]
    middle = box.x + LINE
    reached = sorted(
        (line.top, line.bottom) for line in found.lines if line.x == middle and line.kind == "pcie"
    )
    # From the host's box to the GPU without a gap.
    assert all(one[1] == other[0] for one, other in pairwise(reached))
    assert reached[-1][1] == box.y


def test_an_unread_bus_is_not_drawn():
    node = view(
        facts={"/pci/gpu_paths": "error: Permission denied", "/pci/devices": "error: Permission denied"}
    )
    assert draw(node, marks(node)) is None


def test_the_page_has_the_drawing_as_valid_svg():
    run = Run(
        id="r", verb="certify", started_at="2026-11-30T10:00:00Z", ended_at="2026-11-30T10:03:00Z", hosts=()
    )
    page = html.render(RunView(run=run, nodes=(view(),))).decode()
    picture = page[page.index('<svg class="map"') :].partition("</svg>")[0] + "</svg>"
    root = ElementTree.fromstring(picture)  # noqa: S314 - the package's own page
    assert root.get("aria-label", "").startswith("8 GPUs, copies between GPUs 374 GB/s one way")
    assert len(root.findall(".//rect")) == len(drawn().boxes)
