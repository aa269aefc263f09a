"""How values are written on the page: numbers, times, readings."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import Any

from nodeprep.model.reading import Reading
from nodeprep.model.result import Scalar

_ADDRESS = re.compile(r"^[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")

# Transfer rate of a lane to PCIe generation. Source: PCI Express Base Specification 6.0, 1.2.
_GENERATIONS = {2.5: 1, 5.0: 2, 8.0: 3, 16.0: 4, 32.0: 5, 64.0: 6}


def number(value: Scalar | None) -> str:
    """A measured value or limit: about four significant digits, "" for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    return _float(value)


def _float(value: float) -> str:
    if not math.isfinite(value):
        return str(value)
    size = abs(value)
    if size != 0 and size < 0.001:
        return f"{value:.3g}"
    for least, digits in ((1000, 0), (100, 1), (10, 2)):
        if size >= least:
            text = f"{value:,.{digits}f}"
            break
    else:
        text = f"{value:.3f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def percent(part: float, whole: float) -> str:
    """A share without digits it does not have; "" when there is no whole."""
    return f"{100 * part / whole:.1f} %" if whole > 0 else ""


def reading(value: Reading[Any], *, unit: str = "") -> str:
    """A reading in a table cell: the value, or in words why there is none."""
    if value.value is None:
        state = "not supported" if value.state == "not_supported" else "unreadable"
        return f"{state}: {value.detail}" if value.detail else state
    return f"{number(value.value)} {unit}".rstrip() if isinstance(value.value, Scalar) else str(value.value)


def moment(text: str) -> str:
    """An ISO 8601 time as people read it; anything else unchanged."""
    parsed = _parse(text)
    if parsed is None:
        return text
    if parsed.tzinfo is None:
        return f"{parsed:%Y-%m-%d %H:%M:%S}"
    return f"{parsed.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def between(start: str, end: str) -> str:
    """Time from one ISO 8601 time to another; "" when either is none."""
    first, last = _parse(start), _parse(end)
    if first is None or last is None or (first.tzinfo is None) != (last.tzinfo is None):
        return ""
    return duration((last - first).total_seconds())


def duration(seconds: float) -> str:
    """Seconds as "42.0 s", "3 min 05 s" or "7 h 02 min"."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def gib(count: int | None) -> str:
    """Bytes as GiB."""
    return "" if count is None else f"{count / 2**30:,.0f} GiB"


def short_address(address: str) -> str:
    """A PCI address without its domain when that is 0000, as people say it."""
    return address[5:] if _ADDRESS.match(address) and address.startswith("0000:") else address


def is_address(text: str) -> bool:
    """Whether a subject is a PCI address."""
    return bool(_ADDRESS.match(text))


def link(speed_gts: Reading[float], width_lanes: Reading[int]) -> str:
    """A link's state as "Gen4 x16", or what could not be read of it."""
    if speed_gts.value is None:
        return f"speed {reading(speed_gts)}"
    if width_lanes.value is None:
        return f"width {reading(width_lanes)}"
    generation = _GENERATIONS.get(float(speed_gts.value))
    speed = f"Gen{generation}" if generation else f"{number(speed_gts.value)} GT/s"
    return f"{speed} x{width_lanes.value}"


def _parse(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None
