"""A pin from the host on ports that take no target speed, as QEMU's: "not effective", and never ok.

On node1 no driver has the GPU, so that its link is trained at once. On node2 one has, and the unit pins the
link at the next boot.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import sre

from nodeprep.fleet.content import collections_path, program
from nodeprep.sim.vm import Rack, Vm

pytestmark = pytest.mark.metal_full

POLICY = {"kernel_args": {"present": [], "absent": []}, "pcie_link": {"gen": 3, "method": "host"}}
GPU, PORT = "0000:01:00.0", "0000:00:11.0"
UNIT = "nodeprep-pcie-link.service"
IGNORED = f"not effective: the port {PORT} ignores its target speed: set to Gen3, it reads Gen5"
# All that a pin leaves on a node, but for the program, which another unit may need too.
LEFT = (
    "/etc/nodeprep/pcie_link.json",
    "/var/lib/nodeprep/restore/pcie_link.json",
    f"/etc/systemd/system/{UNIT}",
    f"/etc/systemd/system/sysinit.target.wants/{UNIT}",
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A stand-in for the driver's library: a plan for GPUs asks NVML."""
    made = tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1"
    source = Path(__file__).with_name("nvml_stand_in.c")
    words = ["cc", "-shared", "-fPIC", "-nostdlib", "-O2", f'-DGPU="{GPU}"', str(source), "-o", str(made)]
    subprocess.run(words, check=True)
    return made.read_bytes()


@pytest.fixture(scope="module")
def undriven(rack: Rack, library: bytes) -> Vm:
    return _with_nvml(rack.vm("node1"), library)


@pytest.fixture(scope="module")
def driven(rack: Rack, library: bytes) -> Vm:
    """A driver takes the GPU as early as NVIDIA's may: systemd-modules-load brings it."""
    vm = _with_nvml(rack.vm("node2"), library)
    vm.ssh(
        "echo 'options pci-stub ids=8086:0d93' >/etc/modprobe.d/stand-in.conf; "
        "echo pci-stub >/etc/modules-load.d/stand-in.conf; modprobe -r cxl_pci; modprobe pci-stub"
    )
    assert _driver(vm) == "pci-stub"
    return vm


@pytest.fixture(scope="module")
def rebooted(rack: Rack, driven: Vm) -> sre.Told:
    """apply where the pin has to wait for a boot."""
    before = driven.boot_id()
    told = sre.nodeprep(rack, "apply", driven.name, "--yes", policy=POLICY)
    assert driven.boot_id() != before
    return told


# ---- no driver: at once -------------------------------------------------------------------------------


def test_apply_fails_and_leaves_nothing(rack: Rack, undriven: Vm) -> None:
    assert _driver(undriven) == ""
    told = sre.nodeprep(rack, "apply", undriven.name, "--yes", policy=POLICY)
    assert told.code == 11
    assert f"error: {undriven.name}: Write what differs: pcie_link: {IGNORED}; rolled back:" in told.text
    assert "hint: this hardware cannot be pinned from the host" in told.text
    _assert_untouched(undriven)


def test_the_role_fails_and_leaves_nothing(rack: Rack, undriven: Vm) -> None:
    done = _role(rack, undriven, gen=3, gpus=[GPU])
    assert done.returncode == 2
    assert IGNORED in done.stdout
    _assert_untouched(undriven)


def test_check_mode_changes_nothing(rack: Rack, undriven: Vm) -> None:
    done = _role(rack, undriven, "--check", "--diff", gen=3, gpus=[GPU])
    assert done.returncode == 0, done.stdout
    assert f"-{PORT} target Gen5" in done.stdout
    assert f"+{PORT} target Gen3" in done.stdout
    _assert_untouched(undriven)


@pytest.mark.parametrize(
    ("gen", "gpu", "why"),
    [
        (6, GPU, "can do Gen1, Gen2, Gen3, Gen4, Gen5 together, not Gen6"),
        (
            1,
            "0000:04:00.0",
            "the link of 0000:04:00.0 below 0000:03:00.0 cannot be read: link capability names",
        ),
        (3, "0000:09:00.0", "there is no 0000:09:00.0 on the PCI bus"),
    ],
)
def test_what_no_pin_can_do_is_refused(rack: Rack, undriven: Vm, gen: int, gpu: str, why: str) -> None:
    done = _role(rack, undriven, gen=gen, gpus=[gpu])
    assert done.returncode == 2
    assert "nothing was changed" in done.stdout
    assert why in done.stdout
    _assert_untouched(undriven)


