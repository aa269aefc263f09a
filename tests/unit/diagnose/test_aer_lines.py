"""PCI Express errors as kernels of all eras print them."""

from __future__ import annotations

import pytest

from nodeprep.diagnose.decoders.aer import DECODER
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line


def events(text: str) -> list[Event]:
    lines = text.strip("\n").split("\n")
    return list(
        DECODER.decode(Line(source="log", number=n, text=line, raw=line) for n, line in enumerate(lines, 1))
    )


ERAS = {
    "4.16": """
pcieport 0000:00:1c.5: AER: Corrected error received: id=00e5
pcieport 0000:00:1c.5: PCIe Bus Error: severity=Corrected, type=Physical Layer, id=00e5(Receiver ID)
pcieport 0000:00:1c.5:   device [8086:9d15] error status/mask=00000001/00002000
pcieport 0000:00:1c.5:    [ 0] Receiver Error         (First)""",
    "4.17": """
pcieport 0000:00:1c.5: AER: Corrected error received: 0000:00:1c.5
pcieport 0000:00:1c.5: AER: PCIe Bus Error: severity=Corrected, type=Physical Layer, (Receiver ID)
pcieport 0000:00:1c.5: AER:   device [8086:9d15] error status/mask=00000001/00002000
pcieport 0000:00:1c.5: AER:    [ 0] RxErr                  (First)""",
    "6.8": """
pcieport 0000:00:1c.5: AER: Multiple Correctable error message received from 0000:00:1c.5
pcieport 0000:00:1c.5: PCIe Bus Error: severity=Correctable, type=Physical Layer, (Receiver ID)
pcieport 0000:00:1c.5:   device [8086:9d15] error status/mask=00000001/00002000
pcieport 0000:00:1c.5:    [ 0] RxErr                  (First)""",
}


@pytest.mark.parametrize("era", ERAS)
def test_one_event_of_four_lines(era: str) -> None:
    found = events(ERAS[era])
    assert [(event.kind, event.device, len(event.lines)) for event in found] == [
        ("aer.corrected.receiver_error", "0000:00:1c.5", 4)
    ]
    assert found[0].data["status"] == 1


def test_the_type_comes_from_the_register_when_its_line_is_lost() -> None:
    found = events("\n".join(ERAS["6.8"].strip().split("\n")[:3]))
    assert [event.kind for event in found] == ["aer.corrected.receiver_error"]


def test_a_masked_bit_is_not_the_error() -> None:
    found = events(
        "nvidia 0000:18:00.0: PCIe Bus Error: severity=Uncorrected (Non-Fatal), type=Transaction "
        "Layer, (Requester ID)\n"
        "nvidia 0000:18:00.0:   device [10de:2330] error status/mask=00104000/00100000"
    )
    assert [event.kind for event in found] == ["aer.nonfatal.completion_timeout"]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("Uncorrected (Fatal)", "fatal"),
        ("Uncorrectable (Fatal)", "fatal"),
        ("Uncorrected (Non-Fatal)", "nonfatal"),
        ("Uncorrectable (Non-Fatal)", "nonfatal"),
        ("Corrected", "corrected"),
    ],
)
def test_severities(words: str, kind: str) -> None:
    found = events(
        f"pcieport 0000:00:02.0: PCIe Bus Error: severity={words}, type=Transaction Layer, (Requester ID)"
    )
    assert found[0].kind == f"aer.{kind}.unknown"
    assert found[0].data["agent"] == "Requester ID"


def test_layer_without_an_agent() -> None:
    found = events(
        "pcieport 0000:00:02.0: AER: PCIe Bus Error: severity=Uncorrected (Fatal), "
        "type=Inaccessible, (Unregistered Agent ID)"
    )
    assert found[0].data["layer"] == "Inaccessible"


def test_a_message_without_details_names_who_sent_it() -> None:
    found = events(
        "pcieport 0000:00:1c.0: AER: Corrected error received: id=00e5\n"
        "pcieport 0000:00:1c.0: AER: can't find device of ID00e5"
    )
    assert [(event.kind, event.device) for event in found] == [("aer.corrected.unknown", "0000:00:1c.5")]


def test_source_00_00_of_zen_ports_blames_the_port() -> None:
    found = events("pcieport 0000:40:01.1: AER: Corrected error received: 0000:00:00.0")
    assert [event.device for event in found] == ["0000:40:01.1"]


def test_two_devices_between_each_other_stay_two() -> None:
    found = events(
        "pcieport 0000:00:01.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Receiver ID)\n"
        "pcieport 0000:00:02.0: PCIe Bus Error: severity=Corrected, type=Data Link Layer, (Receiver ID)\n"
        "pcieport 0000:00:02.0:   device [8086:6f04] error status/mask=00000040/00002000\n"
        "pcieport 0000:00:02.0:    [ 6] BadTLP"
    )
    assert [(event.device, event.kind) for event in found] == [
        ("0000:00:01.0", "aer.corrected.unknown"),
        ("0000:00:02.0", "aer.corrected.bad_tlp"),
    ]


def test_recovery_and_rate_limit() -> None:
    found = events(
        "nvidia 0000:63:00.0: AER: can't recover (no error_detected callback)\n"
        "pcieport 0000:60:01.1: AER: device recovery failed\n"
        "pcieport 0000:60:01.1: AER: device recovery successful\n"
        "aer_ratelimit: 30 callbacks suppressed"
    )
    assert [event.kind for event in found] == [
        "aer.recovery_failed", "aer.recovery_failed", "aer.recovered", "aer.suppressed",
    ]  # fmt: skip
    assert found[-1].data["suppressed"] == 30


_BROKEN = "pcieport 0000:00:1c.5: PCIe Bus Error: severity=Correctable,"
_REST = "  type=Data Link Layer, (Receiver ID)  [ 7] BadDLLP (First)"


def test_a_head_that_was_broken_at_its_comma_is_joined() -> None:
    (event,) = events(f"{_BROKEN}\n{_REST}")
    assert event.kind == "aer.corrected.bad_dllp"
    assert event.data == {"layer": "Data Link Layer", "agent": "Receiver ID"}
    assert len(event.lines) == 2


def test_a_rest_that_does_not_follow_its_head_is_nobodys() -> None:
    (event,) = events(f"{_BROKEN}\nanother line\n{_REST}")
    assert event.kind == "aer.corrected.unknown"
