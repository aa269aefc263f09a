"""A simulated machine as one value: bus, firmware, driver, GPUs and what the load will bring out.

Faults are functions from machine to machine, so they can be combined and looked at before anything
is written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from nodeprep.sim import hardware, simulated_nvml
from nodeprep.sim.description import DriverDescription
from nodeprep.sim.hardware import SimulatedGpu
from nodeprep.sim.kernel_lines import KernelLine
from nodeprep.sim.root import NodeDescription, build_root, hgx_node, kernel_log_records, kmsg_record

GPUS_PER_NODE = 8
_MODEL = "h100-sxm"


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One machine of the rack.

    Attributes:
        description: All that is not NVML.
        gpus: The driver's GPUs, in its order; None when there is no driver library.
        gpus_on_load: The driver's GPUs from the first load on, when that changes them for good.
        library_faults: Faults of the driver library as a whole.
        on_load: Files that every load replaces, by path below the root; counts in aer_* files are added.
        load_messages: Kernel log lines that every load writes.
    """

    description: NodeDescription
    gpus: tuple[SimulatedGpu, ...] | None
    gpus_on_load: tuple[SimulatedGpu, ...] | None = None
    library_faults: tuple[hardware.Fault, ...] = ()
    on_load: Mapping[str, str | bytes] = field(default_factory=dict)
    load_messages: tuple[KernelLine, ...] = ()

    def gpu_address(self, index: int) -> str:
        """PCI address of a GPU."""
        return self.description.gpus[index].address

    def port_above(self, index: int) -> str:
        """PCI address of the port right above a GPU."""
        return self.description.gpus[index].hops[-2].address

    def with_gpu_fault(self, index: int, *faults: hardware.Fault) -> Machine:
        """The same machine with faults of one GPU as its driver shows them.

        Raises:
            ValueError: The machine has no driver, so nothing could show them.
        """
        if self.gpus is None:
            raise ValueError("a machine without driver cannot show a GPU's fault")
        gpus = list(self.gpus)
        gpus[index] = replace(gpus[index], faults=(*gpus[index].faults, *faults))
        return replace(self, gpus=tuple(gpus))

    def with_on_load(self, files: Mapping[str, str | bytes], *messages: KernelLine) -> Machine:
        """The same machine with more files and kernel log lines that a load brings."""
        return replace(
            self, on_load={**self.on_load, **files}, load_messages=(*self.load_messages, *messages)
        )


def healthy_machine(name: str, *, gpu_count: int = GPUS_PER_NODE) -> Machine:
    """A healthy 8-GPU H100 SXM server in the state the policy asks for, but for its power limits.

    Serial numbers, UUIDs, MAC addresses and the small differences between GPUs follow from the name.
    """
    driver = DriverDescription(version=hardware.DRIVER_VERSION, disk_version=hardware.DRIVER_VERSION)
    node = hgx_node(hostname=name, gpu_count=gpu_count, driver=driver)
    nics = tuple(replace(nic, mac=_mac(name, nic.name)) for nic in node.nics)
    gpus = tuple(
        SimulatedGpu(address=gpu.address, model=_MODEL, seed=name, values=_variation(name, gpu.address))
        for gpu in node.gpus
    )
    return Machine(description=replace(node, nics=nics), gpus=gpus)


def write_machine(root: Path, machine: Machine) -> None:
    """Writes the machine as a fake root.

    Raises:
        OSError: It cannot be written.
    """
    build_root(root, machine.description)
    if machine.gpus is not None:
        hardware.install(root, machine.gpus, faults=machine.library_faults)
    overlay = root / simulated_nvml.OVERLAY
    if machine.gpus_on_load is not None:
        hardware.install(overlay, machine.gpus_on_load, faults=machine.library_faults)
    for path, content in {**machine.on_load, **_log_on_load(machine)}.items():
        file = overlay / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)


def _log_on_load(machine: Machine) -> dict[str, str]:
    if not machine.load_messages:
        return {}
    written = kernel_log_records(machine.description)
    first = machine.description.log_first_sequence + len(written)
    # The machine has been up for a while when it is loaded; lines of one report are microseconds apart.
    start_us = int(machine.description.uptime_s * 1e6)
    records = [
        kmsg_record(first + number, start_us + 40 * number, line.priority, line.text)
        for number, line in enumerate(machine.load_messages)
    ]
    return {"dev/kmsg": "".join(records)}


def _mac(name: str, nic: str) -> str:
    """A locally administered address (first byte 02)."""
    digest = hashlib.sha256(f"{name}/{nic}".encode()).digest()
    return ":".join(["02", *(f"{byte:02x}" for byte in digest[:5])])


def _variation(name: str, address: str) -> dict[str, Any]:
    """No two healthy GPUs are alike: a few degrees, a step of clock."""
    first, second = hashlib.sha256(f"{name}/{address}/variation".encode()).digest()[:2]
    return {
        "temperature.idle_c": 31 + first % 4,
        "temperature.load_c": 60 + first % 8,
        "clocks.load_sm_mhz": 1605 + 15 * (second % 4),
    }
