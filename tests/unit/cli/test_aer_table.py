"""PCIe errors as `inspect` shows them to people."""

from __future__ import annotations

from nodeprep.cli._aer import rows
from tests.cases.base.documents import context

ROOT, GPU = "0000:60:01.0", "0000:63:00.0"
FATAL = f"pcieport {ROOT}: AER: Uncorrectable (Fatal) error message received from {GPU}"


def test_a_node_without_errors_has_no_rows() -> None:
    assert list(rows(context().before)) == []


def test_a_root_port_s_messages_come_with_their_sender() -> None:
    facts = {
        f"/pci/devices/{ROOT}/aer/rootport_fatal": 1,
        "/kernel_log/events": [
            {
                "sequence": 9,
                "monotonic_us": 9,
                "priority": 4,
                "kind": "aer",
                "device": ROOT,
                "text": FATAL,
                "xid": None,
            }
        ],
    }
    ((address, place, error, count),) = rows(context(facts=facts).before)
    assert (address, count) == (ROOT, "1")
    assert place.startswith("hop 1 of 4 to GPU")
    assert error == f"fatal messages received, sent by {GPU}"


def test_messages_that_the_log_names_no_sender_of_are_not_given_one() -> None:
    facts = {f"/pci/devices/{ROOT}/aer/rootport_correctable": 3}
    ((_, _, error, count),) = rows(context(facts=facts).before)
    assert error == "corrected messages received, the kernel log names no sender"
    assert count == "3"


def test_an_unreadable_counter_is_told_and_not_taken_for_zero() -> None:
    facts = {f"/pci/devices/{GPU}/aer/non_fatal": "error: I/O error"}
    assert [row[2:] for row in rows(context(facts=facts).before)] == [
        ("non-fatal errors", "unreadable: I/O error")
    ]
