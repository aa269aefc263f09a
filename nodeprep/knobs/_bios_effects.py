"""Whether a host shows what its BIOS says it was set to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nodeprep.model.facts import NodeFacts


def unseen_effects(facts: NodeFacts, written: Mapping[str, str]) -> tuple[str, ...]:
    """What a BIOS says of itself and its host does not show.

    A current value says what the BIOS was told. Where a running kernel shows whether it did it, it is asked.

    Args:
        facts: From after the reset.
        written: Knobs that were brought into effect, with their values.
    """
    return tuple(_unseen(facts, written))


def _unseen(facts: NodeFacts, written: Mapping[str, str]) -> Iterator[str]:
    if written.get("iommu") == "disabled":
        units = facts.iommu.units
        if units.value is None:
            yield f"iommu: whether the host runs one could not be read: {units.detail}"
        elif units.value:
            yield f"iommu: disabled in the BIOS, and the host still runs {', '.join(units.value)}"
    if written.get("aspm") == "disabled":
        yield from _aspm_left(facts)


def _aspm_left(facts: NodeFacts) -> Iterator[str]:
    devices = facts.pci.devices
    if devices.value is None:
        yield f"aspm: whether links use it could not be read: {devices.detail}"
        return
    for device in devices.value:
        enabled = device.link.aspm_enabled
        if enabled.state == "error":
            yield f"aspm: LnkCtl of {device.address} could not be read: {enabled.detail}"
        elif enabled.value:
            yield f"aspm: disabled in the BIOS, and {device.address} still uses {', '.join(enabled.value)}"
