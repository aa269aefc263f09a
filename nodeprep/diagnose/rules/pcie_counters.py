"""PCI Express errors that the kernel counted and no line of the log tells: older than it, or left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from nodeprep.diagnose import catalog
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import listed, plural, total
from nodeprep.model.diagnosis import Action, Layer, Severity

# Source: as in pcie_errors.py; counters have no times, so that no rate can make more than a warning of them.
_SOME = 10
_SINCE = (
    "Counted since the kernel knows the device, at times that nothing tells; no line of the log has them."
)


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a device for uncorrected errors, one a link for corrected ones."""
    for host in evidence.hosts:
        grave: dict[str, list[tuple[Event, int]]] = {}
        corrected: dict[str, list[tuple[Event, int]]] = {}
        for event, left in _untold(evidence, host):
            kinds = corrected if event.kind.startswith("aer_counter.corrected.") else grave
            kinds.setdefault(event.device, []).append((event, left))
        for device, found in grave.items():
            yield _uncorrected(device, found)
        yield from _by_link(corrected)


def _untold(evidence: Evidence, host: str) -> Iterator[tuple[Event, int]]:
    """Counters, and how much of each no line of the log accounts for."""
    groups: dict[tuple[str, str], list[Event]] = {}
    for event in evidence.open("aer_counter.", host=host):
        groups.setdefault((event.device, event.kind.split(".")[1]), []).append(event)
    for (device, name), events in groups.items():
        logged = _logged(evidence, host, name)
        told = [event for event in logged if event.device == device]
        if name == "corrected" and told and evidence.seen("aer.suppressed", host=host):
            # The log says itself that it left some out, and its finding counts them.
            continue
        types, unnamed = _types(told)
        for event in events:
            last = event.kind.rsplit(".", 1)[-1]
            if last == "received":
                left = event.count - _passed_on(evidence, host, name, event, logged)
            else:
                left = event.count - types[last]
                taken = min(max(left, 0), unnamed)
                left, unnamed = left - taken, unnamed - taken
            if left > 0:
                yield event, left


def _logged(evidence: Evidence, host: str, name: str) -> list[Event]:
    kinds = [f"aer.{name}.", "aer.firmware_first.", "ghes.pcie"]
    if name != "corrected":
        kinds.append("dpc.containment")
    return evidence.seen(*kinds, host=host)


def _types(told: Sequence[Event]) -> tuple[Counter[str], int]:
    """How often the log has each type of error, and how often one without its type.

    One message may stand for several bits, and the kernel counts each of them.
    """
    types: Counter[str] = Counter()
    unnamed = 0
    for event in told:
        bits = int(event.data.get("status") or 0) & ~int(event.data.get("mask") or 0)
        error_class = "corrected" if event.kind.startswith("aer.corrected.") else "uncorrected"
        names = {entry.id for entry in catalog.aer_bits(error_class, bits)}
        last = event.kind.rsplit(".", 1)[-1]
        if catalog.aer(last):
            names.add(last)
        for each in names:
            types[each] += event.count
        unnamed += 0 if names else event.count
    return types, unnamed


def _passed_on(evidence: Evidence, host: str, name: str, event: Event, logged: Sequence[Event]) -> int:
    """Messages at a root port that a device below it, or the log, tells of as well."""
    below = {event.device, *event.data["below"]}
    counted = [
        each
        for each in evidence.seen(f"aer_counter.{name}.", host=host)
        if each.device in below and not each.kind.endswith(".received")
    ]
    told = [each for each in logged if each.device in below or each.data.get("reporter") == event.device]
    return max(total(counted), total(told))


def _uncorrected(device: str, found: Sequence[tuple[Event, int]]) -> Finding:
    events = [event for event, _ in found]
    fatal = any(event.kind.startswith("aer_counter.fatal.") for event in events)
    kinds = listed(dict.fromkeys(map(_called, events)))
    count = sum(left for _, left in found)
    severity: Severity = "error"
    layer: Layer = "firmware_pcie"
    action: Action = "run_diagnostics"
    then: tuple[str, ...] = ("read_aer_counters", "read_sel", "inspect_hardware")
    if not fatal and all(_is_config(event) for event in events):
        layer, severity, action, then = "config", "warning", "fix_config", ("check_acs_and_iommu",)
    return Finding(
        layer=layer,
        severity=severity,
        device=device,
        summary=f"{plural(count, 'uncorrected PCIe error')} at {device} that the log does not have: {kinds}",
        why=_SINCE,
        events=tuple(events),
        action=action,
        then=then,
        root_event=events[0].kind,
        count=count,
    )


def _by_link(found: dict[str, list[tuple[Event, int]]]) -> Iterator[Finding]:
    """Both ends of a link count one and the same error: the lower one's finding has the upper one's."""
    left = dict(sorted(found.items(), key=lambda item: -int(item[1][0][0].data.get("depth") or 0)))
    while left:
        device = next(iter(left))
        mine = left.pop(device)
        port = str(mine[0][0].data.get("port") or "")
        yield _corrected(device, mine, port, left.pop(port, []))


def _corrected(
    device: str, found: Sequence[tuple[Event, int]], port: str, other_end: Sequence[tuple[Event, int]]
) -> Finding:
    events = [event for event, _ in (*found, *other_end)]
    # What the log has too weighs with the rest, and is not counted again.
    every = max(total([event for event, _ in found]), total([event for event, _ in other_end]))
    count = sum(left for _, left in found)
    many = every > _SOME
    return Finding(
        layer="firmware_pcie",
        severity="warning" if many else "info",
        device=device,
        summary=f"{plural(count, 'corrected PCIe error')} at {device} that the log does not have: "
        f"{listed(dict.fromkeys(map(_called, events)))}",
        why=_SINCE
        + (
            f" {port} at the other end of the link counted {total([e for e, _ in other_end])}."
            if other_end
            else ""
        )
        + (f" Healthy links make no more than {_SOME} in days." if many else " Nothing was lost."),
        events=tuple(events),
        action="observe",
        then=("read_aer_counters", "inspect_hardware", "check_slot_and_bios_settings")
        if many
        else ("read_aer_counters",),
        root_event=events[0].kind,
        count=count,
    )


def _called(event: Event) -> str:
    _, name, last = event.kind.split(".")
    return f"messages received ({name})" if last == "received" else f"{event.data['name']} ({name})"


def _is_config(event: Event) -> bool:
    entry = catalog.aer(event.kind.rsplit(".", 1)[-1])
    return entry is not None and entry.reading == "config"


RULE = Rule(id="pcie_counters", rank=62, explain=explain)
