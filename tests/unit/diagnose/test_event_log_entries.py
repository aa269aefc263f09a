"""Entries of BMCs' event logs: by sensor and event over IPMI, by message id or words over Redfish."""

from __future__ import annotations

import io
import re
import time
from typing import BinaryIO, cast

import pytest

from nodeprep.diagnose import catalog
from nodeprep.diagnose.decoders.event_log import DECODER
from nodeprep.diagnose.engine import diagnose
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.inputs import Input
from nodeprep.diagnose.line import Line
from nodeprep.model.diagnosis import Diagnosis

# Judged together with what the kernel says of them, by host_hardware.
_OF_OTHER_RULES = {"sel.memory_uncorrected", "sel.memory_corrected", "sel.processor"}

# As ipmitool 1.8.19 prints an event, and as pyghmi 1.6 names the same one.
IPMI = {
    ("Critical Interrupt #0x02 | Bus Fatal Error", "Critical interrupt 0x02 | Bus fatal error"): "pcie_fatal",
    ("Critical Interrupt #0x02 | PCI SERR", "Critical interrupt 0x02 | PCI SERR"): "pcie_fatal",
    ("Critical Interrupt #0x02 | PCI PERR", "Critical interrupt 0x02 | PCI PERR"): "pcie_error",
    ("Slot / Connector #0x09 | Fault Status", "Slot/Connector 0x09 | Fault"): "slot_fault",
    ("Power Supply #0x03 | Power Supply AC lost", "Power Supply 0x03 | Power input lost"): "power_input",
    ("Power Supply #0x03 | Failure detected", "Power Supply 0x03 | Failure"): "power_supply",
    (
        "Power Supply #0x03 | Predictive failure",
        "Power Supply 0x03 | Predictive failure",
    ): "power_supply_predicted",
    ("Power Supply #0x09 | Redundancy Lost", "Power Supply 0x09 | Not redundant"): "power_redundancy",
    ("Power Unit #0x09 | Redundancy Degraded", "Power Unit 0x09 | Redundancy degraded"): "power_redundancy",
    ("Processor #0x04 | Thermal Trip", "Processor 0x04 | Thermal trip"): "thermal_trip",
    ("Processor #0x04 | IERR", "Processor 0x04 | Internal error"): "processor",
    (
        "Processor #0x04 | Uncorrectable machine check exception",
        "Processor 0x04 | Uncorrectable machine check exception",
    ): "processor",
    ("Processor #0x04 | Configuration Error", "Processor 0x04 | Configuration error"): "processor_setup",
    ("Memory #0x06 | Uncorrectable ECC", "Memory 0x06 | Uncorrectable error"): "memory_uncorrected",
    ("Memory #0x06 | Correctable ECC", "Memory 0x06 | Correctable error"): "memory_corrected",
    ("Temperature #0x07 | Upper Critical going high", "Temperature 0x07 | Upper critical"): "temperature",
    ("Fan #0x08 | Lower Critical going low ", "Fan 0x08 | Lower Critical"): "fan",
    ("Voltage #0x60 | Lower Critical going low ", "Voltage 0x60 | Lower Critical"): "voltage",
    ("Drive Slot / Bay #0x80 | Drive Fault", "Drive Bay 0x80 | Drive fault"): "drive",
    (
        "Cable / Interconnect #0x81 | Config Error",
        "Cable/Interconnect 0x81 | Connection error",
    ): "cable",
    (
        "Add-in Card #0x82 | Transition to Critical from less severe",
        "Add-in card 0x82 | Critical",
    ): "unlisted_critical",
    ("Fan #0x08 | Redundancy Lost", "Fan 0x08 | Not redundant"): "fan_redundancy",
    ("Watchdog2 #0x01 | Hard reset", "Watchdog 0x01 | Watchdog hard reset"): "watchdog",
    ("OS Stop #0x01 | Run-time critical stop", "OS Stop 0x01 | OS crash"): "os_stop",
    ("Event Logging Disabled #0x01 | Log full", "Event Log Disabled 0x01 | Event log full"): "log_full",
}  # fmt: skip

