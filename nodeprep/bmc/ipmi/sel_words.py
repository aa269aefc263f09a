"""A record of the system event log in words. Source: IPMI 2.0, 32 SEL Records, 42 Sensor Types."""

from __future__ import annotations

from typing import Any

from nodeprep.errors import NodeprepError

_STANDARD = 0x02
# Source: Linux, drivers/char/ipmi/ipmi_msghandler.c: one such record for each 11 bytes of the panic's text.
_PANIC = 0xF0
_SENSOR_SPECIFIC = 0x6F
_LAST_GENERIC = 0x0C


def record_words(record: bytes) -> str:
    """What the record says. Its three data bytes stay in hex: makers use them each in their own way."""
    kind = record[2]
    if kind == _PANIC:
        return f"Linux kernel panic: {record[5:16].split(bytes(1))[0].decode('ascii', 'replace')}"
    if kind != _STANDARD:
        return f"record of type {kind:#04x}: {record[3:].hex(' ')}"
    sensor_type, sensor, event_type = record[10], record[11], record[12] & 0x7F
    data = record[13:16]
    tables = _tables()
    sensor_words = tables.sensor_type_codes.get(sensor_type, f"sensor type {sensor_type:#04x}")
    event = _event(tables, sensor_type, event_type, data[0] & 0xF)
    direction = "deasserted" if record[12] & 0x80 else "asserted"
    return f"{sensor_words} {sensor:#04x}: {event} ({direction}, data {data.hex(' ')})"


def _event(tables: Any, sensor_type: int, event_type: int, offset: int) -> str:
    if event_type == _SENSOR_SPECIFIC:
        words = tables.sensor_type_offsets.get(sensor_type, {}).get(offset, {}).get("desc", "")
    elif event_type <= _LAST_GENERIC:
        words = tables.generic_type_offsets.get(event_type, {}).get(offset, {}).get("desc", "")
    else:
        words = ""
    return words or f"event type {event_type:#04x} offset {offset}"


def _tables() -> Any:
    """The standard's tables as pyghmi has them; nothing else of it is loaded in this process."""
    try:
        from pyghmi.ipmi.private import constants  # noqa: PLC0415
    except ImportError as error:
        raise NodeprepError(f"IPMI needs pyghmi: {error}", hint="pip install pyghmi") from error
    return constants
