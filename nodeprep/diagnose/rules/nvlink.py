"""NVLink and NVSwitch: which end of a link failed first, and who only noticed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nodeprep.diagnose import catalog
from nodeprep.diagnose.catalog import Nvlink5Rule
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._recovery import asked
from nodeprep.diagnose.rules._symptoms import follows, symptoms
from nodeprep.diagnose.rules._words import codes, listed, of, plural, times
from nodeprep.model.diagnosis import Action, Layer, Severity

_FIVE = tuple(range(144, 151))
_CODES = (74, 108, 136, 137, 155, *_FIVE)
# Peers of a link notice within the same moment; time enough for eight drivers to print.
_TOGETHER_S = 30.0
# Source: XID catalogue, workflow of Xid 74: an event that comes back on the same link is not by chance.
_REPEAT_GAP_S = 60.0


@dataclass(frozen=True, slots=True)
class _Judged:
    """An event and how much it weighs: 2 ended a link or a GPU, 1 may, 0 follows or is for information."""

    event: Event
    weight: int
    rule: Nvlink5Rule | None = None


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding for all links of a host that failed together."""
    for host in evidence.hosts:
        events = evidence.open(*(f"xid.{code}" for code in _CODES), host=host)
        events += [event for event in evidence.open("sxid.", host=host) if _switch_fault(event)]
        if not any(event.kind != "xid.137" for event in events):
            continue
        events.sort(key=evidence.position)
        for group in _together(evidence, events):
            yield _finding(evidence, host, group)


def _switch_fault(event: Event) -> bool:
    entry = catalog.sxid(int(event.data["code"]))
    return entry.severity in ("error", "critical") if entry else bool(event.data.get("said_fatal"))


def _together(evidence: Evidence, events: list[Event]) -> Iterator[list[Event]]:
    """Faults of one device belong together, and so do those of one moment."""
    groups: list[list[Event]] = []
    for event in events:
        for group in groups:
            same = any(event.device == other.device for other in group)
            if same or evidence.clock.within(group[0], event, _TOGETHER_S):
                group.append(event)
                break
        else:
            groups.append([event])
    yield from groups


def _judge(evidence: Evidence, host: str, event: Event) -> _Judged:
    if event.kind.startswith("sxid."):
        return _Judged(event, 2)
    code = int(event.data["code"])
    if code not in _FIVE:
        return _Judged(event, {74: 2, 136: 2, 155: 2}.get(code, 0))
    rules: tuple[Nvlink5Rule, ...] = ()
    if "info" in event.data:
        rules = catalog.nvlink5(
            code,
            int(event.data["info"]),
            int(event.data.get("error_status", 0)),
            evidence.driver_version(host),
        )
    elif "unit" in event.data:
        # The words were cut off: the unit and the driver's own word still tell.
        rules = tuple(
            rule
            for rule in catalog.nvlink5_rules()
            if rule.xid == code
            and event.data["unit"] in rule.unit.split("/")
            and (rule.fatal != "no") is bool(event.data["said_fatal"])
        )
    if not rules:
        return _Judged(event, 2 if event.data.get("said_fatal") else 1 if code != 147 else 0)
    rule = max(rules, key=lambda rule: (rule.immediate == "reset_gpu", rule.immediate != "ignore"))
    weight = {"reset_gpu": 2, "follow_recovery_action": 1, "ignore": 0}[rule.immediate]
    # The driver's own word is worth as much as the sheet's when it is the graver one.
    return _Judged(
        event, max(weight, 2 if event.data.get("said_fatal") and rule.immediate != "ignore" else 0), rule
    )


def _finding(evidence: Evidence, host: str, events: list[Event]) -> Finding:
    judged = [_judge(evidence, host, event) for event in events]
    worst = max(each.weight for each in judged)
    grave = [each for each in judged if each.weight == worst]
    switch = next((each for each in grave if each.event.kind.startswith("sxid.")), None)
    root = switch or grave[0]
    devices = tuple(dict.fromkeys(each.event.device for each in grave if each.event.kind.startswith("xid.")))
    everyone = tuple(dict.fromkeys(event.device for event in events if event.kind.startswith("xid.")))
    after, entries = _consequences(evidence, host, everyone, events)
    asks = max((code for code, _ in entries), default=0)
    repeats = _repeats(evidence, [each.event for each in grave])
    severity, action, then = _verdict(worst, root, switch is not None, len(devices), repeats)
    if asks and severity != "critical":
        severity = catalog.recovery(asks).severity
    if asks and switch is None and len(devices) <= 1:
        action, then = catalog.recovery(asks).action, (*catalog.recovery(asks).then, *then)
    layer: Layer = _layer(root)
    device = (devices[0] if len(devices) == 1 else "") or (root.event.device if len(devices) == 0 else "")
    return Finding(
        layer=layer,
        severity=severity,
        device=device,
        summary=_summary(root, devices, everyone, worst),
        why=_why(judged, root, devices, everyone, repeats=repeats, asks=asks),
        events=tuple({id(e): e for e in (*events, *after)}.values()),
        action=action,
        then=then,
        root_event=root.event.kind,
        root_device=root.event.device,
        count=max(1, repeats),
    )