REDFISH = {
    "Critical: A fatal error was detected on a component at bus 174 device 3 function 0. (PCI1318)": (
        "sel.pcie_fatal",
        "0000:ae:03.0",
        "",
    ),
    "Critical: A bus fatal error was detected on a component at slot 7. (PCI, PCI1360)": (
        "sel.pcie_fatal",
        "",
        "slot 7",
    ),
    "Critical: The power input for power supply 2 is lost. (IDRAC.2.8.PSU0003)": ("sel.power_input", "", ""),
    "Critical: Multi-bit memory errors detected on a memory device at location(s) DIMM_A3. (MEM0001)": (
        "sel.memory_uncorrected",
        "",
        "DIMM_A3",
    ),
    "Critical: CPU 1 configuration is unsupported. (IDRAC.2.8.CPU0005)": ("sel.processor_setup", "", ""),
    "Critical: Power supply AC power loss detected in 1, bay 2. (iLOEvents.2.1.PowerSupplyACPowerLoss)": (
        "sel.power_input",
        "",
        "bay 2",
    ),
    "Critical: Uncorrectable PCI Express Error Detected. Slot 4 (Segment 0x0, Bus 0x12, Device 0x0, "
    "Function 0x0)": ("sel.pcie_fatal", "0000:12:00.0", "Slot 4"),
    "Warning: Redundancy is lost. (FQXSPPW0104J)": ("sel.power_redundancy", "", ""),
    # No list explains these; the BMC's own word for them counts.
    "Critical: Something is broken. (IDRAC.2.8.UEFI0080)": ("sel.unlisted_critical", "", ""),
    "Warning: Something may break. (IDRAC.2.8.PWR2269)": ("sel.unlisted_warning", "", ""),
}

NO_TROUBLE = (
    "OK: The power supply 1 is operating normally. (IDRAC.2.8.PSU0017)",
    "Informational: The NIC in slot 3 port 1 network link is started. (NIC101)",
    "OK: Log cleared. (IDRAC.2.8.LOG007)",
    "Warning: The event log was cleared. (IDRAC.2.8.SEL0004)",
    "OK: Firmware update of BIOS: Memory and power supply failure handling. (SUP0516)",
    "Warning: New PCI card(s) have been detected in the system. (IDRAC.2.8.PCI3018)",
    "Critical: Power Supply 1: Failure detected (Power Supply, Deassert, AmiIpmiOem.1.0.GeneralEventData)",
    "OK: A power supply has been inserted in chassis 1, bay 2. (iLOEvents.2.1.PowerSupplyInserted)",
)


def _events(text: str) -> list[Event]:
    return list(DECODER.decode([Line(source="sel", number=1, text=text, raw=text)]))


def _diagnosis(*lines: str) -> Diagnosis:
    data = "".join(f"{line}\n" for line in lines).encode()
    return diagnose([Input(name="sel", open=lambda: cast(BinaryIO, io.BytesIO(data)))])


@pytest.mark.parametrize(("texts", "kind"), IPMI.items())
def test_ipmitool_and_pyghmi_mean_the_same_event(texts: tuple[str, str], kind: str) -> None:
    printed, named = texts
    assert [event.kind for event in _events(f"{printed} | Asserted")] == [f"sel.{kind}"]
    assert [event.kind for event in _events(f"{named} (asserted, data aa 03 00) | Asserted")] == [
        f"sel.{kind}"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Power Unit #0x01 | Soft-power control failure",
        "Event Logging Disabled #0x01 | Log area reset/cleared",
        "Slot/Connector 0x09 | Slot/connector installed",
        "Processor 0x04 | Present",
        "System Boot Initiated #0x01 | Initiated by power up",
        "Watchdog2 #0x01 | Timer expired",
        "Voltage #0x60 | Lower Non-critical going low ",
        "Add-in Card #0x82 | Transition to Non-Critical from OK",
    ],
)
def test_what_is_no_trouble_over_ipmi(text: str) -> None:
    assert _events(f"{text} | Asserted") == []


