"""Kernel log records of a node's facts, diagnosed: what happened while a node was under load."""

from __future__ import annotations

from nodeprep.diagnose.correlate import incidents
from nodeprep.diagnose.decoders import all_decoders
from nodeprep.diagnose.line import Line
from nodeprep.model.diagnosis import Incident
from nodeprep.model.facts import KernelEvent

SOURCE = "kernel log"


def diagnose_records(records: tuple[KernelEvent, ...]) -> tuple[Incident, ...]:
    """Incidents in kernel log records of one boot, the worst first.

    The node keeps only records that a check may want, so the order of their sequence numbers stands
    for the lines of a log.
    """
    lines = [
        Line(
            source=SOURCE,
            number=number,
            text=record.text,
            raw=record.text,
            uptime_s=record.monotonic_us / 1e6,
            kernel=True,
        )
        for number, record in enumerate(sorted(records, key=lambda record: record.sequence), 1)
    ]
    return incidents(event for decoder in all_decoders().values() for event in decoder.decode(iter(lines)))
