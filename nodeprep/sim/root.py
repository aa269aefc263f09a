"""Writes a simulated node as a folder that node code reads instead of "/".

    build_root(path, hgx_node(hostname="node07"))

gives everything outside NVML: sysfs, /proc, the kernel log and the firmware tables. Links are
relative and stay inside the folder. Facts collected from it always say `simulated`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from nodeprep.errors import UsageError
from nodeprep.sim.boot_files import DISK, DISK_DEVICE_NUMBER, boot_files
from nodeprep.sim.config_bytes import config_bytes
from nodeprep.sim.description import (
    CORRECTABLE_NAMES,
    UNCORRECTABLE_NAMES,
    DeviceDescription,
    NicDescription,
    NodeDescription,
)
from nodeprep.sim.firmware_tables import hest, smbios
from nodeprep.sim.hgx import hgx_node

__all__ = [
    "NodeDescription",
    "aer_correctable_text",
    "aer_counters_text",
    "build_root",
    "device_folder",
    "hgx_node",
    "kernel_log_records",
    "kmsg_record",
]

_AER_FILES = (
    ("aer_dev_correctable", "TOTAL_ERR_COR"),
    ("aer_dev_nonfatal", "TOTAL_ERR_NONFATAL"),
    ("aer_dev_fatal", "TOTAL_ERR_FATAL"),
)
_ROOTPORT_FILES = (
    "aer_rootport_total_err_cor",
    "aer_rootport_total_err_nonfatal",
    "aer_rootport_total_err_fatal",
)


def build_root(path: Path | str, description: NodeDescription) -> Path:
    """Writes the node below a folder, which is made if need be; files already there are replaced.

    Returns:
        The folder.

    Raises:
        OSError: It cannot be written.
    """
    writer = _Writer(Path(path))
    _write_proc(writer, description)
    _write_cpu_and_firmware(writer, description)
    _write_pci(writer, description)
    _write_nics(writer, description)
    _write_iommu(writer, description)
    _write_modules(writer, description)
    _write_boot(writer, description)
    writer.file("/dev/kmsg", "".join(kernel_log_records(description)))
    writer.folder("/var/lib/nodeprep")
    return writer.root


def _write_boot(writer: _Writer, node: NodeDescription) -> None:
    for path, content in boot_files(node).items():
        writer.file(path, content)
    # A partition of a plain disk, where GRUB can write its environment.
    writer.folder(f"/sys/devices/nvme/{DISK}/{DISK}p2")
    writer.file(f"/sys/devices/nvme/{DISK}/removable", "0\n")
    writer.folder(f"/sys/devices/nvme/{DISK}/device")
    writer.link(f"/sys/block/{DISK}", f"/sys/devices/nvme/{DISK}")
    writer.link(f"/sys/dev/block/{DISK_DEVICE_NUMBER}", f"/sys/devices/nvme/{DISK}/{DISK}p2")


def device_folder(description: NodeDescription, address: str) -> str:
    """Real place of a device's sysfs folder, relative to the root; overlays write there.

    Raises:
        UsageError: The node has no such device.
    """
    for gpu in description.gpus:
        chain = [hop.address for hop in gpu.hops]
        if address in chain:
            return _sysfs_path(chain[: chain.index(address) + 1]).lstrip("/")
    raise UsageError(f"no simulated device {address}")


def aer_counters_text(names: tuple[str, ...], total_name: str, counts: Mapping[str, int]) -> str:
    """The content of an aer_dev_* file. Names outside the kernel's list are added at the end."""
    every = (*names, *(name for name in counts if name not in names))
    lines = [f"{name} {counts.get(name, 0)}" for name in every]
    return "\n".join([*lines, f"{total_name} {sum(counts.values())}", ""])


def aer_correctable_text(counts: Mapping[str, int]) -> str:
    """The content of an aer_dev_correctable file."""
    return aer_counters_text(CORRECTABLE_NAMES, "TOTAL_ERR_COR", counts)


def kmsg_record(sequence: int, monotonic_us: int, priority: int, text: str) -> str:
    """One record as /dev/kmsg gives it, with its newline."""
    return f"{priority},{sequence},{monotonic_us},-;{text}\n"


def kernel_log_records(description: NodeDescription) -> list[str]:
    """All records of the kernel log that are still there; numbers go on from the last one's."""
    lines = [*_boot_lines(description), *description.messages]
    first = description.log_first_sequence
    # A wrapped ring buffer has lost the boot lines and kept what came last.
    kept = list(description.messages) if first else lines
    return [
        kmsg_record(first + number, (first + number) * 10_000, priority, text)
        for number, (priority, text) in enumerate(kept)
    ]


