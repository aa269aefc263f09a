"""PCI Express errors that cost no GPU: how many, of what kind, and on whose link."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil

from nodeprep.diagnose import catalog
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import called, duration, listed, plural, times, total
from nodeprep.model.diagnosis import Action, Layer, Severity

_LINK = (
    "dpc.containment",
    "dpc.recovered",
    "pciehp.link_down",
    "pciehp.card_not_present",
    "aer.recovery_failed",
    "aer.recovered",
    "pciehp.link_flap_ignored",
    "aer.suppressed",
)
_RECOVERIES = ("aer.recovery_failed", "aer.recovered", "dpc.recovered")
_OF_ITS_OWN = ("dpc.containment", "pciehp.link_down", "pciehp.card_not_present", "aer.recovery_failed")
# Recovery resets the link, and waits a second or two for the devices below it.
_RECOVERY_WINDOW_S = 5.0
# Source: the monitor's default, more than 100 corrected errors within 5 min mean a degraded link.
_MANY = 100
_MANY_WINDOW_S = 300.0
# Below that, a handful is what links of a healthy machine make in days.
_SOME = 10
_READINGS = {
    "signal": "the electrical link is weak: seat, riser, cable, retimer or equalisation",
    "lost": "the link itself went away: power, reset or mechanics",
    "silent": "the other end stopped answering: it hangs, sleeps or is gone",
    "config": "software or settings (peer access, ACS, VFIO), mostly no bad card",
    "data": "packets that break the protocol: device, switch or firmware",
    "internal": "the device reports an error inside itself",
}


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a device for uncorrected errors, one a device for corrected ones."""
    for host in evidence.hosts:
        grave = evidence.open("aer.fatal.", "aer.nonfatal.", "aer.firmware_first.", host=host)
        links = evidence.open(*_LINK, host=host)
        owners = {id(event): _owner(evidence, event, [*grave, *links]) for event in links}
        for device in dict.fromkeys([*(_card(event) for event in grave), *owners.values()]):
            mine = [event for event in grave if _card(event) == device]
            beside = [event for event in links if owners[id(event)] == device]
            if not mine and not any(event.kind in _OF_ITS_OWN for event in beside):
                continue
            corrected = evidence.open("aer.corrected.", host=host, device=device)
            yield _uncorrected(evidence, host, device, errors=mine, links=beside, corrected=corrected)
        groups = {
            device: events
            for _, device, events in evidence.by_device(evidence.open("aer.corrected.", host=host))
        }
        for device, ports in _links(evidence, host, groups).items():
            suppressed = evidence.open("aer.suppressed", host=host)
            told = {port: groups[port] for port in ports}
            yield _corrected(evidence, device, groups[device], suppressed, other_end=told)


def _card(event: Event) -> str:
    """A card's audio function reports what its first one does; functions of ports are ports of their own."""
    if event.device and not any("pcieport" in line.text for line in event.lines[-1:]):
        return f"{event.device[:-1]}0"
    return event.device


def _links(evidence: Evidence, host: str, groups: dict[str, list[Event]]) -> dict[str, list[str]]:
    """Devices with errors, and with each the port at the other end of its link if that has some as well."""
    topology = evidence.topology(host)
    below: dict[str, str] = {}
    for device, events in groups.items():
        nearest = next(iter(topology.above(device)), "")
        if nearest in groups and _one_link(evidence, events, groups[nearest]):
            below.setdefault(nearest, device)
    ports = {device: [port for port, end in below.items() if end == device] for device in groups}
    # A chain of switches keeps a finding a link: only what is no lower end of another one joins.
    return {device: found for device, found in ports.items() if device not in below}


def _one_link(evidence: Evidence, lower: list[Event], upper: list[Event]) -> bool:
    """Whether a port replays what its device could not receive: both speak within seconds."""
    return any(
        abs(evidence.clock.seconds(one, other) or 0.0) <= _RECOVERY_WINDOW_S
        for one in lower[:_SOME]
        for other in upper[:_SOME]
    )


def _owner(evidence: Evidence, event: Event, others: list[Event]) -> str:
    """The device whose error an attempt at recovery belongs to: ports and endpoints tell of one."""
    if event.kind in _RECOVERIES:
        near = (
            other
            for other in others
            if other.kind not in _RECOVERIES
            and abs(evidence.clock.seconds(other, event) or 0.0) <= _RECOVERY_WINDOW_S
        )
        return next((other.device for other in near), event.device)
    return event.device


