"""Errors on a real kernel are told by device, hop and type, by `inspect` before and after.

On node1 firmware gave the kernel AER (_OSC). On node2 pcie_aspm=off kept the kernel from asking for it, and
pcie_ports=native, which the default policy brings with it, took it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import pytest
import sre

from nodeprep.cli._aer import rows, uncounted
from nodeprep.model.facts import NodeFacts
from nodeprep.sim.vm import Rack, Vm

pytestmark = pytest.mark.metal_full

# QEMU id, error as the kernel calls it; where the kernel counts it, and as what. See docs/virtual-rack.md.
INJECTED = (
    ("gpu0", "BadTLP", "0000:01:00.0", "correctable"),
    ("port1", "RxErr", "0000:00:11.0", "correctable"),
    ("switch2-0", "BadDLLP", "0000:03:00.0", "correctable"),
    ("gpu1", "CmpltTO", "0000:04:00.0", "non_fatal"),
)
# Messages that the root ports receive in all: their own errors count too.
RECEIVED = {
    ("0000:00:11.0", "correctable"): 2,
    ("0000:00:12.0", "correctable"): 1,
    ("0000:00:12.0", "non_fatal"): 1,
}
# The last: the kernel resets everything below the root port for it.
FATAL = ("gpu2", "DLP", "0000:05:00.0", "0000:00:12.0")
SEVERITIES = ("correctable", "non_fatal", "fatal")
TOTALS = {"correctable": "cor", "non_fatal": "nonfatal", "fatal": "fatal"}


@dataclass(frozen=True)
class Errors:
    """One machine before any error, after some, and after a fatal one.

    Attributes:
        table: What inspect showed people after the first errors; `fatal_table` after the fatal one.
    """

    before: NodeFacts
    after: NodeFacts
    table: str
    fatal: NodeFacts
    fatal_table: str


@pytest.fixture(scope="module", params=["node1", "node2"])
def errors(request: pytest.FixtureRequest, rack: Rack) -> Errors:
    """Injects everything into one machine, once."""
    vm = rack.vm(request.param)
    if vm.name == "node2":
        assert "trial boot: permanent" in sre.nodeprep(rack, "apply", vm.name, "--yes", policy={}).text
    before = sre.nodeprep(rack, "inspect", vm.name).facts(vm.name)
    for device, error, _, _ in INJECTED:
        vm.inject_aer(device, error)
    for (port, severity), count in RECEIVED.items():
        _await_total(vm, port, severity, _received(before, port)[severity] + count)
    after = sre.nodeprep(rack, "inspect", vm.name)
    device, error, _, port = FATAL
    vm.inject_aer(device, error)
    _await_total(vm, port, "fatal", _received(before, port)["fatal"] + 1)
    fatal = sre.nodeprep(rack, "inspect", vm.name)
    return Errors(before, after.facts(vm.name), after.text, fatal.facts(vm.name), fatal.text)


def test_the_kernel_counts_on_every_hop(errors: Errors) -> None:
    """Else what follows would prove nothing."""
    command_line = errors.before.boot.cmdline.require("command line")
    bridge = errors.before.aer_ownership.root_bridges.require("root bridges")[0]
    if errors.before.host == "node2":
        assert {"pcie_aspm=off", "pcie_ports=native"} <= set(command_line.split())
        assert bridge.controls.value == ()
        assert "not requesting OS control" in bridge.evidence
    else:
        assert "pcie" not in command_line
        assert "AER" in bridge.controls.require("controls")
    assert uncounted(errors.before) == ""
    owned = sre.run_check("aer_owned", sre.spec(errors.before, {}), errors.before)
    assert {result.status for result in owned.values()} == {"PASS"}
    assert set(owned) == {"0000:01:00.0", "0000:04:00.0", "0000:05:00.0"}


def test_nothing_is_counted_before(errors: Errors) -> None:
    assert list(rows(errors.before)) == []


def test_every_error_is_counted_where_it_happened_and_nowhere_else(errors: Errors) -> None:
    wanted = {(address, severity, error): 1 for _, error, address, severity in INJECTED}
    assert _counted(errors.after) == wanted
    ports = {address for address, _ in RECEIVED}
    received = {
        (port, severity): count for port in ports for severity, count in _received(errors.after, port).items()
    }
    assert {key: count for key, count in received.items() if count} == RECEIVED


def test_inspect_shows_people_hop_and_type(errors: Errors) -> None:
    for address, place, error, count in (
        ("0000:01:00.0", "hop 2 of 2 to GPU 0000:01:00.0", "BadTLP (corrected)", "1"),
        ("0000:00:11.0", "hop 1 of 2 to GPU 0000:01:00.0", "RxErr (corrected)", "1"),
        (
            "0000:00:11.0",
            "hop 1 of 2 to GPU 0000:01:00.0",
            "corrected messages received, sent by 0000:01:00.0 and 0000:00:11.0",
            "2",
        ),
        ("0000:03:00.0", "hop 3 of 4 to GPU 0000:04:00.0", "BadDLLP (corrected)", "1"),
        ("0000:04:00.0", "hop 4 of 4 to GPU 0000:04:00.0", "CmpltTO (non-fatal)", "1"),
        (
            "0000:00:12.0",
            "hop 1 of 4 to GPU 0000:04:00.0, 0000:05:00.0",
            "corrected messages received, sent by 0000:03:00.0",
            "1",
        ),
        (
            "0000:00:12.0",
            "hop 1 of 4 to GPU 0000:04:00.0, 0000:05:00.0",
            "non-fatal messages received, sent by 0000:04:00.0",
            "1",
        ),
    ):
        assert _line(errors.table, address, error).split() == f"{address} {place} {error} {count}".split()


def test_a_fatal_error_shows_at_the_root_port_and_nowhere_else(errors: Errors) -> None:
    _, _, gpu, port = FATAL
    assert _counted(errors.fatal) == _counted(errors.after)
    assert _received(errors.fatal, port)["fatal"] == _received(errors.after, port)["fatal"] + 1
    assert gpu not in {row[0] for row in rows(errors.fatal)}
    assert _line(errors.fatal_table, port, f" fatal messages received, sent by {gpu}").split()[-1] == "1"


def test_the_check_names_device_hop_type_and_sender(errors: Errors) -> None:
    results = sre.run_check("aer_quiet_load", sre.spec(errors.before, {}), errors.before, errors.after)
    said = {subject: result.reason for subject, result in results.items() if result.status == "FAIL"}
    assert set(said) == {"0000:00:11.0", "0000:01:00.0", "0000:00:12.0", "0000:03:00.0", "0000:04:00.0"}
    assert (
        "GPU 0000:01:00.0 (hop 2 of 2) reported errors under load: 1 BadTLP (correctable)"
        in said["0000:01:00.0"]
    )
    assert (
        "GPU 0000:04:00.0 (hop 4 of 4) reported errors under load: 1 CmpltTO (non_fatal)"
        in said["0000:04:00.0"]
    )
    assert "switch port 0000:03:00.0 (hop 3 of 4" in said["0000:03:00.0"]
    assert "1 BadDLLP (correctable)" in said["0000:03:00.0"]
    root = said["0000:00:12.0"]
    assert "sent by switch port 0000:03:00.0" in root
    assert "1 received as root port (non_fatal), sent by GPU 0000:04:00.0 (hop 4 of 4)" in root
    assert {result.status for subject, result in results.items() if subject not in said} == {"PASS"}


def test_the_check_names_who_sent_a_fatal_error(errors: Errors) -> None:
    _, _, gpu, port = FATAL
    results = sre.run_check("aer_quiet_load", sre.spec(errors.before, {}), errors.after, errors.fatal)
    bad = {subject: result for subject, result in results.items() if result.status == "FAIL"}
    assert set(bad) == {port}
    assert f"1 received as root port (fatal), sent by GPU {gpu} (hop 4 of 4)" in bad[port].reason


def _counted(facts: NodeFacts) -> dict[tuple[str, str, str], int]:
    """What is not zero, by address, severity and error."""
    return {
        (device.address, severity, error): count
        for device in facts.pci.devices.require("PCI devices")
        for severity in SEVERITIES
        for error, count in getattr(device.aer, severity).require(f"{severity} of {device.address}").items()
        if count
    }


def _received(facts: NodeFacts, port: str) -> dict[str, int]:
    """A root port's totals by severity."""
    device = facts.pci_device(port)
    assert device is not None
    return {
        severity: getattr(device.aer, f"rootport_{severity}").require(f"total of {port}")
        for severity in SEVERITIES
    }


def _await_total(vm: Vm, port: str, severity: str, count: int) -> None:
    """Errors take a moment to arrive."""
    path = f"/sys/bus/pci/devices/{port}/aer_rootport_total_err_{TOTALS[severity]}"
    deadline = time.monotonic() + 60
    while (found := int(vm.ssh(f"cat {path}"))) != count:
        assert time.monotonic() < deadline, f"{path} is {found}, not {count}"
        time.sleep(0.2)


def _line(table: str, address: str, error: str) -> str:
    """The one row of a device with an error."""
    found = [line for line in table.splitlines() if line.startswith(address) and error in line]
    assert len(found) == 1, found
    return found[0]