# As ipmitool and pyghmi name what healthy machines log; see the tables of the standard.
HARMLESS = (
    "Power Unit Pwr Unit Stat | Power off/down",
    "Power Unit 0x01 | Power cycle (asserted, data 01 ff ff)",
    "System ACPI Power State ACPI | S0/G0: working",
    "System ACPI Power State 0x22 | Online (asserted, data 00 ff ff)",
    "Button #0x14 | Power Button pressed",
    "OS Boot #0x1f | C: boot completed",
    "OS Boot 0x1f | Hard drive boot completed (asserted, data 01 ff ff)",
    "OS Stop/Shutdown #0x20 | OS graceful shutdown",
    "Session Audit #0x2a | Session Activated",
    "System Event #0x12 | Timestamp Clock Sync",
    "System Event 0x12 | Clock time change (asserted, data 05 00 ff)",
    "System Event #0x12 | OEM System boot event",
    "Event Logging Disabled SEL | Log area reset/cleared",
    "System Firmwares #0x0f | Memory initialization",
    "System Firmware Progress #0x0f | Starting operating system boot process",
    "System Firmware 0x0f | Progress (asserted, data 02 13 ff)",
    "Drive Slot / Bay Drive 0 | Drive Present",
    "Slot / Connector #0x21 | Slot occupied",
    "Slot / Connector #0x21 | Device Installed/attached",
    "Slot / Connector #0x21 | Ready for Device Removal",
    "Module / Board #0x30 | State Asserted",
    "Module / Board 0x30 | Asserted (asserted, data 01 ff ff)",
    "Module / Board #0x30 | Device Inserted / Device Present",
    "Module / Board #0x30 | Device Enabled",
    "Module / Board #0x30 | Transition to Running",
    "Chassis #0x31 | Informational",
    "Chassis #0x31 | Monitor",
    "Current #0x32 | Limit Not Exceeded",
    "Power Unit PS Redundancy | Fully Redundant",
    "Fan 0x33 | Redundant (asserted, data 00 ff ff)",
    "Entity Presence #0x34 | Absent",
    "Processor P1 Status | Presence detected",
    "Power Supply PS1 Status | Presence detected",
    "Cable / Interconnect #0x35 | Connected",
    "Version Change #0x36 | Firmware or software change detected",
    "FRU State #0x37 | Active",
    "Watchdog2 #0x01 | Timer interrupt",
    "Temperature Inlet | Upper Non-critical going high",
)

UNLISTED = (
    "Unknown #0x55 | Whatever Bad Thing",
    "Unknown #0x55 | ",
    "Processor #0x04 | Correctable machine check error",
    "Memory #0x06 | Configuration error",
    "Memory 0x06 | Scrub failed (asserted, data 03 ff ff)",
    "Drive Slot / Bay #0x80 | In Failed Array",
    "Physical Security Chassis Intru | General Chassis intrusion",
    "Management Subsys Health #0x28 | Controller unavailable",
    "Module / Board #0x30 | Limit Exceeded",
    "Module / Board #0x30 | Predictive Failure Asserted",
    "Power Unit #0x01 | 240VA power down",
    "OS Boot #0x1f | Installation failed",
    "System Firmware 0x0f | Boot error (asserted, data 00 ff ff)",
    "System Event #0x12 | Undetermined system hardware failure",
    "LAN #0x27 | Heartbeat Lost",
    # A state whose sensor's name is that of a fault.
    "Processor P1 MEMHOT | State Asserted",
    "Version Change #0x36 | Hardware incompatibility detected",
)


def _entry(text: str) -> Diagnosis:
    return _diagnosis(f"   1 | 03/04/2026 | 10:15:00 | {text} | Asserted")


@pytest.mark.parametrize("text", HARMLESS)
def test_what_healthy_machines_log(text: str) -> None:
    assert _entry(text).incidents == ()


@pytest.mark.parametrize("text", UNLISTED)
def test_what_no_words_fit_is_shown_raw(text: str) -> None:
    (incident,) = _entry(text).incidents
    assert (incident.severity, incident.root.event) == ("info", "sel.unlisted_warning")
    assert text.strip() in incident.evidence[0].text
    assert _diagnosis(f"   1 | 03/04/2026 | 10:15:00 | {text} | Deasserted").incidents == ()


def test_a_processor_that_throttles_is_too_hot() -> None:
    for text in ("Processor CPU1 PROCHOT | Throttled", "Processor #0x04 | Processor Automatically Throttled"):
        (incident,) = _entry(text).incidents
        assert (incident.severity, incident.root.event) == ("warning", "host.cpu_hot")


def test_a_table_of_another_program_is_no_event_log() -> None:
    assert _events("a name | a value | Asserted") == []


@pytest.mark.parametrize("text", REDFISH)
def test_an_entry_of_redfish(text: str) -> None:
    (event,) = _events(f"Lclog | {text} | Asserted")
    assert (event.kind, event.device, event.data.get("place", "")) == REDFISH[text]


@pytest.mark.parametrize("text", NO_TROUBLE)
def test_what_is_no_trouble_over_redfish(text: str) -> None:
    assert _events(f"Lclog | {text} | Asserted") == []


