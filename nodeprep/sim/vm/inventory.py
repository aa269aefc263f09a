"""The Ansible inventory of a rack, for `nodeprep -i`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from nodeprep.sim.vm.bmc import USER as BMC_USER
from nodeprep.sim.vm.hardware import GPU_IDS
from nodeprep.sim.vm.identity import USER, known_host
from nodeprep.sim.vm.vm import Vm

_HEAD = "# A virtual rack of nodeprep: real kernels and boot loaders, stand-ins for GPUs.\n"


def write_inventory(rack: Path, machines: Sequence[Vm]) -> Path:
    """Write inventory.yml and the known_hosts it names."""
    known_hosts = rack / "known_hosts"
    known_hosts.write_text("".join(known_host(vm.layout, vm.machine.ssh_port) for vm in machines))
    inventory = rack / "inventory.yml"
    options = f"-o UserKnownHostsFile={known_hosts} -o StrictHostKeyChecking=yes"
    document = {
        "all": {
            "vars": {
                "ansible_user": USER,
                "ansible_ssh_private_key_file": str(rack / "id"),
                "ansible_ssh_common_args": options,
                "ansible_python_interpreter": "/usr/bin/python3",
                # An emulated processor under load: sudo alone can take longer than Ansible's ten seconds.
                "ansible_timeout": 60,
                "nodeprep_gpu_ids": list(GPU_IDS),
            },
            "hosts": {vm.name: _host(vm) for vm in machines},
        }
    }
    inventory.write_text(_HEAD + yaml.safe_dump(document, sort_keys=False))
    return inventory


def _host(vm: Vm) -> dict[str, Any]:
    return {
        "ansible_host": "127.0.0.1",
        "ansible_port": vm.machine.ssh_port,
        "nodeprep_bmc": {
            "protocol": "ipmi",
            "address": "127.0.0.1",
            "port": vm.machine.ipmi_port,
            "user": BMC_USER,
        },
        "nodeprep_bmc_password_file": str(vm.layout.password),
        "nodeprep_console_log": str(vm.layout.console),
    }