def _consequences(
    evidence: Evidence, host: str, devices: tuple[str, ...], events: list[Event]
) -> tuple[list[Event], list[tuple[int, Event]]]:
    first = events[0]
    named = set(codes(events))
    after: list[Event] = []
    actions: list[tuple[int, Event]] = []
    for event in evidence.open("xid.43", "xid.45", host=host):
        if event.data.get("caused_by") in named or follows(evidence, first, event):
            after.append(event)
    for device in devices:
        recovery, entry = asked(evidence, host, device, first)
        after += recovery
        if entry and entry.code:
            actions.append((entry.code, recovery[-1]))
        after += [
            event
            for event in evidence.open("xid.137", "xid.31", host=host, device=device)
            if follows(evidence, first, event, _TOGETHER_S)
        ]
        # Firmware that waits for a dead link answers nobody; each call then takes its whole timeout.
        after += [
            event
            for event in evidence.open("xid.119", "xid.109", "gsp.", host=host, device=device)
            if follows(evidence, first, event)
        ]
    after += symptoms(evidence, host, first, named | {74})
    after += evidence.open("cuda.nvlink_uncorrectable", host=host)
    return after, actions


def _repeats(evidence: Evidence, events: list[Event]) -> int:
    count = 0
    last: Event | None = None
    for event in events:
        apart = evidence.clock.gap(last, event) if last else None
        if last is None or (apart is not None and apart > _REPEAT_GAP_S):
            count += 1
        last = event
    return count


def _verdict(
    worst: int, root: _Judged, by_switch: bool, gpus: int, repeats: int
) -> tuple[Severity, Action, tuple[str, ...]]:
    if by_switch:
        entry = catalog.sxid(int(root.event.data["code"]))
        then = entry.then if entry else ("reset_gpus_and_nvswitches", "reboot_node_if_reset_fails")
        return "critical", "drain", then
    if worst == 2 and gpus > 1:
        return (
            "critical",
            "drain",
            ("reset_gpus_and_nvswitches", "reboot_node_if_reset_fails", "check_nvlink_and_peer"),
        )
    if worst == 2:
        severity: Severity = "error" if root.event.kind == "xid.74" and repeats < 2 else "critical"
        then = ("check_nvlink_and_peer", "check_nvswitch_sxid", "reboot_node_if_reset_fails")
        return severity, "reset_gpu", (*then, "rma_if_it_returns") if repeats > 1 else then
    if worst == 1:
        return (
            "warning",
            "run_diagnostics",
            ("follow_recovery_action", "check_peer_gpu", "check_nvlink_and_peer"),
        )
    return "warning", "observe", ("check_peer_gpu", "check_nvlink_and_peer", "report_to_vendor")


def _layer(root: _Judged) -> Layer:
    # Causes that the vendor's sheet gives to software alone.
    if root.rule is not None and root.rule.cause == "sw" and root.weight < 2:
        return "driver"
    return "driver" if root.event.kind == "xid.155" else "hardware"


def _summary(root: _Judged, devices: tuple[str, ...], everyone: tuple[str, ...], worst: int) -> str:
    name = root.event.kind.replace("sxid.", "SXid ").replace("xid.", "Xid ")
    if root.event.kind.startswith("sxid."):
        return f"NVSwitch {root.event.device} failed a link ({name}); GPUs behind it only noticed"
    if worst == 2 and len(devices) > 1:
        return (
            f"NVLink of {plural(len(devices), 'GPU')} failed at once: the fabric between them is "
            f"at fault ({name})"
        )
    if worst == 2:
        # The driver writes -1 for a fault of the unit that is of no one link.
        number = root.event.data.get("link", -1)
        link = f" on link {number}" if number >= 0 else ""
        others = f"; {plural(len(everyone) - 1, 'peer')} noticed" if len(everyone) > 1 else ""
        return f"NVLink error of {of(root.event.device)}{link} ({name}){others}"
    return f"NVLink notices of {listed(map(of, everyone))} that end nothing by themselves ({name})"


def _why(
    judged: list[_Judged],
    root: _Judged,
    devices: tuple[str, ...],
    everyone: tuple[str, ...],
    *,
    repeats: int,
    asks: int,
) -> str:
    parts = []
    if root.rule:
        parts.append(
            f"Unit {root.rule.unit}, sub-code {root.event.data.get('sub_code', 0)}, error status "
            f"{int(root.event.data.get('error_status', 0)):#010x}: the vendor's table says "
            f"{root.rule.immediate.replace('_', ' ')}, then {root.rule.investigate.replace('_', ' ')}."
        )
    if root.event.kind.startswith("sxid."):
        parts.append(
            "The switch reported the fault of its port itself, so switch, cable and board come "
            "before the GPU."
        )
    light = [each for each in judged if each.weight < root.weight]
    if light and root.weight:
        parts.append(
            f"{plural(len(light), 'other notice')} of {plural(len(everyone), 'GPU')} weigh less and "
            "follow from it."
        )
    if len(devices) > 1:
        parts.append("Several GPUs at one moment point at what connects them.")
    if repeats > 1:
        parts.append(f"It happened {times(repeats)} in this log.")
    if asks:
        parts.append(f"The driver's last word on recovery: {catalog.recovery(asks).meaning}.")
    return " ".join(parts) or catalog.xid(int(root.event.data["code"])).advice


RULE = Rule(id="nvlink", rank=18, explain=explain)
