"""AER counters of the facts document: what the kernel counted on the way to each GPU, without times.

Events `aer_counter.CLASS.TYPE` {name, port, depth, below} with CLASS corrected, nonfatal or fatal, and the
counter as their count; `aer_counter.CLASS.received` {below} for the messages that a root port took in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from nodeprep.diagnose import catalog
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.reader import Item, Remark
from nodeprep.diagnose.readers._json_document import Document
from nodeprep.diagnose.readers._smi import pci_address

_CLASSES = {"correctable": "corrected", "non_fatal": "nonfatal", "fatal": "fatal"}


def counters(document: Document) -> Iterator[Item]:
    """Counters that are not zero, and what is to be said of those that cannot be read or mean nothing."""
    listed = document.get("pci", "devices")
    if not isinstance(listed, dict) or listed.get("state") != "ok":
        yield Remark(gap="AER counters could not be read: the PCI devices are unknown")
        return
    paths = _paths(document)
    yield from _ownership(document, paths)
    for device in listed.get("value") or ():
        if isinstance(device, dict):
            yield from _device(document, pci_address(str(device.get("address"))), device.get("aer"), paths)


def _paths(document: Document) -> list[list[str]]:
    """The hops of each GPU, root port first."""
    found = document.get("pci", "gpu_paths")
    paths = (found.get("value") if isinstance(found, dict) else None) or ()
    return [
        [pci_address(str(hop)) for hop in path.get("hops") or ()] for path in paths if isinstance(path, dict)
    ]


def _device(document: Document, address: str, aer: Any, paths: list[list[str]]) -> Iterator[Item]:
    ways = [hops[: hops.index(address) + 1] for hops in paths if address in hops]
    port, depth = (ways[0][-2], len(ways[0])) if ways and len(ways[0]) > 1 else ("", 1)
    below = tuple({hop: None for hops in paths if address in hops for hop in hops[hops.index(address) :]})
    for field, name in _CLASSES.items():
        reading = _reading(aer, field)
        if reading["state"] == "error":
            yield Remark(gap=f"AER counters ({name}) of {address} could not be read: {reading.get('detail')}")
        elif reading["state"] == "not_supported":
            yield Remark(note=f"no AER counters of {address}: {reading.get('detail')}")
        for error, count in _counted(reading.get("value")):
            entry = catalog.aer(error)
            line = document.line(f"PCI {address} AER counter {name} {error}: {count}", address)
            yield Event(
                kind=f"aer_counter.{name}.{entry.id if entry else 'unknown'}",
                lines=(line,),
                device=address,
                data={"name": error, "port": port, "depth": depth, "below": below},
                count=count,
            )
        received = _reading(aer, f"rootport_{field}")
        if received["state"] == "error":
            yield Remark(
                gap=f"error messages ({name}) at {address} could not be read: {received.get('detail')}"
            )
        for _, count in _counted({"": received.get("value")}):
            line = document.line(f"PCI {address} root port received error messages, {name}: {count}", address)
            data = {"below": below}
            yield Event(
                kind=f"aer_counter.{name}.received", lines=(line,), device=address, data=data, count=count
            )


def _reading(aer: Any, field: str) -> dict[str, Any]:
    found = aer.get(field) if isinstance(aer, dict) else None
    if not isinstance(found, dict):
        return {"state": "error", "detail": "the document does not have them"}
    return found if found.get("state") in ("ok", "not_supported") else {**found, "state": "error"}


def _counted(values: Any) -> Iterator[tuple[str, int]]:
    for error, count in values.items() if isinstance(values, dict) else ():
        if isinstance(count, int) and not isinstance(count, bool) and count > 0:
            yield error, count


def _ownership(document: Document, paths: list[list[str]]) -> Iterator[Remark]:
    """Why counters that read zero prove nothing."""

    def says(name: str) -> Any:
        return _reading(document.get("aer_ownership"), name).get("value")

    if any(len(hops) == 1 for hops in paths):
        yield Remark(note="the port above a GPU is out of sight: its AER errors are unknown, not zero")
    if says("firmware_first"):
        yield Remark(note="firmware handles PCIe errors first: AER counters at zero prove nothing")
    elif says("noaer"):
        yield Remark(note="pci=noaer turned AER off: AER counters at zero prove nothing")
    elif not says("ports_native"):
        bridges = says("root_bridges") or ()
        owned = {bridge.get("bus") for bridge in bridges if "AER" in _controls(bridge)}
        for bus in dict.fromkeys(hops[0].rsplit(":", 1)[0] for hops in paths if len(hops) > 1):
            if bus not in owned:
                yield Remark(
                    note=f"nothing says that the kernel was given AER on bus {bus}: its AER counters at zero "
                    "prove nothing"
                )


def _controls(bridge: Any) -> Any:
    return _reading(bridge, "controls").get("value") or ()
