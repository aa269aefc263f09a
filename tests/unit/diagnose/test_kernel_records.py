"""What happened while a node was under load, from the records that its facts keep."""

from __future__ import annotations

from nodeprep.diagnose.kernel_records import diagnose_records
from nodeprep.model.facts import KernelEvent


def record(sequence: int, text: str, *, at_s: float) -> KernelEvent:
    return KernelEvent(sequence=sequence, monotonic_us=int(at_s * 1e6), priority=3, kind="other", text=text)


def test_a_link_that_died_under_load() -> None:
    found = diagnose_records(
        (
            record(9, "NVRM: Xid (PCI:0000:02:00): 79, GPU has fallen off the bus.", at_s=500.4),
            record(
                7, "pcieport 0000:00:02.0: DPC: containment event, status:0x1f01 source:0x0000", at_s=500.0
            ),
        )
    )
    assert [(incident.device, incident.root.device) for incident in found] == [
        ("0000:02:00.0", "0000:00:02.0")
    ]
    assert "0.4 s before" in found[0].why


def test_silence_is_no_incident() -> None:
    assert diagnose_records(()) == ()
