"""PCIe error counters by hop and type, for people; what nobody counts is said, not shown as zero."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.checks._aer_senders import senders
from nodeprep.model.facts import NodeFacts, PciDevice

_COUNTERS = (("correctable", "corrected"), ("non_fatal", "non-fatal"), ("fatal", "fatal"))


def rows(facts: NodeFacts) -> Iterator[tuple[str, str, str, str]]:
    """Hop, its place on the way, error with severity, count: what is not zero, and what is unreadable."""
    places: dict[str, str] = {}
    for path in facts.pci.gpu_paths.value or ():
        for number, address in enumerate(path.hops, 1):
            place = f"hop {number} of {len(path.hops)} to GPU {path.gpu}"
            places[address] = f"{places[address]}, {path.gpu}" if address in places else place
    for device in facts.pci.devices.value or ():
        for error, count in _counts(device, facts):
            yield device.address, places.get(device.address, ""), error, count


def _counts(device: PciDevice, facts: NodeFacts) -> Iterator[tuple[str, str]]:
    for field, words in _COUNTERS:
        counters = getattr(device.aer, field)
        if counters.state == "error":
            yield f"{words} errors", f"unreadable: {counters.detail}"
        for name, count in (counters.value or {}).items():
            if count:
                yield f"{name} ({words})", str(count)
    for field, words in _COUNTERS:
        # Root ports only, their own errors too. A fatal error of an endpoint shows here and nowhere else.
        total = getattr(device.aer, f"rootport_{field}")
        if total.state == "error":
            yield f"{words} messages received", f"unreadable: {total.detail}"
        elif total.value:
            who = senders(facts, device.address, field, {})
            yield f"{words} messages received, {who}", str(total.value)


def uncounted(facts: NodeFacts) -> str:
    """Why zeros say nothing on this node; "" when the kernel counts on every root bridge."""
    owner = facts.aer_ownership
    if owner.firmware_first.value:
        return "firmware handles PCIe errors first: they are in the BMC's event log"
    if owner.noaer.value:
        return "pci=noaer turned AER off"
    if owner.ports_native.value:
        return ""
    if owner.root_bridges.value is None:
        return f"who owns AER is unknown: {owner.root_bridges.detail}"
    bridges = owner.root_bridges.value
    without = [bridge.bus for bridge in bridges if "AER" not in (bridge.controls.value or ())]
    return f"the kernel was not given AER on root bridges {', '.join(without)}" if without else ""