class _Writer:
    """Writes files, folders and relative links below a root, making each folder once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._made: set[str] = set()

    def folder(self, path: str) -> str:
        place = str(self.root) + path
        if place not in self._made:
            os.makedirs(place, exist_ok=True)  # noqa: PTH103 - twice as fast as Path here
            self._made.add(place)
        return place

    def file(self, path: str, content: str | bytes) -> None:
        folder, _, name = path.rpartition("/")
        data = content.encode() if isinstance(content, str) else content
        with open(f"{self.folder(folder)}/{name}", "wb") as file:  # noqa: PTH123
            file.write(data)

    def link(self, path: str, target: str) -> None:
        """A link at `path` to `target`, both absolute below the root."""
        folder, _, name = path.rpartition("/")
        place = f"{self.folder(folder)}/{name}"
        if os.path.islink(place):  # noqa: PTH114
            os.unlink(place)  # noqa: PTH108
        os.symlink(os.path.relpath(target, folder), place)  # noqa: PTH211


def _write_proc(writer: _Writer, node: NodeDescription) -> None:
    writer.file("/proc/cmdline", node.cmdline + "\n")
    writer.file("/proc/uptime", f"{node.uptime_s:.2f} {node.uptime_s * node.cpu.online * 0.99:.2f}\n")
    writer.file("/proc/sys/kernel/random/boot_id", (node.boot_id or node.derived_id("boot")) + "\n")
    writer.file("/proc/sys/kernel/osrelease", node.kernel_release + "\n")
    writer.file("/proc/sys/kernel/hostname", node.hostname + "\n")
    writer.file("/proc/meminfo", f"MemTotal:       {node.memory.total_bytes // 1024} kB\n")
    flags = "fpu vme msr pae sse sse2 x2apic" + (" hypervisor" if node.cpu.hypervisor else "")
    processors = (
        f"processor\t: {number}\nmodel name\t: {node.cpu.model}\napicid\t\t: {number}\nflags\t\t: {flags}\n\n"
        for number in range(node.cpu.online)
    )
    writer.file("/proc/cpuinfo", "".join(processors))
    writer.file("/proc/1/cmdline", b"/sbin/init\0")


def _write_cpu_and_firmware(writer: _Writer, node: NodeDescription) -> None:
    for name, count in (("present", node.cpu.present), ("online", node.cpu.online)):
        writer.file(f"/sys/devices/system/cpu/{name}", f"0-{count - 1}\n")
    writer.file("/sys/firmware/dmi/tables/DMI", smbios(node.cpu, node.memory))
    writer.folder("/sys/firmware/acpi/tables")
    if node.firmware_first is not None:
        writer.file("/sys/firmware/acpi/tables/HEST", hest(firmware_first=node.firmware_first))
    identity = {
        "product_serial": f"SIM-{node.hostname}",
        "product_uuid": node.derived_id("product"),
        "board_serial": f"SIM-B-{node.hostname}",
        **node.dmi,
    }
    for name, value in identity.items():
        writer.file(f"/sys/class/dmi/id/{name}", value + "\n")


def _write_pci(writer: _Writer, node: NodeDescription) -> None:
    for number, bus in enumerate(_root_buses(node)):
        writer.link(
            f"/sys/devices/pci{bus}/firmware_node", f"/sys/devices/LNXSYSTM:00/LNXSYBUS:00/{_acpi(number)}"
        )
        writer.folder(f"/sys/devices/LNXSYSTM:00/LNXSYBUS:00/{_acpi(number)}")
    writer.folder("/sys/bus/pci/devices")
    written: set[str] = set()
    for gpu in node.gpus:
        for depth, hop in enumerate(gpu.hops, 1):
            if hop.address not in written:
                written.add(hop.address)
                folder = _sysfs_path([port.address for port in gpu.hops[:depth]])
                _write_device(writer, folder, hop)
                if node.iommu_group_type:
                    _write_iommu_group(writer, folder, len(written) - 1, node.iommu_group_type)


def _write_device(writer: _Writer, folder: str, device: DeviceDescription) -> None:
    writer.link(f"/sys/bus/pci/devices/{device.address}", folder)
    files: dict[str, str | bytes] = {
        "vendor": f"0x{device.vendor_id}\n",
        "device": f"0x{device.device_id}\n",
        "class": f"0x{device.class_code}\n",
        "numa_node": f"{device.numa_node}\n",
        "config": config_bytes(device),
        "max_link_speed": f"{device.cap_speed_gts:.1f} GT/s PCIe\n",
        "max_link_width": f"{device.cap_width_lanes}\n",
        "current_link_speed": "Unknown\n" if device.gone else f"{device.sta_speed_gts:.1f} GT/s PCIe\n",
        "current_link_width": "63\n" if device.gone else f"{device.sta_width_lanes}\n",
    }
    if device.has_aer_counters:
        files |= _aer_files(device)
    for name, content in files.items():
        writer.file(f"{folder}/{name}", content)
    if device.driver:
        writer.folder(f"/sys/bus/pci/drivers/{device.driver}")
        writer.link(f"{folder}/driver", f"/sys/bus/pci/drivers/{device.driver}")


def _write_iommu_group(writer: _Writer, folder: str, number: int, kind: str) -> None:
    writer.file(f"/sys/kernel/iommu_groups/{number}/type", kind + "\n")
    writer.link(f"{folder}/iommu_group", f"/sys/kernel/iommu_groups/{number}")


def _aer_files(device: DeviceDescription) -> dict[str, str | bytes]:
    names = (CORRECTABLE_NAMES, UNCORRECTABLE_NAMES, UNCORRECTABLE_NAMES)
    counts = (device.correctable, device.non_fatal, device.fatal)
    files: dict[str, str | bytes] = {
        file: aer_counters_text(every, total, count)
        for (file, total), every, count in zip(_AER_FILES, names, counts, strict=True)
    }
    if device.port_type == "root_port":
        files |= {
            file: f"{total}\n" for file, total in zip(_ROOTPORT_FILES, device.rootport_totals, strict=True)
        }
    return files


def _write_nics(writer: _Writer, node: NodeDescription) -> None:
    writer.folder("/sys/devices/virtual/net/lo")
    writer.link("/sys/class/net/lo", "/sys/devices/virtual/net/lo")
    for nic in node.nics:
        _write_nic(writer, nic)


def _write_nic(writer: _Writer, nic: NicDescription) -> None:
    folder = _sysfs_path([*nic.ports, nic.address])
    writer.link(f"/sys/bus/pci/devices/{nic.address}", folder)
    for name, content in (("vendor", "0x15b3"), ("device", "0x1021"), ("class", "0x020000")):
        writer.file(f"{folder}/{name}", content + "\n")
    writer.file(f"{folder}/net/{nic.name}/address", nic.mac + "\n")
    writer.link(f"{folder}/net/{nic.name}/device", folder)
    writer.folder(f"/sys/bus/pci/drivers/{nic.driver}")
    writer.link(f"{folder}/driver", f"/sys/bus/pci/drivers/{nic.driver}")
    writer.link(f"/sys/class/net/{nic.name}", f"{folder}/net/{nic.name}")


def _write_iommu(writer: _Writer, node: NodeDescription) -> None:
    writer.folder("/sys/class/iommu")
    writer.folder("/sys/kernel/iommu_groups")
    for unit in node.iommu_units:
        writer.folder(f"/sys/devices/virtual/iommu/{unit}")
        writer.link(f"/sys/class/iommu/{unit}", f"/sys/devices/virtual/iommu/{unit}")


def _write_modules(writer: _Writer, node: NodeDescription) -> None:
    driver = node.driver
    writer.folder("/sys/module/pcie_aspm")
    if driver.nouveau:
        writer.folder("/sys/module/nouveau")
    if driver.version is not None:
        kind = "Open Kernel Module for x86_64" if driver.open_module else "x86_64 Kernel Module"
        writer.file("/sys/module/nvidia/version", driver.version + "\n")
        writer.file(
            "/proc/driver/nvidia/version",
            f"NVRM version: NVIDIA UNIX {kind}  {driver.version}  Release Build  (simulated)\n"
            "GCC version:  gcc version 13.3.0\n",
        )
    if driver.disk_version is not None:
        writer.file(
            f"/lib/modules/{node.kernel_release}/updates/dkms/nvidia.ko",
            b"\x7fELF\0license=Dual MIT/GPL\0version=" + driver.disk_version.encode() + b"\0",
        )
    if driver.systemd:
        writer.folder("/run/systemd/system")
    if driver.persistenced is not None:
        command = b"".join(argument.encode() + b"\0" for argument in driver.persistenced)
        writer.file("/proc/1210/cmdline", command)


def _boot_lines(node: NodeDescription) -> list[tuple[int, str]]:
    lines = [
        (5, f"Linux version {node.kernel_release} (simulated)"),
        (6, f"Command line: {node.cmdline}"),
    ]
    for number, bus in enumerate(_root_buses(node)):
        domain, first_bus = bus.split(":")
        lines.append((6, f"ACPI: PCI Root Bridge [PC{number:02X}] (domain {domain} [bus {first_bus}])"))
        lines += [(6, f"acpi {_acpi(number)}: {line}") for line in node.osc_lines]
    for device in node.devices.values():
        if device.port_type == "root_port" and device.root_reporting:
            lines.append((6, f"pcieport {device.address}: AER: enabled with IRQ 120"))
    if node.driver.version is not None:
        kind = "Open Kernel Module for x86_64" if node.driver.open_module else "x86_64 Kernel Module"
        lines.append(
            (6, f"NVRM: loading NVIDIA UNIX {kind}  {node.driver.version}  Release Build  (simulated)")
        )
    return lines


def _root_buses(node: NodeDescription) -> list[str]:
    roots = [gpu.hops[0].address for gpu in node.gpus]
    roots += [nic.ports[0] if nic.ports else nic.address for nic in node.nics]
    return sorted({address.rsplit(":", 1)[0] for address in roots})


def _acpi(number: int) -> str:
    return f"PNP0A08:{number:02x}"


def _sysfs_path(chain: list[str]) -> str:
    bus = chain[0].rsplit(":", 1)[0]
    return f"/sys/devices/pci{bus}/" + "/".join(chain)
