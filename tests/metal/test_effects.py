"""Effects of kernel arguments on a real kernel: what the hardware and the kernel do, not what was asked.

node2 runs as it was installed. node1 is given pcie_aspm=off and iommu=off by a trial boot, and nothing that
would take AER; its boot loader has two arguments more that no kernel knows.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
import sre

from nodeprep.certify.judge import judge
from nodeprep.cli._aer import rows, uncounted
from nodeprep.model.facts import NodeFacts
from nodeprep.sim.vm import Rack, Vm

pytestmark = pytest.mark.metal_full

BLIND = {
    "kernel_args": {"present": ["pcie_aspm=off", "iommu=off"], "absent": [], "aer_ownership": "leave"},
    # The kernel keeps more than its 4 % of so small a machine.
    "waivers": [{"check": "memory", "owner": "tests", "until": "2999-12-31", "why": "512 MiB"}],
}
GPUS = {"0000:01:00.0", "0000:04:00.0", "0000:05:00.0"}
PORT, GPU, BELOW_SWITCH = "0000:00:11.0", "0000:01:00.0", "0000:04:00.0"
# Of LnkCtl, in the PCI Express capability.
LNKCTL, L0S, L1 = 0x10, 1, 2


@dataclass(frozen=True)
class Blind:
    """node1 after the trial boot.

    Attributes:
        applied: What apply told people.
        facts: Seen by verify.
    """

    vm: Vm
    applied: sre.Told
    verified: sre.Told
    facts: NodeFacts


@pytest.fixture(scope="module")
def facts(rack: Rack) -> NodeFacts:
    """node2 as it was installed."""
    return sre.nodeprep(rack, "inspect", "node2").facts("node2")


@pytest.fixture(scope="module")
def blind(rack: Rack) -> Blind:
    vm = rack.vm("node1")
    vm.ssh(
        "echo 'GRUB_CMDLINE_LINUX=\"$GRUB_CMDLINE_LINUX foobar=1 pci=noacs\"' "
        ">/etc/default/grub.d/60-site.cfg && update-grub",
        timeout_s=300,
    )
    applied = sre.nodeprep(rack, "apply", vm.name, "--yes", policy=BLIND)
    verified = sre.nodeprep(rack, "verify", vm.name, policy=BLIND)
    return Blind(vm, applied, verified, verified.facts(vm.name))


# ---- as installed ------------------------------------------------------------------------------------


def test_the_iommu_is_told_by_units_and_groups(rack: Rack, facts: NodeFacts) -> None:
    vm = rack.vm("node2")
    assert "iommu" not in facts.boot.cmdline.require("command line")
    assert facts.iommu.units.value == ("dmar0",)
    assert facts.iommu.groups.value == int(vm.ssh("ls /sys/kernel/iommu_groups | wc -l")) > 0
    assert sum(facts.iommu.group_types.require("types").values()) == facts.iommu.groups.value
    off = sre.run_check("iommu", sre.spec(facts, BLIND), facts)["node"]
    assert (off.status, off.measured) == ("FAIL", facts.iommu.groups.value)
    assert "dmar0" in off.reason


def test_the_facts_that_a_trial_boot_rests_on(rack: Rack, facts: NodeFacts) -> None:
    vm = rack.vm("node2")
    loader, use = facts.boot_loader, facts.kernel_use
    assert loader.id.value == "grub_debian"
    assert loader.default_kernel.value == facts.boot.kernel_release.value == vm.ssh("uname -r").strip()
    image, _, running = facts.boot.cmdline.require("command line").partition(" ")
    assert image.startswith("BOOT_IMAGE=")
    assert loader.cmdline.value == running
    assert loader.one_shot.value is True
    assert loader.boot_free_bytes.require("free") > 100 << 20
    assert loader.trial.state == "not_supported"
    assert use.firmware.value == "bios"
    assert use.secure_boot.state == "not_supported"
    assert use.lockdown.value == "none"
    assert use.confidential.value is False
    assert use.vfio_devices.value == use.virtual_functions.value == ()
    assert use.unknown_arguments.value == ()
    assert facts.disks.value == ("vda",)
    cpu = facts.cpu
    assert cpu.present.value == cpu.online.value == cpu.dmi_threads.value == vm.machine.hardware.cpus
    assert cpu.max_apic_id.value == vm.machine.hardware.cpus - 1


def test_aspm_at_one_end_fails_and_the_end_is_named(rack: Rack, facts: NodeFacts) -> None:
    vm, asked = rack.vm("node2"), sre.spec(facts, BLIND)
    off = sre.run_check("aspm_off", asked, facts)
    assert {result.status for result in off.values()} == {"PASS"}
    assert set(off) > GPUS
    # The upper end of one link, the lower end of another.
    with _lnkctl(vm, PORT, L1), _lnkctl(vm, BELOW_SWITCH, L0S | L1):
        seen = sre.nodeprep(rack, "inspect", vm.name).facts(vm.name)
    results = sre.run_check("aspm_off", asked, seen)
    told = {subject: result.reason for subject, result in results.items() if result.status == "FAIL"}
    assert told == {
        GPU: f"ASPM is on above GPU {GPU}: L1 at {PORT}",
        BELOW_SWITCH: f"ASPM is on above GPU {BELOW_SWITCH}: L0s+L1 at {BELOW_SWITCH}",
    }
    assert {result.status for subject, result in results.items() if subject not in told} == {"PASS"}


@contextmanager
def _lnkctl(vm: Vm, address: str, bits: int) -> Iterator[None]:
    """Shows a device's configuration space with ASPM bits set.

    QEMU's devices ignore writes to them, which the first lines make sure of. So a copy of the register file
    with the bits set is laid over the kernel's own.
    """
    register = f"setpci -s {address} CAP_EXP+{LNKCTL:x}.w"
    vm.ssh(f"{register}={bits:x}:3")
    assert int(vm.ssh(register), 16) & 3 == 0, "this QEMU lets ASPM be set: set it in earnest"
    file, copy = f"$(realpath /sys/bus/pci/devices/{address}/config)", f"/run/config-{address}"
    change = (
        "import sys; d = bytearray(open(sys.argv[1], 'rb').read()); at = d[0x34]\n"
        "while d[at] != 0x10: at = d[at + 1]\n"
        f"d[at + {LNKCTL}] |= {bits}; open(sys.argv[2], 'wb').write(d)"
    )
    vm.ssh(f'python3 -c "{change}" {file} {copy} && mount --bind {copy} {file}')
    try:
        yield
    finally:
        vm.ssh(f"umount {file}")


# ---- with pcie_aspm=off and iommu=off -----------------------------------------------------------------


def test_the_plan_says_loudly_what_pcie_aspm_off_costs(blind: Blind) -> None:
    assert "risk of kernel_args: it blinds AER" in blind.applied.text
    assert "this node cannot be certified" in blind.applied.text
    assert "add pcie_ports=native" in blind.applied.text


def test_the_trial_is_accepted_all_the_same(blind: Blind) -> None:
    assert "trial boot: permanent" in blind.applied.text
    words = blind.vm.ssh("cat /proc/cmdline").split()
    assert words.count("pcie_aspm=off") == words.count("iommu=off") == 1
    assert not any(word.startswith("pcie_ports") for word in words)


def test_verify_says_that_aer_is_blind_and_the_node_inconclusive(blind: Blind) -> None:
    document = blind.verified.document("verify/node1.json")
    assert document["outcome"] == "inconclusive"
    results = [check for check in document["checks"] if check["id"] == "aer_owned"]
    assert {check["subject"] for check in results} == GPUS
    for check in results:
        assert check["status"] == "ERROR"
        assert "AER is blind because of pcie_aspm=off" in check["reason"]
        assert "_OSC: not requesting OS control" in check["reason"]
        assert "add pcie_ports=native" in check["reason"]
    assert not [check for check in document["checks"] if check["status"] == "FAIL"]


def test_injected_errors_leave_no_counter_and_nobody_calls_that_quiet(rack: Rack, blind: Blind) -> None:
    for device, error in (("gpu0", "BadTLP"), ("gpu1", "CmpltTO"), ("port1", "BadTLP"), ("gpu2", "DLP")):
        blind.vm.inject_aer(device, error)
    # The device did err: Correctable Error Detected of its DevSta.
    assert int(blind.vm.ssh(f"setpci -s {GPU} CAP_EXP+a.w"), 16) & 1
    time.sleep(5)
    inspected = sre.nodeprep(rack, "inspect", blind.vm.name)
    after = inspected.facts(blind.vm.name)
    assert list(rows(after)) == []
    assert not blind.vm.ssh("dmesg | grep -c 'AER: .*error' || true").strip("0\n")
    told = "PCIe errors are not counted: the kernel was not given AER on root bridges 0000:00"
    assert told in inspected.text
    assert told.endswith(uncounted(after))
    quiet = sre.run_check("aer_quiet_load", sre.spec(after, BLIND), blind.facts, after)
    assert set(quiet) == GPUS
    assert {result.status for result in quiet.values()} == {"ERROR"}
    assert all("unknown, not zero" in result.reason for result in quiet.values())


def test_nothing_is_certified_blind(blind: Blind) -> None:
    """`certify` itself needs a GPU: its judge gets the facts that it would get."""
    said = judge(
        sre.spec(blind.facts, BLIND), blind.facts, after=blind.facts, probe_absent_reason="no GPU here"
    )
    assert said.verdict == "inconclusive"
    assert any("aer_owned" in reason and "blind" in reason for reason in said.reasons)


def test_the_iommu_is_off_by_units_and_groups_not_by_log_lines(blind: Blind) -> None:
    assert blind.facts.iommu.units.value == ()
    assert blind.facts.iommu.groups.value == 0
    results = blind.verified.document("verify/node1.json")["checks"]
    (check,) = [check for check in results if check["id"] == "iommu"]
    assert (check["status"], check["measured"]) == ("PASS", 0)
    # The log goes on speaking of it.
    assert "DMAR" in blind.vm.ssh("dmesg")


def test_arguments_that_the_kernel_does_not_know_are_named(blind: Blind) -> None:
    assert blind.facts.kernel_use.unknown_arguments.value == ("pci=noacs", "foobar=1")
