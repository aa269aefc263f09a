"""The virtual rack itself: what the other tests rely on."""

import os
import subprocess
import time

import pytest
import web

from nodeprep.sim.vm import Rack, Vm
from nodeprep.sim.vm.programs import VmError
from nodeprep.sim.vm.redfish import BIOS, RESET, SETTINGS, SYSTEM

pytestmark = pytest.mark.metal_full

AER = "/sys/bus/pci/devices"
# QEMU id -> address in the machine, and its root port.
GPUS = {
    "gpu0": ("0000:01:00.0", "0000:00:11.0"),
    "gpu1": ("0000:04:00.0", "0000:00:12.0"),
    "gpu2": ("0000:05:00.0", "0000:00:12.0"),
}


@pytest.fixture(params=["node1", "node2"])
def vm(request: pytest.FixtureRequest, rack: Rack) -> Vm:
    return rack.vm(request.param)


@pytest.fixture
def node1(rack: Rack) -> Vm:
    return rack.vm("node1")


def test_the_boot_menu_is_what_update_grub_writes(vm: Vm) -> None:
    """The image's grub.cfg is made without the disk it speaks of; the machine's own tools agree with it."""
    before = vm.ssh("cat /boot/grub/grub.cfg")
    vm.ssh("update-grub")
    assert vm.ssh("cat /boot/grub/grub.cfg") == before
    assert "next_entry" in before
    assert "custom.cfg" in before
    default = next(line for line in before.splitlines() if line.strip().startswith("linux\t"))
    assert vm.ssh("cat /proc/cmdline").split()[1:] == default.split()[2:]


def test_only_the_cloud_image_assigns_the_default_command_line(rack: Rack) -> None:
    assigned = {vm.name: "console=tty1" in vm.ssh("cat /proc/cmdline") for vm in rack.machines}
    assert assigned == {"node1": False, "node2": True}


def test_no_unit_has_failed(vm: Vm) -> None:
    assert vm.ssh("systemctl is-system-running --wait").strip() == "running"


def test_the_kernel_owns_aer_and_has_an_iommu(vm: Vm) -> None:
    log = vm.ssh("dmesg")
    assert "_OSC: OS now controls [SHPCHotplug PME AER PCIeCapability]" in log
    assert vm.ssh("ls /sys/class/iommu").split() == ["dmar0"]


@pytest.mark.parametrize(
    ("device", "name", "file", "total"),
    [
        ("gpu0", "BadTLP", "aer_dev_correctable", "cor"),
        ("gpu1", "CmpltTO", "aer_dev_nonfatal", "nonfatal"),
    ],
)
def test_an_injected_error_is_counted_by_its_device_and_its_root_port(
    node1: Vm, device: str, name: str, file: str, total: str
) -> None:
    address, port = GPUS[device]
    node1.inject_aer(device, name)
    assert _eventually(node1, f"grep -w {name} {AER}/{address}/{file}") == f"{name} 1"
    assert node1.ssh(f"cat {AER}/{port}/aer_rootport_total_err_{total}").strip() == "1"
    others = " ".join(f"{AER}/{where}/{file}" for where, _ in GPUS.values() if where != address)
    assert node1.ssh(f"grep -wh {name} {others}").splitlines() == [f"{name} 0"] * 2


def test_a_fatal_error_shows_at_the_root_port_only(node1: Vm) -> None:
    address, port = GPUS["gpu2"]
    node1.inject_aer("gpu2", "DLP")
    assert _eventually(node1, f"grep -x 1 {AER}/{port}/aer_rootport_total_err_fatal") == "1"
    assert node1.ssh(f"grep -w DLP {AER}/{address}/aer_dev_fatal").strip() == "DLP 0"


def test_an_unknown_device_or_error_is_refused(node1: Vm) -> None:
    with pytest.raises(VmError, match="gpu9"):
        node1.inject_aer("gpu9", "BadTLP")
    with pytest.raises(VmError, match="NoSuchError"):
        node1.inject_aer("gpu0", "NoSuchError")


def test_ansible_reaches_every_machine_and_may_become_root(rack: Rack) -> None:
    done = _ansible(rack, "-b", "-m", "command", "-a", "id -un")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.split().count("root") == 2


