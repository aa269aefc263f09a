"""The PCI tree of a host, as far as logs and listings show it."""

from __future__ import annotations

from collections.abc import Iterable

from nodeprep.diagnose.device import bus, domain, same_slot
from nodeprep.diagnose.event import Event


class Topology:
    """Which ports lie above a device.

    Bridges tell the buses below them ("PCI bridge to [bus 02-05]", lspci's "secondary="). Without any,
    two more things tell: a bandwidth notice names a port on the path, and a root port that passes on an
    error message names who sent it.
    """

    def __init__(self, events: Iterable[Event]) -> None:
        self._buses: dict[str, tuple[int, int]] = {}
        self._told: dict[str, set[str]] = {}
        for event in events:
            if event.kind == "pci.bridge":
                self._buses[event.device] = (int(event.data["first_bus"]), int(event.data["last_bus"]))
            elif event.kind == "link.bandwidth_limited":
                self._told.setdefault(event.device, set()).add(str(event.data["limiter"]))
            elif event.kind.startswith("aer.") and event.data.get("reporter"):
                self._told.setdefault(event.device, set()).add(str(event.data["reporter"]))

    def above(self, device: str) -> tuple[str, ...]:
        """Ports above a device, the nearest first; empty when nothing is known."""
        if not device:
            return ()
        number = bus(device)
        ports = [
            (last - first, port)
            for port, (first, last) in self._buses.items()
            if domain(port) == domain(device) and first <= number <= last and not same_slot(port, device)
        ]
        told = [port for port in sorted(self._told.get(device, ())) if port != device]
        nearest = [port for _, port in sorted(ports)]
        return (*nearest, *(port for port in told if port not in nearest))

    def on_path(self, port: str, device: str) -> bool | None:
        """Whether a port lies above a device, or is the device; None when nothing is known of either."""
        if same_slot(port, device):
            return True
        above = self.above(device)
        if port in above:
            return True
        if device in self._below(port):
            return True
        return False if above and self._knows(device) else None

    def shared(self, devices: Iterable[str]) -> str:
        """The nearest port above all of the devices; "" when there is none or it is not known."""
        paths = [self.above(device) for device in devices]
        if not paths or not all(paths):
            return ""
        return next((port for port in paths[0] if all(port in path for path in paths[1:])), "")

    def _knows(self, device: str) -> bool:
        number = bus(device)
        return any(
            domain(port) == domain(device) and first <= number <= last
            for port, (first, last) in self._buses.items()
        )

    def _below(self, port: str) -> set[str]:
        return {device for device, ports in self._told.items() if port in ports}
