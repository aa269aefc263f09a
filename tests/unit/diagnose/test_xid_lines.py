"""Xid lines of all eras."""

from __future__ import annotations

from typing import Any

import pytest

from nodeprep.diagnose.decoders.xid import DECODER
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line


def only(text: str) -> Event:
    found = list(DECODER.decode([Line(source="log", number=1, text=text, raw=text)]))
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize(
    ("text", "device", "data"),
    [
        ("NVRM: Xid (0000:02:00): 79", "0000:02:00.0", {"code": 79}),
        (
            "NVRM: Xid (0000:03:00): 14, Channel 00000001",
            "0000:03:00.0",
            {"code": 14, "text": "Channel 00000001"},
        ),
        (
            "NVRM: Xid (PCI:0000:09:00): 79, pid=0, GPU has fallen off the bus.",
            "0000:09:00.0",
            {"code": 79, "pid": 0, "text": "GPU has fallen off the bus."},
        ),
        (
            "NVRM: Xid (PCI:0000:a1:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
            "0000:a1:00.0",
            {"code": 79, "text": "GPU has fallen off the bus."},
        ),
        (
            "NVRM: Xid (PCI:0018:01:00): 45, pid=7, name=python3, Ch 00000001 caused by previous Xid 149",
            "0018:01:00.0",
            {"code": 45, "pid": 7, "process": "python3", "caused_by": 149},
        ),
        (
            "NVRM: Xid (PCI:0000:01:00 GPU-I:05 GPU-CI:02): 13, pid=5, name=a, Graphics SM Warp Exception on "
            "(GPC 1, TPC 0, SM 3): Out Of Range Address",
            "0000:01:00.0",
            {"gpu_instance": 5, "compute_instance": 2, "place": "(GPC 1, TPC 0, SM 3)", "process": "a"},
        ),
        (
            "NVRM: Xid (PCI:0000:01:00 GI:7): 31, pid=5, name=a, Ch 1",
            "0000:01:00.0",
            {"gpu_instance": 7, "code": 31},
        ),
        (
            "NVRM: Xid (PCI:0000:01:00 GPU-0b5e7c1a-009c-4f6d-9a3e-5d20c8f1009c): 94, Contained: SM "
            "(0x1). RST: No",
            "0000:01:00.0",
            {"uuid": "GPU-0b5e7c1a-009c-4f6d-9a3e-5d20c8f1009c", "contained": True},
        ),
        (
            "NVRM: Xid (PCI:0000:01:00): 119, pid=9, name=nvc:[driver], x(2), Timeout after 45s of "
            "waiting for RPC "
            "response from GPU0 GSP! Expected function 76 (GSP_RM_CONTROL) (0x1 0x4).",
            "0000:01:00.0",
            {"process": "nvc:[driver], x(2)", "timeout_s": 45, "function": "76 (GSP_RM_CONTROL)"},
        ),
        (
            "agent says: MESSAGE=NVRM: Xid (PCI:000b:00:00): 154, GPU recovery action changed from "
            "0x0 (None) to 0x2 (OS Reboot)",
            "000b:00:00.0",
            {"code": 154, "old_action": 0, "new_action": 2},
        ),
        (
            "NVRM: Xid (PCI:0000:3d:00): 31, pid=1, name=x, Ch 00000010, intr 0. MMU Fault: ENGINE "
            "GRAPHICS GPC6 "
            "GPCCLIENT_T1_13 faulted @ 0x7f17_04027000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_WRITE",
            "0000:3d:00.0",
            {
                "engine": "GRAPHICS",
                "client": "GPCCLIENT_T1_13",
                "address": "0x7f17_04027000",
                "fault": "FAULT_PDE",
            },
        ),
        (
            "NVRM: Xid (PCI:0000:dc:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link -1 (0x004505c6 0x00000000 0x0",
            "0000:dc:00.0",
            {"unit": "NETIR_LINK_EVT", "said_fatal": True, "link": -1, "info": 0x004505C6, "sub_code": 4},
        ),
        (
            "NVRM: Xid (PCI:0000:dc:00): 145, RLW_RXPIPE Nonfatal XC 1 i 2 Link 11 [0x000000c2, 0x00000001]",
            "0000:dc:00.0",
            {"said_fatal": False, "info": 0xC2, "error_status": 1},
        ),
        (
            "NVRM: Xid (PCI:0000:07:00): 48, An uncorrectable double bit error (DBE) has been "
            "detected on GPU in the "
            "framebuffer at physAddr 0x7fdd60000 partition 5, subpartition 1.",
            "0000:07:00.0",
            {"partition": 5, "subpartition": 1},
        ),
        (
            "NVRM: Xid (PCI:0000:07:00): 171, Double Bit ECC Error in FBPA 9 subpartition 1",
            "0000:07:00.0",
            {"partition": 9},
        ),
        (
            "NVRM: Xid (PCI:0000:07:00): 62, 32a5(2d6c) 00000000 00000000",
            "0000:07:00.0",
            {"text": "32a5(2d6c) 00000000 00000000"},
        ),
    ],
)
def test_what_a_line_says(text: str, device: str, data: dict[str, Any]) -> None:
    event = only(text)
    assert event.device == device
    assert event.kind == f"xid.{event.data['code']}"
    assert {key: event.data.get(key) for key in data} == data


@pytest.mark.parametrize(
    "text",
    [
        "NVRM: Xid (PCI:0000:02:00):",
        "Xid (PCI) without a driver",
        "NVRM: Xid ((((: 79",
    ],
)
def test_what_is_no_xid_line(text: str) -> None:
    assert list(DECODER.decode([Line(source="log", number=1, text=text, raw=text)])) == []


def test_an_address_that_was_blotted_out_does_not_hide_the_error() -> None:
    event = only("NVRM: Xid (PCI:xxxx:xx:00): 79, GPU has fallen off the bus.")
    assert event.kind == "xid.79"
    assert event.device == ""


def test_an_unknown_process_is_none() -> None:
    event = only("NVRM: Xid (PCI:0000:a1:00): 43, pid='<unknown>', name=<unknown>, Ch 00000008")
    assert "pid" not in event.data
    assert "process" not in event.data


def test_the_identity_of_a_gpu() -> None:
    event = only("NVRM: GPU at PCI:0000:61:00: GPU-0b5e7c1a-0061-4f6d-9a3e-5d20c8f10061")
    assert event.kind == "gpu.identity"
    assert event.data["uuid"] == "GPU-0b5e7c1a-0061-4f6d-9a3e-5d20c8f10061"
