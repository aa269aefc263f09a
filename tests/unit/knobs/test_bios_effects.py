"""A BIOS that says it was set so, and a host that does not show it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nodeprep.knobs import unseen_effects
from nodeprep.model.codec import decode
from nodeprep.model.facts import NodeFacts
from nodeprep.model.reading import Reading

FACTS = decode(
    (Path(__file__).parents[2] / "cases" / "knobs" / "facts.json").read_bytes(), NodeFacts, source="base"
)
UNREAD: Reading[Any] = Reading.error("no such file")


def with_iommu(units: Reading[Any]) -> NodeFacts:
    return replace(FACTS, iommu=replace(FACTS.iommu, units=units))


def with_links(**changes: Reading[Any]) -> NodeFacts:
    devices = tuple(
        replace(device, link=replace(device.link, **changes)) for device in FACTS.pci.devices.value or ()
    )
    return replace(FACTS, pci=replace(FACTS.pci, devices=Reading.ok(devices)))


def test_an_iommu_that_still_runs_or_cannot_be_read() -> None:
    assert unseen_effects(with_iommu(Reading.ok(())), {"iommu": "disabled"}) == ()
    assert "dmar0" in unseen_effects(with_iommu(Reading.ok(("dmar0",))), {"iommu": "disabled"})[0]
    assert "no such file" in unseen_effects(with_iommu(UNREAD), {"iommu": "disabled"})[0]
    # Kernel arguments may keep it off, and are judged by their own check.
    assert unseen_effects(with_iommu(Reading.ok(())), {"iommu": "enabled"}) == ()


def test_links_that_still_use_aspm_or_cannot_be_read() -> None:
    assert unseen_effects(with_links(aspm_enabled=Reading.ok(())), {"aspm": "disabled"}) == ()
    assert "L1" in unseen_effects(with_links(aspm_enabled=Reading.ok(("L1",))), {"aspm": "disabled"})[0]
    assert "LnkCtl" in unseen_effects(with_links(aspm_enabled=UNREAD), {"aspm": "disabled"})[0]
    unseen = replace(FACTS, pci=replace(FACTS.pci, devices=UNREAD))
    assert "no such file" in unseen_effects(unseen, {"aspm": "disabled"})[0]


@pytest.mark.parametrize(("target_gts", "held"), [(16.0, True), (8.0, True), (32.0, False)])
def test_a_port_above_each_gpu_is_held_at_the_generation(target_gts: float, held: bool) -> None:
    facts = with_links(target_speed_gts=Reading.ok(target_gts), cap_speed_gts=Reading.ok(32.0))
    assert (unseen_effects(facts, {"pcie_link_gen": "4"}) == ()) is held
    assert unseen_effects(facts, {"pcie_link_gen": "auto"}) == ()


def test_ports_that_tell_no_speed_prove_nothing() -> None:
    facts = with_links(target_speed_gts=UNREAD, cap_speed_gts=UNREAD)
    assert "tells its speed" in unseen_effects(facts, {"pcie_link_gen": "4"})[0]
