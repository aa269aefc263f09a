"""The restore point of the ports: their target speeds from before nodeprep first wrote them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Dict, Mapping

from . import durable
from .link_pin_unit import Pin

PATH = "/var/lib/nodeprep/restore/pcie_link.json"
SCHEMA = "nodeprep.restore.pcie_link/1"


@dataclass(frozen=True)
class Entry:
    """One port: which it is, and the generation it was told to train to at most."""

    pin: Pin
    target: int


def load(root: str) -> Dict[str, Entry]:
    """Entries by address of the port; empty when nodeprep has changed nothing.

    Raises:
        OSError: The file may not be read.
        ValueError: It is damaged.
    """
    text = durable.content(root, PATH)
    if text is None:
        return {}
    try:
        document = json.loads(text)
        if document["schema"] != SCHEMA:
            raise ValueError(f"it is no {SCHEMA} document")
        return {port: _entry(port, found) for port, found in document["ports"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{PATH} is damaged: {error!r}") from error


def remember(root: str, targets: Mapping[Pin, int]) -> None:
    """Adds ports that are not in it yet; what is in it stays, however often the pin changes.

    A port whose identity is another now is another port: its old entry has no use any more.

    Raises:
        OSError: It cannot be written.
        ValueError: The file there is damaged.
    """
    entries = load(root)
    for pin, target in targets.items():
        known = entries.get(pin.port)
        if known is None or not same_port(known.pin, pin):
            entries[pin.port] = Entry(pin, target)
    if entries != load(root):
        document = {"schema": SCHEMA, "ports": {port: _as_dict(entry) for port, entry in entries.items()}}
        durable.put(root, PATH, json.dumps(document, indent=2, sort_keys=True) + "\n", mode=0o600)


def same_port(one: Pin, other: Pin) -> bool:
    """The same port: same model in the same place."""
    return (one.port, one.port_id, one.path) == (other.port, other.port_id, other.path)


def ceiling(entries: Mapping[str, Entry], pin: Pin, target: int) -> int:
    """The highest generation a port may be set to: what it had before nodeprep first lowered it.

    Args:
        entries: The restore point.
        pin: The port.
        target: Its target now.
    """
    entry = entries.get(pin.port)
    return max(entry.target, target) if entry is not None and same_port(entry.pin, pin) else target


def forget(root: str) -> None:
    """Removes the restore point."""
    durable.put(root, PATH, None)


def _as_dict(entry: Entry) -> Dict[str, Any]:
    pin = entry.pin
    return {"gpu": pin.gpu, "port_id": pin.port_id, "path": pin.path, "target_gen": entry.target}


def _entry(port: str, found: Mapping[str, Any]) -> Entry:
    target = found["target_gen"]
    if not isinstance(target, int) or not 1 <= target <= 7:
        raise ValueError(f"{port} has the target {target!r}")
    return Entry(Pin(port=port, gpu=found["gpu"], port_id=found["port_id"], path=found["path"]), target)
