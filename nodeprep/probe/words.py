"""What progress lines say."""

from __future__ import annotations

from typing import Any, Dict, Optional, Sequence

from .record import GpuRecord
from .telemetry import Telemetry


def of_load(busy: Sequence[GpuRecord], telemetry: Optional[Telemetry]) -> str:
    """One line for all GPUs, each of which has computed something."""
    words = ["%d GPUs" % len(busy)] if len(busy) > 1 else []
    words.append("iteration %s" % _span([record.iterations for record in busy], "%d"))
    words.append("%s TFLOP/s" % _span([record.tflops() or 0.0 for record in busy], "%.0f"))
    watts = _watts(busy, telemetry)
    if watts is not None:
        words.append("%.0f W" % watts)
    if any(record.mismatches for record in busy):
        words.append("%d mismatches" % sum(record.mismatches for record in busy))
    return ", ".join(words)


def _watts(busy: Sequence[GpuRecord], telemetry: Optional[Telemetry]) -> Optional[float]:
    """Draw of all of them together; None when one cannot be read."""
    if telemetry is None:
        return None
    draws = [telemetry.latest(record.gpu.address, "power_w") for record in busy]
    known = [draw for draw in draws if draw is not None]
    return sum(known) if len(known) == len(draws) else None


def at_the_end(document: Dict[str, Any], records: Sequence[GpuRecord]) -> str:
    """The last line of a run."""
    if document["error"]:
        return "%s: %s" % (document["state"], document["error"])
    return "%s: %d iterations on %d GPUs in %.0f s" % (
        document["state"],
        sum(record.iterations for record in records),
        len(records),
        document["duration_s"],
    )


def part_name(part: str, block: int, depth: int) -> str:
    """Where in the model a digest differed."""
    where = (
        "block %d" % block if block < depth else "the embedding" if part == "weights" else "the final norm"
    )
    return {"weights": "the weights of ", "output": "the outputs of ", "gradient": "the gradients of "}[
        part
    ] + where


def _span(values: Sequence[float], form: str) -> str:
    low, high = form % min(values), form % max(values)
    return low if low == high else "%s to %s" % (low, high)
