"""All events of a diagnosis, and what rules have made of them so far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from nodeprep.diagnose.clock import Clock
from nodeprep.diagnose.device import same_slot
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.topology import Topology
from nodeprep.model.diagnosis import DiagnosisInput


class Evidence:
    """Events in order, who has been explained, and the machine around them.

    Attributes:
        events: All events, in order of time where it is known and of their lines where it is not.
        clock: Tells how far events are apart.
        inputs: What was read.
        hosts: Names of all hosts, "" among them when nothing names the only one.
    """

    def __init__(self, events: Iterable[Event], inputs: Sequence[DiagnosisInput] = ()) -> None:
        given = tuple(events)
        self.inputs = tuple(inputs)
        self.clock = Clock(given)
        self.events = self.clock.ordered(given)
        self._named = {host for host in map(_named_host, given) if host}
        self._order = {id(event): number for number, event in enumerate(self.events)}
        self._by_host: dict[str, list[Event]] = {}
        # Rules ask for a few kinds, hundreds of times, of logs with a thousand events of one kind.
        self._places: dict[str | None, dict[str, list[int]]] = {None: {}}
        for number, event in enumerate(self.events):
            host = self.host(event)
            self._by_host.setdefault(host, []).append(event)
            for whose in (None, host):
                self._places.setdefault(whose, {}).setdefault(event.kind, []).append(number)
        self.hosts = tuple(sorted(self._by_host))
        self._topologies: dict[str, Topology] = {}
        self._explained: set[int] = set()

    def host(self, event: Event) -> str:
        """The host of an event; what names none belongs to the only one that is named."""
        named = _named_host(event)
        if named:
            return named
        return next(iter(self._named)) if len(self._named) == 1 else ""

    def topology(self, host: str) -> Topology:
        """What is known of a host's PCI tree."""
        if host not in self._topologies:
            self._topologies[host] = Topology(self._by_host.get(host, ()))
        return self._topologies[host]

    def seen(self, *kinds: str, host: str | None = None, device: str | None = None) -> list[Event]:
        """Events of kinds ("xid.79") or families ("aer."), explained or not.

        Args:
            host: Only of this host.
            device: Only of this device or another function of it.
        """
        places = self._places.get(host, {})
        numbers = sorted(n for kind in places if _is_of(kind, kinds) for n in places[kind])
        found = [self.events[number] for number in numbers]
        return [event for event in found if device is None or same_slot(event.device, device)]

    def position(self, event: Event) -> int:
        """Where an event stands among all of them."""
        return self._order[id(event)]

    def open(self, *kinds: str, host: str | None = None, device: str | None = None) -> list[Event]:
        """As `seen`, without events that a rule has explained."""
        found = self.seen(*kinds, host=host, device=device)
        return [event for event in found if id(event) not in self._explained]

    def explain(self, events: Iterable[Event]) -> None:
        """Takes events off the list of what still needs a reason."""
        self._explained.update(id(event) for event in events)

    def by_device(self, events: Sequence[Event]) -> Iterator[tuple[str, str, list[Event]]]:
        """Host, device and events of each device in turn."""
        yield from self._grouped(events, lambda event: event.device)

    def _grouped(
        self, events: Sequence[Event], key: Callable[[Event], str]
    ) -> Iterator[tuple[str, str, list[Event]]]:
        groups: dict[tuple[str, str], list[Event]] = {}
        for event in events:
            groups.setdefault((self.host(event), key(event)), []).append(event)
        for (host, name), found in groups.items():
            yield host, name, found

    def device_of_uuid(self, uuid: str) -> str:
        """The PCI address of a GPU that is only named by its UUID; "" when nothing tells."""
        found = (e for e in self.events if e.data.get("uuid") == uuid and e.device)
        return next((event.device for event in found), "")

    def driver_version(self, host: str) -> str:
        """The driver's version that a host loaded last; "" when nothing tells."""
        loaded = self.seen("driver.loaded", host=host)
        return str(loaded[-1].data["version"]) if loaded else ""

    def gpus(self, host: str) -> tuple[str, ...]:
        """Addresses on a host that something shows to be NVIDIA GPUs."""
        families = ("xid.", "gpu.", "pci.device", "pci.bound", "smi.", "nvml.gpu_lost", "nvml.no_handle")
        found = {event.device for event in self.seen(*families, host=host) if event.device}
        return tuple(sorted(found))


def _is_of(kind: str, wanted: tuple[str, ...]) -> bool:
    return any(kind == each or (each.endswith(".") and kind.startswith(each)) for each in wanted)


def _named_host(event: Event) -> str:
    return str(event.data.get("node") or event.lines[0].host)
