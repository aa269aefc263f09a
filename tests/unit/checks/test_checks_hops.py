"""Which pairs of hops are links, and when the port above a GPU can be believed."""

from __future__ import annotations

import pytest

from nodeprep.checks._hops import LinkEnds, Way, gpu_paths, links, way
from nodeprep.model.reading import Unreadable
from tests.cases.base.documents import context

GPU = "0000:63:00.0"


def way_of(**changes: object) -> Way:
    documents = context(before={f"/{path}": value for path, value in changes.items()})
    path = next(path for path, _ in gpu_paths(documents, "before") if path.gpu == GPU)
    return way(documents, "before", path)


def addresses(found: tuple[LinkEnds, ...]) -> list[tuple[str, ...]]:
    return [tuple(end.address for end in link.ends) for link in found]


def test_the_inside_of_a_switch_is_no_link() -> None:
    found = links(way_of())
    assert addresses(found) == [("0000:60:01.0", "0000:61:00.0"), ("0000:62:00.0", GPU)]
    assert [link.name for link in found] == ["switch port 0000:61:00.0", f"GPU {GPU}"]


def test_a_gpu_right_below_its_root_port_has_one_link() -> None:
    found = links(way_of(**{f"pci/gpu_paths/{GPU}/hops": ["0000:60:01.0", GPU]}))
    assert addresses(found) == [("0000:60:01.0", GPU)]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({f"pci/gpu_paths/{GPU}/hops": [GPU]}, "no port above it is visible"),
        ({"cpu/hypervisor": True}, "the ports are the hypervisor's own"),
    ],
)
def test_in_a_virtual_machine_only_the_gpus_end_is_seen(changes: dict[str, object], words: str) -> None:
    found = way_of(**changes)
    assert not found.port_in_sight
    assert words in found.out_of_sight
    assert addresses(links(found)) == [(GPU,)]


def test_an_emulated_tree_of_a_simulated_document_is_the_machine() -> None:
    assert way_of(**{"cpu/hypervisor": True, "simulated": True}).port_in_sight


def test_not_knowing_whether_this_is_a_virtual_machine_is_unreadable() -> None:
    with pytest.raises(Unreadable, match="whether this is a virtual machine"):
        way_of(**{"cpu/hypervisor": "error: /proc/cpuinfo: input/output error"})


def test_a_gpu_below_something_that_is_no_port_is_unreadable() -> None:
    with pytest.raises(Unreadable, match="no port that faces down"):
        links(way_of(**{"pci/devices/0000:62:00.0/port_type": "pcie_to_pci_bridge"}))


def test_an_empty_path_is_unreadable() -> None:
    with pytest.raises(Unreadable, match="was not collected"):
        way_of(**{f"pci/gpu_paths/{GPU}/hops": []})
