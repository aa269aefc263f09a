"""The state a certificate vouches for, one key a fact, so that drift can name what changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from nodeprep.certify.identity import NOT_SUPPORTED, UNREADABLE, text_of
from nodeprep.model.bios import BiosFacts, BiosKnobState
from nodeprep.model.certificate import Configuration
from nodeprep.model.facts import Driver, Fabric, Gpu, NodeFacts, NvLink, PciDevice
from nodeprep.model.reading import Reading
from nodeprep.node import trial_words
from nodeprep.node.kernel_cmdline import words

_GIB = 1024**3

# Each group of keys, and the key that says how many members it has. A count that is unreadable
# speaks for its whole group.
COUNT_OF_GROUP = {
    "gpu.": "nvml.gpus",
    "pci.": "pci.devices",
    "nic.": "nics",
    "aer.bridge.": "aer.bridges",
    "bios.knob": "bios.knobs",
}


def configuration_of(facts: NodeFacts) -> Configuration:
    """The settings, links and wear marks of a node.

    Left out is what changes by itself from one look to the next: temperatures, clocks, the speed of
    a link (idle GPUs fall to Gen1), corrected errors. The width of a link stays when it idles.
    """
    values = dict(_node(facts))
    values.update(_driver(facts.driver))
    values.update(_aer(facts))
    values.update(_bios(facts.bios))
    for path in facts.pci.gpu_paths.value or ():
        values[f"pci.{path.gpu}.path"] = " > ".join(path.hops)
    for device in facts.pci.devices.value or ():
        values.update((f"pci.{device.address}.{name}", text) for name, text in _device(device))
    for gpu in facts.nvml.gpus.value or ():
        values.update((f"gpu.{gpu.pci_address}.{name}", text) for name, text in _gpu(gpu))
    return Configuration(values=values)


def same(key: str, was: str, now: str) -> bool:
    """Whether two texts of one key say the same about the node."""
    if was == now:
        return True
    if not (was.isdecimal() and now.isdecimal()):
        return False
    if key == "memory.total_gib":
        # Another kernel reserves some MiB more, which can move the rounded figure by one; a lost
        # memory module is worth many.
        return abs(int(was) - int(now)) <= 1
    # Counts since driver load begin anew with the driver.
    return key.endswith(".ecc_volatile_uncorrected") and int(now) < int(was)


def _node(facts: NodeFacts) -> Iterator[tuple[str, str]]:
    yield "kernel.cmdline", _told(facts.boot.cmdline, lambda running: _lasting(running, facts))
    yield "boot.loader", text_of(facts.boot_loader.id)
    yield "boot.cmdline", text_of(facts.boot_loader.cmdline)
    yield "boot.kernel", text_of(facts.boot_loader.default_kernel)
    yield "boot.secure", text_of(facts.kernel_use.secure_boot)
    yield "boot.lockdown", text_of(facts.kernel_use.lockdown)
    yield "vfio", _listed(facts.kernel_use.vfio_devices)
    yield "virtual_functions", _listed(facts.kernel_use.virtual_functions)
    yield "disks", _listed(facts.disks)
    yield "kernel.release", text_of(facts.boot.kernel_release)
    yield "cpu.online", text_of(facts.cpu.online)
    yield "memory.installed_bytes", text_of(facts.memory.dmi_installed_bytes)
    yield "memory.total_gib", _told(facts.memory.total_bytes, lambda size: str(round(size / _GIB)))
    yield "bios.date", text_of(facts.dmi.bios_date)
    yield "iommu.units", _listed(facts.iommu.units)
    yield "iommu.groups", text_of(facts.iommu.groups)
    yield "iommu.group_types", _told(facts.iommu.group_types, _counts)
    yield "nics", _count(facts.nics)
    for nic in facts.nics.value or ():
        yield f"nic.{nic.name}", text_of(nic.pci_address)
    yield "pci.devices", _count(facts.pci.devices)
    yield "nvml.gpus", _count(facts.nvml.gpus)
    yield "nvml.lost", _told(facts.nvml.gpus, lambda _: "; ".join(facts.nvml.lost) or "none")


def _bios(bios: Reading[BiosFacts]) -> Iterator[tuple[str, str]]:
    """The knobs in effect; what is only staged shows when it is in effect."""
    if bios.value is None:
        # Also where the inventory names no BMC: another inventory may, and the BIOS was the same.
        yield "bios.knobs", UNREADABLE + (bios.detail or "no reason given")
        return
    yield "bios.knobs", str(len(bios.value.knobs))
    for knob in bios.value.knobs:
        yield f"bios.knob.{knob.knob}", _knob(knob)


def _knob(knob: BiosKnobState) -> str:
    if not knob.found:
        return NOT_SUPPORTED
    if knob.value not in ("", "mixed"):
        return knob.value
    return ", ".join(f"{one.name}={one.current}" for one in knob.settings)


def _lasting(running: str, facts: NodeFacts) -> str:
    """The running command line, without what its first boot, a trial, had beside it and no later one has."""
    if not trial_words.marked(running):
        return running
    permanent = set(words(facts.boot_loader.cmdline.value or ""))
    added = [word for word in (trial_words.PANIC, *trial_words.DRACUT) if word not in permanent]
    return trial_words.without(running, [trial_words.MARKER, *added])


def _driver(driver: Driver) -> Iterator[tuple[str, str]]:
    yield "driver.version", text_of(driver.nvidia_version)
    yield "driver.disk_version", text_of(driver.nvidia_disk_version)
    yield "driver.open", text_of(driver.nvidia_open)
    yield "driver.nouveau", text_of(driver.nouveau_loaded)
    yield "persistenced.running", text_of(driver.persistenced_running)
    yield "persistenced.no_persistence_mode", text_of(driver.persistenced_no_persistence_mode)
    unit = driver.gpu_power_unit
    yield "boot_unit.enabled", _told(unit, lambda found: _yes_no(found.enabled))
    yield "boot_unit.limit", _told(unit, lambda found: found.limit or "left alone")
    yield "boot_unit.persistence", _told(unit, lambda found: _yes_no(found.persistence))
    pin = driver.pcie_link_unit
    yield "link_unit.enabled", _told(pin, lambda found: _yes_no(found.enabled))
    yield "link_unit.gen", _told(pin, lambda found: "none" if found.gen is None else str(found.gen))
    yield "link_unit.ports", _told(pin, lambda found: ", ".join(sorted(found.ports)) or "none")


def _aer(facts: NodeFacts) -> Iterator[tuple[str, str]]:
    owner = facts.aer_ownership
    yield "aer.noaer", text_of(owner.noaer)
    yield "aer.ports_native", text_of(owner.ports_native)
    yield "aer.firmware_first", text_of(owner.firmware_first)
    yield "aer.bridges", _count(owner.root_bridges)
    for bridge in owner.root_bridges.value or ():
        yield f"aer.bridge.{bridge.bus}", _listed(bridge.controls)


def _device(device: PciDevice) -> Iterator[tuple[str, str]]:
    link = device.link
    yield "id", f"{device.vendor_id}:{device.device_id}"
    yield "aspm", _listed(link.aspm_enabled, empty="off")
    yield "link_cap_gts", text_of(link.cap_speed_gts)
    yield "link_cap_lanes", text_of(link.cap_width_lanes)
    yield "link_lanes", text_of(link.sta_width_lanes)
    yield "link_target_gts", text_of(link.target_speed_gts)
    yield "aer_reporting", _listed(device.aer.reporting)
    yield "aer_root_reporting", _listed(device.aer.rootport_reporting)


def _gpu(gpu: Gpu) -> Iterator[tuple[str, str]]:
    yield "power_limit_w", text_of(gpu.power.limit_w)
    yield "power_enforced_w", text_of(gpu.power.enforced_w)
    yield "power_default_w", text_of(gpu.power.default_w)
    yield "persistence", text_of(gpu.persistence)
    yield "mig", text_of(gpu.mig_enabled)
    yield "mig_pending", text_of(gpu.mig_pending)
    yield "gsp", text_of(gpu.gsp_enabled)
    yield "gsp_version", text_of(gpu.gsp_version)
    yield "inforom_valid", text_of(gpu.inforom_valid)
    yield "inforom_version", text_of(gpu.inforom_version)
    yield "board_part_number", text_of(gpu.board_part_number)
    yield "link_max_gen", text_of(gpu.link.max_gen)
    yield "link_max_lanes", text_of(gpu.link.max_width_lanes)
    yield "nvlinks", _told(gpu.nvlinks, _active)
    yield "fabric", _told(gpu.fabric, _registration)
    yield "fabric_health", _told(gpu.fabric, _health)
    yield "fabric_health_summary", _told(gpu.fabric, _health_summary)
    yield "recovery_action", text_of(gpu.recovery_action)
    yield from _gpu_memory(gpu)


def _gpu_memory(gpu: Gpu) -> Iterator[tuple[str, str]]:
    yield "ecc", text_of(gpu.ecc.enabled)
    yield "ecc_pending", text_of(gpu.ecc.pending_enabled)
    yield "ecc_volatile_uncorrected", text_of(gpu.ecc.volatile_uncorrected)
    yield "ecc_aggregate_uncorrected", text_of(gpu.ecc.aggregate_uncorrected)
    yield "sram_threshold_exceeded", text_of(gpu.ecc.sram_threshold_exceeded)
    yield "remapped_rows_correctable", text_of(gpu.remap.correctable_rows)
    yield "remapped_rows_uncorrectable", text_of(gpu.remap.uncorrectable_rows)
    yield "remap_pending", text_of(gpu.remap.pending)
    yield "remap_failure", text_of(gpu.remap.failure)
    yield "banks_without_spare_rows", _told(gpu.remap.histogram, lambda banks: str(banks.none))
    yield "channel_repair_pending", text_of(gpu.remap.channel_repair_pending)
    yield "tpc_repair_pending", text_of(gpu.remap.tpc_repair_pending)


def _told(reading: Reading[Any], tell: Callable[[Any], str]) -> str:
    """What is told of a value; a reading without one says why."""
    return text_of(reading) if reading.value is None else tell(reading.value)


def _listed(reading: Reading[Any], *, empty: str = "none") -> str:
    """Names in one fixed order."""
    return _told(reading, lambda names: ", ".join(sorted(names)) or empty)


def _count(reading: Reading[Any]) -> str:
    return _told(reading, lambda members: str(len(members)))


def _counts(by_name: dict[str, int]) -> str:
    return ", ".join(f"{by_name[name]} {name}" for name in sorted(by_name)) or "none"


def _yes_no(value: bool | None) -> str:
    return "left alone" if value is None else "true" if value else "false"


def _active(links: tuple[NvLink, ...]) -> str:
    """NVLinks that are up. One of unknown state makes the number unknown."""
    unknown = next((link.active for link in links if link.active.state == "error"), None)
    if unknown is not None:
        return text_of(unknown)
    return f"{sum(link.active.value is True for link in links)} of {len(links)} up"


def _registration(fabric: Fabric) -> str:
    return f"{fabric.state}, status {fabric.status}"


def _health(fabric: Fabric) -> str:
    return NOT_SUPPORTED if fabric.health_mask is None else f"{fabric.health_mask:#x}"


def _health_summary(fabric: Fabric) -> str:
    return NOT_SUPPORTED if fabric.health_summary is None else str(fabric.health_summary)
