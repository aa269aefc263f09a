"""The parts of the result that the parent puts together from records and samples."""

from __future__ import annotations

from typing import Any, Dict, Optional, Sequence, Tuple

from ..node import reading
from .options import Options
from .phases import View
from .record import GpuRecord
from .telemetry import Telemetry

_NOTHING = "there was no telemetry"


def of_gpu(
    record: GpuRecord, telemetry: Optional[Telemetry], options: Options, started: float
) -> Dict[str, Any]:
    """One GPU's part of nodeprep.probe/1."""
    address = record.gpu.address
    # Of a run that ended before it sampled: every column then says so.
    sampled = telemetry or Telemetry(options.root, [address], options.budget.telemetry_s, started)
    summary = sampled.summary(address, record.windows("compute"), record.gpu.enforced_limit_w)
    document = record.document(summary, _view(record, telemetry))
    if telemetry is None:
        nothing = reading.error(_NOTHING)
        return {**document, "xid_events": nothing, "aer_path": nothing}
    listening = telemetry.listening(address)
    # What was heard counts, whether or not somebody still listens.
    heard = reading.ok(record.events) if record.events or listening["state"] == "ok" else listening
    return {**document, "xid_events": heard, "aer_path": telemetry.aer_path(address)}


def _view(record: GpuRecord, telemetry: Optional[Telemetry]) -> View:
    """What the parts of a record may see of its samples."""
    limit, address = record.gpu.enforced_limit_w, record.gpu.address
    cool_down = next(iter(record.windows("cool-down")), None)
    if telemetry is None:
        return View(limit, lambda *_: [], _NOTHING, cool_down)
    return View(limit, lambda *where: telemetry.values(address, *where), telemetry.trouble, cool_down)


def outcome(records: Sequence[GpuRecord], problems: Sequence[str], hint: str) -> Tuple[str, str, str]:
    """State, error and hint of a run that nobody stopped."""
    failed = [record for record in records if record.state == "failed"]
    told = list(problems)
    if failed:
        each = "; ".join("%s: %s" % (record.gpu.address, record.error) for record in failed)
        told.insert(0, "%d of %d GPUs failed: %s" % (len(failed), len(records), each))
    if told:
        return "failed", "; ".join(told), hint or next((r.hint for r in failed if r.hint), "")
    return "completed", "", ""
