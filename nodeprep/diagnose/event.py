"""What a line, or several, say happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nodeprep.diagnose.line import Line


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Event:
    """One thing that happened to one device; two that read alike are two.

    Attributes:
        kind: Dotted name, general to special: "xid.79", "aer.fatal.surprise_down",
            "gpu.fallen_off_bus", "cuda.out_of_memory", "config.iommu_on".
        lines: What says so, first line first; at least one.
        device: PCI address dddd:bb:dd.f, or "" when the event names none.
        data: What the decoder read (a code, a process, addresses), by name with the unit in it.
        count: How many times this was said.
        last: Where several of a flood are one event, the line of the last of them; when the others between
            it and the first line came is not known any more. None for what happened at one moment.
    """

    kind: str
    lines: tuple[Line, ...]
    device: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)
    count: int = 1
    last: Line | None = None
