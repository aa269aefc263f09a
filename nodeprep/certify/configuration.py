"""The state a certificate vouches for, one key a fact, so that drift can name what changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nodeprep.certify.identity import text_of
from nodeprep.model.certificate import Configuration
from nodeprep.model.facts import Gpu, NodeFacts, PciDevice
from nodeprep.model.reading import Reading


def configuration_of(facts: NodeFacts) -> Configuration:
    """The settings and wear marks of a node.

    Left out is what changes by itself from one look to the next: temperatures, clocks, the trained
    state of an idle link, counters since driver load.
    """
    values = dict(_node(facts))
    for path in facts.pci.gpu_paths.value or ():
        values[f"pci.{path.gpu}.path"] = " > ".join(path.hops)
    for device in facts.pci.devices.value or ():
        values.update(_device(device))
    for gpu in facts.nvml.gpus.value or ():
        values.update((f"gpu.{gpu.pci_address}.{name}", text) for name, text in _gpu(gpu))
    return Configuration(values=values)


def _node(facts: NodeFacts) -> Iterator[tuple[str, str]]:
    yield "kernel.cmdline", text_of(facts.boot.cmdline)
    yield "kernel.release", text_of(facts.boot.kernel_release)
    yield "cpu.online", text_of(facts.cpu.online)
    yield "memory.installed_bytes", text_of(facts.memory.dmi_installed_bytes)
    yield "bios.date", text_of(facts.dmi.bios_date)
    yield "driver.version", text_of(facts.driver.nvidia_version)
    yield "driver.open", text_of(facts.driver.nvidia_open)
    yield "iommu.units", _listed(facts.iommu.units)
    yield "iommu.group_types", _listed(facts.iommu.group_types)
    yield "pci.devices", _count(facts.pci.devices)
    yield "nvml.gpus", _count(facts.nvml.gpus)


def _device(device: PciDevice) -> Iterator[tuple[str, str]]:
    link = device.link
    yield f"pci.{device.address}.id", f"{device.vendor_id}:{device.device_id}"
    yield f"pci.{device.address}.aspm", _listed(link.aspm_enabled, empty="off")
    yield f"pci.{device.address}.link_cap_gts", text_of(link.cap_speed_gts)
    yield f"pci.{device.address}.link_cap_lanes", text_of(link.cap_width_lanes)
    yield f"pci.{device.address}.link_target_gts", text_of(link.target_speed_gts)


def _gpu(gpu: Gpu) -> Iterator[tuple[str, str]]:
    yield "power_limit_w", text_of(gpu.power.limit_w)
    yield "power_enforced_w", text_of(gpu.power.enforced_w)
    yield "power_default_w", text_of(gpu.power.default_w)
    yield "persistence", text_of(gpu.persistence)
    yield "ecc", text_of(gpu.ecc.enabled)
    yield "ecc_pending", text_of(gpu.ecc.pending_enabled)
    yield "ecc_aggregate_uncorrected", text_of(gpu.ecc.aggregate_uncorrected)
    yield "mig", text_of(gpu.mig_enabled)
    yield "inforom_version", text_of(gpu.inforom_version)
    yield "board_part_number", text_of(gpu.board_part_number)
    yield "link_max_gen", text_of(gpu.link.max_gen)
    yield "link_max_lanes", text_of(gpu.link.max_width_lanes)
    yield "remapped_rows_correctable", text_of(gpu.remap.correctable_rows)
    yield "remapped_rows_uncorrectable", text_of(gpu.remap.uncorrectable_rows)
    yield "remap_pending", text_of(gpu.remap.pending)
    yield "remap_failure", text_of(gpu.remap.failure)
    yield "recovery_action", text_of(gpu.recovery_action)


def _listed(reading: Reading[Any], *, empty: str = "none") -> str:
    """The names in a tuple or the keys of a mapping, in one fixed order."""
    return text_of(reading) if reading.value is None else ", ".join(sorted(reading.value)) or empty


def _count(reading: Reading[Any]) -> str:
    return text_of(reading) if reading.value is None else str(len(reading.value))
