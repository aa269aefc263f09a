"""What a verdict rests on: error counters per hop, kernel log lines, plan changes, files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from nodeprep.diagnose import catalog
from nodeprep.diagnose.kernel_records import diagnose_records
from nodeprep.model.facts import Aer, KernelEvent, NodeFacts, PciDevice
from nodeprep.model.plan import Change, Plan
from nodeprep.model.reading import Reading
from nodeprep.model.run import NodeView
from nodeprep.reports._gpus import by_hop
from nodeprep.reports._text import link, reading, short_address

MAX_EVENTS = 200
"""Kernel log lines shown a node; the rest stand in the facts document."""

_COUNTERS = (("correctable", "corrected"), ("non_fatal", "non-fatal"), ("fatal", "fatal"))
_TOTALS = (
    ("rootport_correctable", "below root port, corrected"),
    ("rootport_non_fatal", "below root port, non-fatal"),
    ("rootport_fatal", "below root port, fatal"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HopRow:
    """One hop of the way to a GPU: its link, and what its AER counters did during the run."""

    address: str
    role: str
    link: str
    aspm: str
    changes: tuple[str, ...]
    unreadable: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hops:
    """All hops of a node; `note` says why there is no comparison."""

    eventful: tuple[HopRow, ...]
    quiet: tuple[HopRow, ...]
    ownership: tuple[str, ...]
    """Who owns AER: a counter that nobody owns reads zero for ever."""
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """One kernel log line."""

    after_s: str
    kind: str
    device: str
    xid: str
    text: str
    grave: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentRow:
    """What kernel log lines come to."""

    severity: str
    layer: str
    device: str
    summary: str
    why: str
    todo: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """Kernel log lines of the window; `note` says what could not be read or was left out."""

    incidents: tuple[IncidentRow, ...]
    rows: tuple[EventRow, ...]
    notes: tuple[str, ...]
    read: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLink:
    """A file of the run folder, relative to the page."""

    label: str
    href: str


def hops(node: NodeView) -> Hops | None:
    """Counters before against after; None without facts."""
    facts = node.facts_after or node.facts_before
    if facts is None:
        return None
    devices = facts.pci.devices
    if devices.value is None:
        return Hops(eventful=(), quiet=(), ownership=ownership(facts), note=f"PCI tree {reading(devices)}")
    note = ""
    if node.facts_before is None or node.facts_after is None:
        note = "looked at once only: counters could not be compared"
    below = by_hop(facts)
    eventful: list[HopRow] = []
    quiet: list[HopRow] = []
    for device in devices.value:
        before = node.facts_before.pci_device(device.address) if node.facts_before else None
        row = _hop(device, before, below, compare=not note)
        (eventful if row.changes or row.unreadable else quiet).append(row)
    return Hops(eventful=tuple(eventful), quiet=tuple(quiet), ownership=ownership(facts), note=note)


def ownership(facts: NodeFacts) -> tuple[str, ...]:
    """Who owns AER, one line a fact, root bridges with the same answer together."""
    owner = facts.aer_ownership
    lines: dict[str, list[str]] = {}
    if owner.root_bridges.value is None:
        lines[f"root bridges {reading(owner.root_bridges)}"] = []
    for bridge in owner.root_bridges.value or ():
        if bridge.controls.value is None:
            answer = f"control {reading(bridge.controls)}"
        else:
            answer = "granted by _OSC" if "AER" in bridge.controls.value else "not granted by _OSC"
        lines.setdefault(answer, []).append(bridge.bus)
    told = [f"{answer} ({', '.join(buses)})" if buses else answer for answer, buses in lines.items()]
    for name, value in (
        ("pci=noaer", owner.noaer),
        ("pcie_ports=native", owner.ports_native),
        ("firmware-first", owner.firmware_first),
    ):
        told.append(f"{name}: {reading(value)}")
    return tuple(told)


def events(node: NodeView) -> Events | None:
    """Kernel log lines since the look before the load; None without a second look."""
    facts = node.facts_after
    if facts is None:
        return None
    log, notes = facts.kernel_log, []
    if log.lost_records.value is None:
        notes.append(f"lost records {reading(log.lost_records)}")
    elif log.lost_records.value:
        notes.append(f"{log.lost_records.value} records were overwritten before they could be read")
    if log.events.value is None:
        return Events(incidents=(), rows=(), notes=(f"kernel log {reading(log.events)}", *notes), read=False)
    start = log.since.monotonic_us.value if log.since else None
    shown = log.events.value[:MAX_EVENTS]
    if len(shown) < len(log.events.value):
        notes.append(f"{len(log.events.value) - len(shown)} more lines in the facts after the load")
    rows = tuple(
        EventRow(
            after_s=(
                f"+{(event.monotonic_us - start) / 1e6:.3f} s"
                if start is not None
                else f"{event.monotonic_us / 1e6:.3f} s since boot"
            ),
            kind=event.kind,
            device=short_address(event.device),
            xid="" if event.xid is None else str(event.xid),
            text=event.text,
            grave=event.kind in ("xid", "mce", "dpc") or event.priority <= 3,
        )
        for event in shown
    )
    return Events(incidents=_incidents(log.events.value), rows=rows, notes=tuple(notes), read=True)


def _incidents(records: tuple[KernelEvent, ...]) -> tuple[IncidentRow, ...]:
    return tuple(
        IncidentRow(
            severity=incident.severity,
            layer=incident.layer,
            device=short_address(incident.device),
            summary=incident.summary,
            why=incident.why,
            todo=catalog.step(incident.action),
        )
        for incident in diagnose_records(records)
    )


def changes(plan: Plan | None) -> tuple[Change, ...]:
    """Planned changes, those that are not simply "ok" first."""
    order = ("refused", "unknown", "unsupported", "change", "ok")
    return tuple(
        sorted(
            plan.changes if plan else (),
            key=lambda change: (order.index(change.status), change.knob, change.subject),
        )
    )


def files(node: NodeView, *, verb: str) -> tuple[FileLink, ...]:
    """Where the documents of this node lie in the run folder, beside the page.

    Only `certify` looks twice; every other command keeps its one look as "now".
    """
    first = "before" if verb == "certify" else "now"
    probed = node.probe is not None and node.record.phases.get("probe") == "done"
    host = quote(node.record.host, safe="")
    known: Mapping[str, tuple[str, object]] = {
        f"certificates/{host}.json": ("certificate (signed)", node.certificate),
        f"facts/{host}.{first}.json": (f"facts {first}", node.facts_before),
        f"facts/{host}.after.json": ("facts after", node.facts_after),
        f"plan/{host}.json": ("plan", node.plan),
        f"probe/{host}/result.json": ("probe result", node.probe),
        f"evidence/{host}.tar.gz": ("evidence bundle", probed),
    }
    return tuple(FileLink(label=label, href=href) for href, (label, there) in known.items() if there)


def _hop(
    device: PciDevice, before: PciDevice | None, below: Mapping[str, tuple[str, ...]], *, compare: bool
) -> HopRow:
    changed: list[str] = []
    unreadable: dict[str, list[str]] = {}
    if compare and before is None:
        unreadable["was not there at the first look"] = []
    for field, label in _COUNTERS + _TOTALS:
        now: Reading[Mapping[str, int]] | Reading[int] = getattr(device.aer, field)
        if now.state == "error":
            unreadable.setdefault(now.detail, []).append(label)
        elif compare and before is not None:
            changed.extend(_changes(label, before.aer, now, field))
    return HopRow(
        address=short_address(device.address),
        role=_role(device, below.get(device.address, ())),
        link=link(device.link.sta_speed_gts, device.link.sta_width_lanes),
        aspm=_aspm(device),
        changes=tuple(changed),
        unreadable=tuple(
            f"{', '.join(labels)} unreadable: {why}" if labels else why for why, labels in unreadable.items()
        ),
    )


def _changes(
    label: str, before: Aer, now: Reading[Mapping[str, int]] | Reading[int], field: str
) -> list[str]:
    old = _named(getattr(before, field))
    told = []
    for name, count in _named(now).items():
        was = old.get(name)
        what = f"{label} {name}".rstrip()
        if was is None:
            told.extend([f"{what}: {count} (no count before)"] if count else [])
        elif count < was:
            told.append(f"{what}: fell from {was} to {count}: the counter was reset")
        elif count > was:
            told.append(f"{what} +{count - was}")
    return told


def _named(counter: Reading[Mapping[str, int]] | Reading[int]) -> Mapping[str, int]:
    if counter.value is None:
        return {}
    return {"": counter.value} if isinstance(counter.value, int) else counter.value


def _role(device: PciDevice, gpus: tuple[str, ...]) -> str:
    if device.address in gpus:
        return "GPU"
    kind = str(device.port_type.value or "bridge").replace("_", " ")
    above = ", ".join(short_address(gpu) for gpu in gpus)
    return f"{kind} above {above}" if above else kind


def _aspm(device: PciDevice) -> str:
    enabled = device.link.aspm_enabled
    if enabled.value is None:
        return reading(enabled)
    return "+".join(enabled.value) or "off"
