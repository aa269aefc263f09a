"""Warm starts: a machine that has just booted is kept in the cache, and later racks continue from there.

Racks that start warm from the same snapshot have the same boot id and host key. QEMU does not save the
state of the GPU stand-ins, so the kernel is told to find them anew.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from nodeprep.sim.vm import cache
from nodeprep.sim.vm.hardware import GPU_IDS
from nodeprep.sim.vm.layout import Layout, Machine
from nodeprep.sim.vm.machine import SNAPSHOT
from nodeprep.sim.vm.programs import VmError
from nodeprep.sim.vm.qmp import Qmp
from nodeprep.sim.vm.recipe import digest
from nodeprep.sim.vm.vm import Vm

_SETTLED_S = 120
_KEPT = ("disk.qcow2", "host_key", "host_key.pub", "console.log")
# Their words decide whether a snapshot fits.
_SOURCES = ("hardware.py", "machine.py", "warm.py", "identity.py")


def take(layout: Layout, machine: Machine) -> bool:
    """Give a new machine the disk and host key of a kept one; False when the cache has none that fits."""
    kept = cache.folder() / _entry(machine)
    if not kept.is_dir():
        return False
    for name in _KEPT:
        shutil.copy(kept / name, layout.folder / name)
    layout.warm_mark.touch()
    layout.woken_mark.touch()
    return True


def keep(vm: Vm) -> bool:
    """Keep a machine that has just booted; False when the cache has it already.

    Raises:
        VmError: The machine did not settle, or QEMU could not take the snapshot.
    """
    name = _entry(vm.machine)
    if (cache.folder() / name).is_dir():
        return False
    vm.ssh(f"timeout {_SETTLED_S} systemctl is-system-running --wait && sync", timeout_s=_SETTLED_S + 30)
    cache.entry(name, lambda work: _snapshot(vm, work))
    return True


def wake(vm: Vm) -> None:
    """Set the clock, and let the kernel find the GPUs anew.

    Raises:
        VmError: The machine refused.
    """
    pattern = "|".join(GPU_IDS)
    vm.ssh(
        f"date -s @{time.time():.0f} >/dev/null; "
        f"for gpu in $(lspci -Dn | grep -E '{pattern}' | cut -d ' ' -f 1); do "
        "echo 1 >/sys/bus/pci/devices/$gpu/remove; done; echo 1 >/sys/bus/pci/rescan"
    )


def _snapshot(vm: Vm, work: Path) -> None:
    with Qmp(vm.layout.qmp, timeout_s=300) as qmp:
        qmp.call("stop")
        try:
            # savevm says nothing when it has worked.
            said = qmp.hmp(f"savevm {SNAPSHOT}").strip()
            if said:
                raise VmError(f"{vm.name}: no snapshot: {said}")
            for name in _KEPT:
                shutil.copy(vm.layout.folder / name, work / name)
            qmp.hmp(f"delvm {SNAPSHOT}")
        finally:
            qmp.call("cont")


def _entry(machine: Machine) -> str:
    here = Path(__file__).parent
    sources = [(here / name).read_text() for name in _SOURCES]
    parts = [machine.name, machine.image, repr(machine.hardware), *machine.qemu, *sources]
    return f"warm-{machine.name}-{digest(parts)}"
