"""Numbers and names for sentences."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nodeprep.diagnose import catalog
from nodeprep.diagnose.event import Event

_MINUTE_S = 60.0
_HOUR_S = 3600.0


def times(count: int) -> str:
    """Once, twice, 7 times."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def plural(count: int, word: str) -> str:
    """1 GPU, 3 GPUs."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def duration(seconds: float) -> str:
    """0.1 s, 45 s, 34 min, 6.5 h."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 2 * _MINUTE_S:
        return f"{seconds:.0f} s"
    if seconds < 2 * _HOUR_S:
        return f"{seconds / _MINUTE_S:.0f} min"
    return f"{seconds / _HOUR_S:.1f} h"


def listed(words: Iterable[object]) -> str:
    """a, b and c."""
    every = [str(word) for word in words]
    if len(every) < 2:
        return "".join(every)
    return f"{', '.join(every[:-1])} and {every[-1]}"


def arguments(words: Sequence[str]) -> str:
    """Kernel arguments as the subject of a sentence, with its verb."""
    return f"kernel argument {words[0]} is" if len(words) == 1 else f"kernel arguments {listed(words)} are"


_NAMES = {
    "dpc.containment": "containment of the port (DPC)",
    "dpc.recovered": "recovery of the port",
    "aer.recovery_failed": "a recovery that failed",
    "aer.recovered": "a reset of the link",
    "pciehp.link_down": "link down",
    "pciehp.card_not_present": "card not present",
    "pciehp.link_flap_ignored": "a link that went down and up again",
    "ghes.pcie": "an error that firmware reported",
    "sel.pcie_fatal": "a fatal bus error in the BMC's log",
    "gpu.power_state_stuck": "a sleep state that the device does not leave",
    "gpu.never_ready": "a device that is never ready",
    "sel.power_supply": "a failed power supply",
    "sel.power_input": "a power supply without input",
    "sel.power_redundancy": "power supplies without redundancy",
    "sel.temperature": "a temperature beyond its limit",
    "sel.thermal_trip": "a CPU or chipset that was too hot",
    "smi.power_brake": "the power brake",
    "smi.hw_thermal": "heat",
}


def called(event: Event) -> str:
    """An event by a name that people use."""
    if event.kind.startswith("aer.") and event.kind.endswith(".unknown"):
        return f"an error whose type is not told ({event.kind.split('.')[1].replace('_', ' ')})"
    entry = catalog.aer(event.kind.rsplit(".", 1)[-1]) if event.kind.startswith("aer.") else None
    if entry is not None:
        return f"{entry.names[-1]} ({event.kind.split('.')[1].replace('_', ' ')})"
    return _NAMES.get(event.kind, event.kind.replace("xid.", "Xid "))


def capital(words: str) -> str:
    """Words as the beginning of a sentence."""
    return words[:1].upper() + words[1:]


def of(device: str) -> str:
    """The GPU an incident speaks of: its address, or that none is named."""
    return device or "a GPU that the log does not name"


def codes(events: Iterable[Event]) -> tuple[int, ...]:
    """Xid codes of events, each once, by number."""
    return tuple(sorted({int(event.data["code"]) for event in events if event.kind.startswith("xid.")}))


def total(events: Sequence[Event]) -> int:
    """How often events happened, floods counted."""
    return sum(event.count for event in events)


def pids(events: Iterable[Event]) -> tuple[int, ...]:
    """Process ids, each once, in order."""
    return tuple(dict.fromkeys(int(event.data["pid"]) for event in events if event.data.get("pid")))


def processes(events: Iterable[Event]) -> tuple[str, ...]:
    """Process names, each once, in order."""
    return tuple(dict.fromkeys(str(event.data["process"]) for event in events if event.data.get("process")))
