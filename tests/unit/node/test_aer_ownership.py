import subprocess

import pytest

from nodeprep.node import aer_ownership
from nodeprep.node.aer_ownership import noaer, parse_grants, ports_native
from nodeprep.node.kernel_log import Record, read_records
from nodeprep.node.reading import attempt, error, ok
from nodeprep.sim import description
from nodeprep.sim.root import build_root, hgx_node

BRIDGE = "acpi PNP0A08:00: "


def grant(*lines):
    return parse_grants([BRIDGE + line for line in lines])["PNP0A08:00"]


def ownership(tmp_path, **changes):
    root = str(build_root(tmp_path, hgx_node(gpu_count=2, **changes)))
    records = attempt(read_records, root)
    return aer_ownership.collect(root, ok(changes.get("cmdline", "quiet")), records)


@pytest.mark.parametrize(
    ("lines", "controls"),
    [
        (description.OSC_GRANTED, ["PCIeHotplug", "PME", "AER", "PCIeCapability", "LTR", "DPC"]),
        (description.OSC_WITHOUT_AER, ["PCIeHotplug", "PME", "PCIeCapability", "LTR"]),
        (description.OSC_NOT_REQUESTED, []),
        (("PCIe port services disabled; not requesting _OSC control",), []),
        (("_OSC: platform retains control of PCIe features (AE_NOT_FOUND)",), []),
        (("_OSC failed (AE_ERROR); disabling ASPM",), []),
        (
            ("_OSC: OS requested [PME AER LTR]", "_OSC: platform willing to grant [PME AER LTR]",
             "_OSC: platform retains control of PCIe features (AE_ALREADY_EXISTS)"),
            [],
        ),
        (("_OSC: OS assumes control of [PCIeHotplug AER]",), ["PCIeHotplug", "AER"]),
        (("_OSC: OS now controls [AER]", "_OSC: OS now controls [CXLMemErrorReporting]"),
         ["AER", "CXLMemErrorReporting"]),
    ],
)  # fmt: skip
def test_lines_of_every_kernel_era(lines, controls):
    assert grant(*lines).controls == controls


def test_the_evidence_is_the_line_that_decided():
    assert grant(*description.OSC_GRANTED).evidence == BRIDGE + description.OSC_GRANTED[-1]
    assert "not requesting OS control" in grant(*description.OSC_NOT_REQUESTED).evidence


def test_what_was_only_requested_or_offered_is_not_granted():
    assert parse_grants([BRIDGE + "_OSC: platform willing to grant [AER]"]) == {}


def test_each_bridge_of_the_machine_is_listed_by_its_bus(tmp_path):
    bridges = ownership(tmp_path, osc_lines=description.OSC_GRANTED)["root_bridges"]["value"]
    assert [bridge["bus"] for bridge in bridges] == ["0000:00", "0000:15", "0000:3d"]
    assert [bridge["acpi_name"] for bridge in bridges] == ["PNP0A08:00", "PNP0A08:01", "PNP0A08:02"]
    assert all("AER" in bridge["controls"]["value"] for bridge in bridges)


def test_an_overwritten_log_is_an_error_not_a_refusal(tmp_path):
    found = ownership(tmp_path, log_first_sequence=5000, messages=((6, "eth0: link up"),))
    for bridge in found["root_bridges"]["value"]:
        assert bridge["controls"]["state"] == "error"
        assert "overwritten" in bridge["controls"]["detail"]
        assert bridge["evidence"] == ""


def test_a_complete_log_without_the_line_is_an_error_too(tmp_path):
    found = ownership(tmp_path, osc_lines=())
    assert "no _OSC line" in found["root_bridges"]["value"][0]["controls"]["detail"]


def test_an_unreadable_log_is_an_error(tmp_path):
    root = str(build_root(tmp_path, hgx_node(gpu_count=1)))
    found = aer_ownership.collect(root, ok("quiet"), error("needs root: /dev/kmsg"))
    assert "needs root: /dev/kmsg" in found["root_bridges"]["value"][0]["controls"]["detail"]


def test_a_bridge_without_acpi_negotiated_nothing(tmp_path):
    root = build_root(tmp_path, hgx_node(gpu_count=1))
    (root / "sys/devices/pci0000:15/firmware_node").unlink()
    found = aer_ownership.collect(str(root), ok("quiet"), attempt(read_records, str(root)))
    bridge = found["root_bridges"]["value"][1]
    assert bridge["acpi_name"] == ""
    assert bridge["controls"]["state"] == "not_supported"


def wrapped(monkeypatch, answer):
    """A real machine whose ring buffer has wrapped, and what its journalctl does."""
    monkeypatch.setattr(aer_ownership, "is_real", lambda root: True)
    monkeypatch.setattr(subprocess, "run", answer)
    return ok([Record(5000, 1, 6, "eth0: link up")])


def test_the_journal_helps_when_the_ring_buffer_has_wrapped(tmp_path, monkeypatch):
    root = str(build_root(tmp_path, hgx_node(gpu_count=1)))
    lines = "\n".join(f"acpi PNP0A08:01: {line}" for line in description.OSC_GRANTED)
    records = wrapped(monkeypatch, lambda *a, **k: subprocess.CompletedProcess(a, 0, lines, ""))
    bridges = aer_ownership.root_bridges(root, records)
    assert "AER" in bridges[1]["controls"]["value"]
    assert "journal does not have" in bridges[0]["controls"]["detail"]


def test_a_journal_that_cannot_be_read_is_named(tmp_path, monkeypatch):
    def missing(*arguments, **options):
        raise FileNotFoundError(2, "No such file or directory", "journalctl")

    root = str(build_root(tmp_path, hgx_node(gpu_count=1)))
    bridges = aer_ownership.root_bridges(root, wrapped(monkeypatch, missing))
    assert "journalctl: No such file" in bridges[0]["controls"]["detail"]

    def slow(*arguments, **options):
        raise subprocess.TimeoutExpired("journalctl", 15)

    bridges = aer_ownership.root_bridges(root, wrapped(monkeypatch, slow))
    assert "did not answer" in bridges[0]["controls"]["detail"]


def test_command_line_switches():
    assert noaer("quiet pci=realloc,noaer pcie_aspm=off") is True
    assert noaer("quiet pci=nommconf -- pci=noaer") is False
    assert ports_native("pcie_ports=native quiet") is True
    assert ports_native("pcie_ports=compat") is False


def test_an_unreadable_command_line_leaves_the_switches_unknown(tmp_path):
    found = aer_ownership.collect(str(tmp_path), error("gone"), ok([]))
    assert found["noaer"]["state"] == "error"
    assert found["ports_native"]["state"] == "error"


@pytest.mark.parametrize(("marked", "found"), [(True, True), (False, False), (None, False)])
def test_firmware_first_comes_from_the_hest_table(tmp_path, marked, found):
    assert ownership(tmp_path, firmware_first=marked)["firmware_first"] == ok(found)
