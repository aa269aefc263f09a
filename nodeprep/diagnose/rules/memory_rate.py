"""A GPU corrects memory errors at a rate that no healthy one has, before any Xid tells of it."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import duration, times, total

# Healthy HBM corrects a few errors a day; its own scrubbing and remapping see to it that it stays so.
# Source: field reports of GPUs that had to be replaced, all far beyond this between two readings.
_RISE = 1000
_GRAVE_RISE = 100_000
# Where there is one reading only, this many say the same.
_STANDING = 1_000_000


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a GPU."""
    readings = [event for event in evidence.open("smi.gpu") if "ecc_corrected" in event.data]
    for host, device, events in evidence.by_device(readings):
        counts = [int(event.data["ecc_corrected"]) for event in events]
        rise = max(counts) - counts[0] if len(counts) > 1 else 0
        if rise < _RISE and max(counts) < _STANDING:
            continue
        hangs = evidence.open("nvml.hang", host=host, device=device)
        apart = evidence.clock.span(events)
        grave = rise >= _GRAVE_RISE or bool(hangs)
        yield Finding(
            layer="hardware",
            severity="error" if grave else "warning",
            device=device,
            summary=f"{device} corrects memory errors by the "
            f"{'million' if rise >= _STANDING else 'thousand'}",
            why=_why(counts, rise, apart, hangs),
            events=(*events, *hangs),
            action="run_diagnostics",
            then=("drain", "reset_gpu", "check_remapped_rows", "rma_if_it_returns"),
            root_event="smi.gpu",
            xids=(),
            count=1,
        )


def _why(counts: list[int], rise: int, apart: float | None, hangs: list[Event]) -> str:
    within = f" within {duration(apart)}" if apart else ""
    parts = [f"Corrected DRAM errors stand at {max(counts)}" + (f", {rise} more{within}." if rise else ".")]
    if hangs:
        parts.append(f"Calls to NVML about this GPU did not return, {times(total(hangs))}.")
    parts.append("No other GPU shows it, and no Xid is printed for corrected errors.")
    return " ".join(parts)


RULE = Rule(id="memory_rate", rank=26, explain=explain)
