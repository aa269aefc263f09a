"""Apply, verify and roll back over the trees that real BMCs served: each is as it was, afterwards."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from nodeprep.sim.bmc import read_dump

ROOT = Path(__file__).parents[2]
TREES = ROOT.parent / "shared" / "field-data" / "redfish"
sys.path.insert(0, str(ROOT / "tests" / "unit" / "bmc" / "redfish"))

from bios_bench import Bench  # noqa: E402

pytestmark = pytest.mark.skipif(not TREES.is_dir(), reason=f"the real trees are not at {TREES}")
# What each board can change; Dell's ASPM needs a preset that nodeprep does not change by itself.
WANTED = {
    "dell": ("iommu=disabled", "sriov=disabled"),
    "gigabyte": ("pcie_link_gen=3", "iommu=disabled", "xhci_handoff=disabled"),
    "hpe": ("pcie_link_gen=3", "iommu=disabled"),
    "lenovo": ("pcie_link_gen=3", "iommu=disabled"),
}


@pytest.mark.parametrize("name", WANTED)
def test_a_tree_is_as_it_was_after_apply_verify_and_rollback(name: str, tmp_path: Path) -> None:
    bench = Bench(read_dump(TREES / f"{name}.json"), tmp_path, post_s=60.0)
    before, waited = bench.current, bench.waiting
    assert not bench.plan(*WANTED[name]).in_desired_state
    done = bench.apply(*WANTED[name])
    assert (done.state, done.error) == ("applied", "")
    assert bench.current != before
    assert bench.plan(*WANTED[name]).in_desired_state
    undone = bench.rollback()
    assert (undone.state, undone.error) == ("applied", "")
    assert bench.current == before
    assert bench.waiting in ({}, waited)
    assert not bench.plan(*WANTED[name]).in_desired_state
    assert bench.bmc.state.host.power == "On"
    assert bench.bmc.state.sessions.ids() == []