def test_another_host_key_is_refused(rack: Rack) -> None:
    known_hosts = rack.folder / "known_hosts"
    right = known_hosts.read_text()
    (first, kind, first_key), (second, _, second_key) = map(str.split, right.splitlines())
    # Each machine is given the other's key.
    known_hosts.write_text(f"{first} {kind} {second_key}\n{second} {kind} {first_key}\n")
    try:
        assert rack.vm("node1").ssh_result("true").returncode == 255
        assert "UNREACHABLE" in _ansible(rack, "-m", "ping").stdout
    finally:
        known_hosts.write_text(right)


def test_the_machine_and_the_network_see_the_same_bmc(node1: Vm) -> None:
    node1.ssh("ipmitool raw 0x0a 0x44 0 0 2 0 0 0 0 0x20 0 4 0x13 2 0x6f 0xaa 0x03 0x00")
    assert "Entries          : 1" in node1.bmc("sel", "info")
    assert "Chassis Power is on" in node1.ssh("ipmitool chassis power status")


def test_the_bmc_wants_its_password(node1: Vm) -> None:
    assert web.request(node1, "GET", SYSTEM, password="wrong")[0] == 401
    right = node1.layout.password.read_text()
    node1.layout.password.write_text("wrong\n")
    try:
        with pytest.raises(VmError):
            node1.power("status")
    finally:
        node1.layout.password.write_text(right)


def test_a_bios_setting_waits_for_the_reset_that_the_machine_asks_for(node1: Vm) -> None:
    before = node1.boot_id()
    settings = {"PcieSlot1LinkSpeed": "Gen3", "Iommu": "Disabled"}
    assert web.request(node1, "PATCH", SETTINGS, {"Attributes": {"PcieSlot1LinkSpeed": "Gen9"}})[0] == 400
    assert web.request(node1, "PATCH", SETTINGS, {"Attributes": settings})[0] == 200
    assert web.request(node1, "GET", BIOS)[1]["Attributes"]["PcieSlot1LinkSpeed"] == "Auto"
    assert _speeds(node1) == {"32.0 GT/s PCIe"}
    node1.ssh_result("systemctl reboot")
    node1.wait_ssh(not_boot_id=before)
    assert web.request(node1, "GET", SETTINGS)[1]["Attributes"] == {}
    in_force = web.request(node1, "GET", BIOS)[1]["Attributes"]
    assert {name: in_force[name] for name in settings} == settings
    assert _speeds(node1) == {"8.0 GT/s PCIe"}
    assert node1.ssh("ls /sys/class/iommu") == ""


def test_bmc_reset_cycle_and_switch_off_are_real(rack: Rack) -> None:
    vm = rack.vm("node2")
    first = vm.boot_id()
    vm.power("reset")
    second = vm.wait_ssh(not_boot_id=first)
    vm.power("cycle")
    third = vm.wait_ssh(not_boot_id=second)
    assert len({first, second, third}) == 3
    vm.ssh_result("systemctl poweroff")
    _until_off(vm)
    assert web.request(vm, "GET", SYSTEM)[1]["PowerState"] == "Off"
    assert web.request(vm, "POST", RESET, {"ResetType": "On"})[0] == 204
    assert vm.wait_ssh() not in {first, second, third}


def _speeds(vm: Vm) -> set[str]:
    """What both ends of the link in slot 1 say about its speed."""
    address, port = GPUS["gpu0"]
    return set(vm.ssh(f"cat {AER}/{{{address},{port}}}/current_link_speed").splitlines())


def _until_off(vm: Vm) -> None:
    deadline = time.monotonic() + 60
    while vm.is_on():
        assert time.monotonic() < deadline, f"{vm.name} is still on"
        time.sleep(0.5)


def _eventually(vm: Vm, command: str) -> str:
    """What a command prints once it succeeds and prints no count of 0; errors take a moment to arrive."""
    deadline = time.monotonic() + 20
    while True:
        done = vm.ssh_result(command)
        said = done.stdout.strip()
        if (done.returncode == 0 and not said.endswith(" 0")) or time.monotonic() > deadline:
            return said
        time.sleep(0.2)


def _ansible(rack: Rack, *words: str) -> subprocess.CompletedProcess[str]:
    command = ["ansible", "-i", str(rack.inventory), "all", *words]
    # A connection that ssh kept from an earlier call would not look at the host's key again.
    environment = {**os.environ, "ANSIBLE_SSH_ARGS": "-o ControlMaster=no -o ControlPath=none"}
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=False, env=environment)