def _uncorrected(
    evidence: Evidence,
    host: str,
    device: str,
    *,
    errors: list[Event],
    links: list[Event],
    corrected: list[Event],
) -> Finding:
    every = sorted((*errors, *links, *corrected), key=evidence.position)
    reading = _reading(errors)
    failed = [event for event in links if event.kind == "aer.recovery_failed"]
    # A reset of the link is only the attempt: what failed after it was not recovered.
    recovered = not failed and any(
        event.kind in ("aer.recovered", "dpc.recovered")
        for event in (*links, *evidence.seen("aer.recovered", host=host, device=device))
    )
    fatal = any(
        event.kind.startswith("aer.fatal") or event.kind in ("dpc.containment", "pciehp.link_down")
        for event in every
    )
    severity: Severity = "critical" if fatal and not recovered else "error"
    layer: Layer = "firmware_pcie"
    action: Action = "drain"
    then: tuple[str, ...] = ("read_sel", "inspect_hardware", "replace_cable_or_riser")
    if reading == "config" and not fatal:
        layer, severity, action, then = "config", "warning", "fix_config", ("check_acs_and_iommu",)
    kinds = listed(dict.fromkeys(called(event) for event in (*errors, *links)))
    # What a port does about one error (contains, resets, unplugs) is one.
    count = total(errors) or max(
        (total([event for event in links if event.kind == kind]) for kind in _OF_ITS_OWN), default=1
    )
    return Finding(
        layer=layer,
        severity=severity,
        device=device,
        summary=f"uncorrected PCIe error at {device or 'a port'}: {kinds}",
        why=(
            f"{kinds}, {times(count)}."
            + (f" It means that {_READINGS[reading]}." if reading else "")
            + (" The kernel recovered the link." if recovered else "")
            + " No GPU was lost with it in this log."
        ),
        events=tuple(every),
        action=action,
        then=then,
        root_event=(errors or links)[0].kind,
        count=count,
    )


def _corrected(
    evidence: Evidence,
    device: str,
    events: list[Event],
    suppressed: list[Event],
    other_end: dict[str, list[Event]],
) -> Finding:
    # Both ends count one and the same error.
    every = sorted((*events, *(each for told in other_end.values() for each in told)), key=evidence.position)
    count = total(events)
    densest = _densest(evidence, events)
    reading = _reading(events)
    severity: Severity = "info"
    action: Action = "observe"
    then: tuple[str, ...] = ("read_aer_counters",)
    if densest >= _MANY or suppressed:
        severity, action = "error", "run_diagnostics"
        then = (
            "inspect_hardware",
            "reseat_card_and_riser",
            "replace_cable_or_riser",
            "check_slot_and_bios_settings",
        )
    elif count > _SOME:
        severity = "warning"
        then = ("read_aer_counters", "inspect_hardware", "check_slot_and_bios_settings")
    if reading in ("config", "internal") and severity != "info":
        severity, action, then = "warning", "observe", ("check_acs_and_iommu", "read_aer_counters")
    span = evidence.clock.span(events)
    over = f" within {duration(span)}" if span else ""
    kinds = listed(dict.fromkeys(called(event) for event in every))
    at_least = "At least " if any(event.last for event in events) else ""
    rate = (
        f" {at_least}{densest} of them came within {_MANY_WINDOW_S / 60:g} min, "
        f"and {_MANY} make a degraded link."
        if densest >= _MANY
        else ""
    )
    more = (
        f" The kernel left out {sum(int(event.data['suppressed']) for event in suppressed)} more."
        if suppressed
        else ""
    )
    return Finding(
        layer="firmware_pcie",
        severity=severity,
        device=device,
        summary=f"{plural(count, 'corrected PCIe error')} at {device or 'a port'}: {kinds}",
        why=(
            f"Corrected {times(count)}{over}; nothing was lost.{rate}{more}"
            + (f" {listed(other_end)} at the other end of the link tells of the same." if other_end else "")
            + (f" The type says that {_READINGS[reading]}." if reading else "")
        ),
        events=(*every, *suppressed),
        action=action,
        then=then,
        root_event=events[0].kind,
        count=count,
    )


def _reading(events: Sequence[Event]) -> str:
    entries = (catalog.aer(event.kind.rsplit(".", 1)[-1]) for event in events)
    return next((entry.reading for entry in entries if entry), "")


def _densest(evidence: Evidence, events: Sequence[Event]) -> int:
    """The most errors that surely came within some five minutes; without times, all of them."""
    best = 0
    for number, first in enumerate(events):
        # However unevenly many came over a long time, five minutes of it had their part.
        windows = ceil(abs(evidence.clock.span([first]) or 0.0) / _MANY_WINDOW_S)
        count = ceil(first.count / max(1, windows))
        for event in events[number + 1 :] if windows <= 1 else ():
            apart = evidence.clock.span([first, event])
            if apart is None or apart <= _MANY_WINDOW_S:
                count += event.count
            elif (evidence.clock.seconds(first, event) or 0.0) <= _MANY_WINDOW_S:
                count += 1
        best = max(best, count)
        if best >= _MANY:
            break
    return best


RULE = Rule(id="pcie_errors", rank=60, explain=explain)