# ---- a driver: by the unit, at the next boot ----------------------------------------------------------


def test_a_pin_that_a_boot_did_not_bring_is_a_failure(rebooted: sre.Told) -> None:
    assert rebooted.code == 11
    words = f"error: node2: pcie_link on {GPU} was written and is not in effect: at most Gen5 x16, "
    assert f"{words}its unit failed" in rebooted.text


def test_the_unit_fails_loudly(driven: Vm, rebooted: sre.Told) -> None:
    assert UNIT in driven.ssh("systemctl --failed --plain --no-legend")
    assert IGNORED in driven.ssh(f"journalctl -b -u {UNIT} -o cat")
    # Loudly, and without holding anything up.
    assert driven.ssh_result("systemctl is-active sysinit.target multi-user.target").returncode == 0


def test_the_unit_runs_before_any_driver_loads(driven: Vm, rebooted: sre.Told) -> None:
    assert _driver(driven) == "pci-stub"
    ended = _since_boot_us(driven, UNIT, "ExecMainExitTimestampMonotonic")
    assert ended > 0
    for later in ("systemd-udev-trigger.service", "systemd-modules-load.service"):
        assert _since_boot_us(driven, later, "ExecMainStartTimestampMonotonic") >= ended, later
    # The module came after the root file system, and not with the initramfs.
    assert "pci-stub" not in driven.ssh("lsinitramfs /boot/initrd.img-$(uname -r)")


def test_a_failed_unit_is_not_taken_for_a_pin(rack: Rack, driven: Vm, rebooted: sre.Told) -> None:
    told = sre.nodeprep(rack, "plan", driven.name, policy=POLICY)
    (change,) = [
        change
        for change in told.document(f"plan/{driven.name}.json")["changes"]
        if change["knob"] == "pcie_link" and change["subject"] == GPU
    ]
    assert change["status"] == "change"
    facts = told.facts(driven.name, "before")
    unit = facts.driver.pcie_link_unit.require("unit")
    assert (unit.enabled, unit.gen, unit.ports) == (False, 3, (PORT,))
    port = facts.pci_device(PORT)
    assert port is not None
    assert port.link.target_speed_gts.value == 32.0


def test_absent_leaves_nothing(rack: Rack, driven: Vm, rebooted: sre.Told) -> None:
    done = _role(rack, driven, state="absent")
    assert done.returncode == 0, done.stdout
    _assert_untouched(driven)
    again = _role(rack, driven, state="absent")
    assert "changed=0" in again.stdout


def _with_nvml(vm: Vm, library: bytes) -> Vm:
    done = subprocess.run(
        [*vm.ssh_command(), "cat >/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"],
        input=library,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0
    return vm


def _driver(vm: Vm) -> str:
    """What is bound to the GPU."""
    return vm.ssh(f"basename $(readlink /sys/bus/pci/devices/{GPU}/driver) 2>/dev/null || true").strip()


def _since_boot_us(vm: Vm, unit: str, what: str) -> int:
    return int(vm.ssh(f"systemctl show --value -p {what} {unit}"))


def _assert_untouched(vm: Vm) -> None:
    """Port, files and systemd are as if there had never been a pin."""
    assert int(vm.ssh(f"setpci -s {PORT} CAP_EXP+30.w"), 16) == 5
    assert vm.ssh(f"ls -d {' '.join(LEFT)} 2>/dev/null || true") == ""
    assert vm.ssh("systemctl --failed --plain --no-legend") == ""
    assert vm.ssh(f"systemctl show --value -p LoadState {UNIT}").strip() == "not-found"


def _role(rack: Rack, vm: Vm, *words: str, **variables: Any) -> subprocess.CompletedProcess[str]:
    """Plays the role pcie_link alone."""
    book = rack.folder / "pcie_link.yml"
    book.write_text(json.dumps([_play(vm, variables)]))
    more = {
        "ANSIBLE_COLLECTIONS_PATH": str(collections_path()),
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_TIMEOUT": "60",
    }
    done = subprocess.run(
        [program("ansible-playbook"), "-i", str(rack.inventory), "-b", str(book), *words],
        env={**os.environ, **more},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    print(done.stdout + done.stderr)
    return done


def _play(vm: Vm, variables: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "hosts": vm.name,
        "gather_facts": False,
        "vars": {f"nodeprep_pcie_link_{name}": value for name, value in variables.items()},
        "roles": ["nodeprep.rack.pcie_link"],
    }
