"""The life of good kernel arguments, on GRUB with and without a cloud image's drop-in, both at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from apply_helpers import Site, look, site

from nodeprep.sim.vm import Hardware

pytestmark = pytest.mark.metal

# The default policy's, and what its aer_ownership: auto brings along.
WANTED = ("pcie_aspm=off", "iommu=off", "pcie_ports=native")


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """node1 plain, node2 with a drop-in that assigns GRUB_CMDLINE_LINUX_DEFAULT."""
    with site(tmp_path_factory.mktemp("l"), [Hardware(), Hardware(cloud=True)]) as made:
        yield made


def test_plan_apply_reboot_verify_apply_again_and_roll_back(both: Site) -> None:
    names = [vm.name for vm in both.rack.machines]
    planned = both.run("plan")
    for name in names:
        changes = [c for c in planned.of(name).document["changes"] if c["knob"] == "kernel_args"]
        assert {c["new"] for c in changes if c["status"] == "change"} == set(WANTED), changes

    applied = both.run("apply")
    after = {vm.name: look(vm) for vm in both.rack.machines}
    for name in names:
        trial, first, now = applied.of(name).trial, both.first[name], after[name]
        assert trial["state"] == "permanent", applied.of(name).told()
        assert now.id != first.id
        for word in WANTED:
            assert now.running.split().count(word) == now.permanent.split().count(word) == 1, now
        # Nothing of others is lost, whoever set it, and nothing of the trial becomes permanent.
        assert [w for w in now.permanent.split() if w not in WANTED] == first.permanent.split()
        assert not now.next_entry
        assert not now.left

    again = both.run("apply")
    assert all(again.of(name).document["state"] == "unchanged" for name in names), again.document
    assert {vm.name: look(vm) for vm in both.rack.machines} == after

    back = both.run("rollback")
    for vm in both.rack.machines:
        now, first = look(vm), both.first[vm.name]
        assert back.of(vm.name).document["state"] == "restored", back.document
        assert (now.running, now.permanent) == (first.running, first.permanent)
        assert now.id != after[vm.name].id
        assert not now.next_entry
        assert not now.left
    assert both.run("rollback").of("node1").document["state"] == "nothing"