def test_words_that_repeat_do_not_make_a_line_slow() -> None:
    began = time.process_time()
    assert _events("a | asserted " + "temperature above " * 225 + " | Asserted") == []
    assert time.process_time() - began < 1.0


def test_the_data_bytes_of_an_ipmi_entry_name_no_device() -> None:
    (event,) = _events("Critical interrupt 0x02 | Bus fatal error (asserted, data aa 03 00) | Asserted")
    assert event.device == ""


def test_an_unlisted_entry_is_quoted_and_not_healthy_when_the_bmc_calls_it_critical() -> None:
    found = _diagnosis(
        "2026-03-04T10:15:00-06:00 | Lclog | Critical: Something. (IDRAC.2.8.XYZ0001) | Asserted"
    )
    (incident,) = found.incidents
    assert (incident.severity, incident.root.event) == ("warning", "sel.unlisted_critical")
    assert "XYZ0001" in incident.evidence[0].text
    assert incident.evidence[0].time == "2026-03-04T10:15:00-06:00"
    assert not found.healthy


def test_an_unlisted_warning_is_information() -> None:
    found = _diagnosis("2026-03-04T10:15:00-06:00 | Lclog | Warning: Link down. (NIC100) | Asserted")
    assert [incident.severity for incident in found.incidents] == ["info"]


_LOST = "   1 | 03/04/2026 | 10:15:00 | Power Supply #0x03 | Power Supply AC lost | Asserted"


def test_what_is_over_is_a_step_less_grave() -> None:
    back = "   2 | 03/04/2026 | 10:20:00 | Power Supply #0x03 | Power Supply AC lost | Deasserted"
    (incident,) = _diagnosis(_LOST, back).incidents
    assert (incident.severity, incident.action, incident.count) == ("warning", "observe", 1)
    assert incident.summary == "a power supply lost its input, and it is over"
    assert [line.line for line in incident.evidence] == [1, 2]


@pytest.mark.parametrize(
    "later",
    [
        # Of another supply, of another event, and before.
        "   2 | 03/04/2026 | 10:20:00 | Power Supply #0x04 | Power Supply AC lost | Deasserted",
        "   2 | 03/04/2026 | 10:20:00 | Power Supply #0x03 | Predictive failure | Deasserted",
        "   2 | 03/04/2026 | 10:10:00 | Power Supply #0x03 | Power Supply AC lost | Deasserted",
    ],
)
def test_what_another_entry_ends_is_not_over(later: str) -> None:
    (incident,) = _diagnosis(_LOST, later).incidents
    assert incident.severity == "error"


def test_the_end_of_the_worse_state_leaves_the_bad_one() -> None:
    entry = "   {} | 03/04/2026 | 10:1{}:00 | Fan #0x08 | Lower {} going low | {}"
    worse = (
        entry.format(2, 2, "Non-recoverable", "Asserted"),
        entry.format(3, 3, "Non-recoverable", "Deasserted"),
    )
    (incident,) = _diagnosis(entry.format(1, 1, "Critical", "Asserted"), *worse).incidents
    assert incident.severity == "error"


def test_a_fatal_error_of_a_bus_is_not_undone_by_its_end() -> None:
    entry = "   {} | 03/04/2026 | 10:15:0{} | Critical Interrupt #0x02 | Bus Fatal Error | {}"
    (incident,) = _diagnosis(entry.format(1, 1, "Asserted"), entry.format(2, 2, "Deasserted")).incidents
    assert incident.severity == "critical"


def test_every_kind_that_an_entry_may_be_of_has_a_meaning() -> None:
    known = set(catalog.event_log_kinds()) | _OF_OTHER_RULES
    file = catalog.event_log()
    assert {entry.kind for entry in file.words} - {""} <= known
    assert {entry.kind for entry in file.messages} - {""} <= known


def test_every_id_is_listed_once_and_every_source_is_used() -> None:
    file = catalog.event_log()
    ids = [name for entry in file.messages for name in entry.ids]
    assert len(ids) == len(set(ids))
    used = {name for entry in file.words for name in entry.sources}
    used |= {name for entry in file.messages for name in entry.sources}
    assert used == set(file.sources)
    assert all(re.compile(entry.pattern) for entry in file.words)
    assert all(catalog.step(name) for kind in file.kinds for name in (kind.action, *kind.then))
