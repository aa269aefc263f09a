"""Builds a rack of simulated GPU nodes and an inventory with which every command works on it."""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from nodeprep.errors import UsageError
from nodeprep.sim.cast import HEALTHY_TITLE, Role, cast
from nodeprep.sim.conclusion import HEALTHY, Conclusion
from nodeprep.sim.faults import fault
from nodeprep.sim.machine import GPUS_PER_NODE, Machine, healthy_machine, write_machine

MAX_NODES = 64
# Node code waits this long before it calls NVML hung; 30 s on a real node, where firmware may
# legitimately take 6 to 45 s. A simulated library answers at once or never.
NVML_DEADLINE_S = 5

_MARK = "# A simulated rack of nodeprep."
HEAD = f"""{_MARK} Nothing in it is real hardware, and every document says so.
# The nodes are folders of this machine, hence the local connection.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RackNode:
    """One node of the rack.

    Attributes:
        root: Its fake root.
        fault: Name of the fault on it, "" for a healthy one.
        title: The fault in words.
        conclusion: What a correct tool must say about it.
    """

    name: str
    root: Path
    fault: str
    title: str
    conclusion: Conclusion
    machine: Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class RackInventory:
    """A rack on disk.

    Attributes:
        inventory: Ansible inventory file, for `-i`.
    """

    folder: Path
    inventory: Path
    nodes: tuple[RackNode, ...]


def build_rack(folder: Path, nodes: int = 8, *, gpus: int = GPUS_PER_NODE) -> RackInventory:
    """Writes FOLDER/nodes/NAME, FOLDER/inventory.yml and FOLDER/group_vars/all.yml.

    The same number of nodes gives the same rack, down to serial numbers. A rack that is already
    there is made anew, so that nothing of an earlier run (power limits, kernel log) is left.

    Args:
        folder: Made if need be.
        nodes: 1 to 64. The first six have the faults of the demo among them.
        gpus: 1 to 8 in each node.

    Raises:
        UsageError: The folder holds something else, or a number is out of range.
    """
    if not 1 <= nodes <= MAX_NODES:
        raise UsageError(f"a simulated rack has 1 to {MAX_NODES} nodes, not {nodes}")
    if not 1 <= gpus <= GPUS_PER_NODE:
        raise UsageError(f"a simulated node has 1 to {GPUS_PER_NODE} GPUs, not {gpus}")
    folder = folder.absolute()
    _clear(folder)
    built = tuple(
        build_node(folder / "nodes" / f"node{number:02d}", role, gpus=gpus)
        for number, role in enumerate(cast(nodes), start=1)
    )
    inventory = folder / "inventory.yml"
    inventory.write_text(HEAD + as_yaml(_hosts(built)))
    variables = folder / "group_vars" / "all.yml"
    variables.parent.mkdir(exist_ok=True)
    variables.write_text(HEAD + as_yaml(rack_variables()))
    return RackInventory(folder=folder, inventory=inventory, nodes=built)


def build_node(root: Path, role: Role, *, gpus: int = GPUS_PER_NODE) -> RackNode:
    """Writes one node at `root`, named like the folder. Fewer GPUs: the role's GPU wraps around."""
    machine = healthy_machine(root.name, gpu_count=gpus)
    title, conclusion = HEALTHY_TITLE, HEALTHY
    if role.fault:
        chosen = fault(role.fault)
        title = chosen.title
        diagnosed = chosen.put(machine, role.gpu % gpus)
        machine, conclusion = diagnosed.machine, diagnosed.conclusion
    write_machine(root, machine)
    return RackNode(
        name=root.name, root=root, fault=role.fault, title=title, conclusion=conclusion, machine=machine
    )


def _hosts(nodes: tuple[RackNode, ...]) -> dict[str, Any]:
    hosts = {node.name: {"nodeprep_root": str(node.root)} for node in nodes}
    return {"simulated_rack": {"hosts": hosts}}


def rack_variables() -> dict[str, Any]:
    """The inventory variables of every node of a rack."""
    return {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "nodeprep_nvml_deadline_s": NVML_DEADLINE_S,
        "nodeprep_policy": {
            "kernel_args": {
                "present": ["pcie_aspm=off", "iommu=off", "pcie_ports=native"],
                "absent": ["pci=noaer"],
            },
            "gpu": {"power_limit": "93%", "persistence": True},
            "certify": {"level": "quick", "workload": "tiny"},
            # The simulated GPUs compute with numpy, which this Python has.
            "probe_python": sys.executable,
        },
    }


def as_yaml(data: dict[str, Any]) -> str:
    """Variables as an inventory file has them."""
    return yaml.safe_dump(data, sort_keys=False, default_flow_style=False)


def _clear(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    if not any(folder.iterdir()):
        return
    inventory = folder / "inventory.yml"
    if not (inventory.is_file() and inventory.read_text().startswith(_MARK)):
        raise UsageError(
            f"{folder} holds something else than a simulated rack, so it is left alone",
            hint="name a new or empty folder",
        )
    if (folder / "nodes").exists():
        shutil.rmtree(folder / "nodes")
