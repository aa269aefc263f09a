"""Whether a host shows what its BIOS says it was set to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from nodeprep.model.facts import NodeFacts

# PCI Express Base Specification, Supported Link Speeds: GT/s by generation.
_SPEED_GTS = {1: 2.5, 2: 5.0, 3: 8.0, 4: 16.0, 5: 32.0, 6: 64.0}


def unseen_effects(facts: NodeFacts, written: Mapping[str, str]) -> tuple[str, ...]:
    """What a BIOS says of itself and its host does not show; what the host cannot show is not asked.

    Args:
        facts: From after the reset.
        written: Knobs that were brought into effect, with their values.
    """
    found: list[str] = []
    if written.get("iommu") == "disabled":
        found += _iommu_left(facts)
    if written.get("aspm") == "disabled":
        found += _aspm_left(facts)
    generation = written.get("pcie_link_gen", "auto")
    if generation != "auto":
        found += _faster_links(facts, int(generation))
    return tuple(found)


def _iommu_left(facts: NodeFacts) -> Iterator[str]:
    units = facts.iommu.units
    if units.value is None:
        yield f"iommu: whether the host runs one could not be read: {units.detail}"
    elif units.value:
        yield f"iommu: disabled in the BIOS, and the host still runs {', '.join(units.value)}"


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


def _faster_links(facts: NodeFacts, generation: int) -> Iterator[str]:
    """A slot's setting ends at the slot, so one held port on the way to a GPU is enough."""
    paths = facts.pci.gpu_paths
    if paths.value is None:
        yield f"pcie_link_gen: the way to the GPUs could not be read: {paths.detail}"
        return
    for path in paths.value:
        ports = [device for hop in path.hops[:-1] if (device := facts.pci_device(hop)) is not None]
        told = [(port.link.target_speed_gts, port.link.cap_speed_gts) for port in ports]
        speeds = [speed.value for pair in told for speed in pair if speed.value is not None]
        if ports and not speeds:
            yield f"pcie_link_gen: no port above GPU {path.gpu} tells its speed"
        elif speeds and min(speeds) > _SPEED_GTS[generation]:
            yield (
                f"pcie_link_gen: {generation} in the BIOS, and no port above GPU {path.gpu} is held at it: "
                f"at least {min(speeds):g} GT/s"
            )
