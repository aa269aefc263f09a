"""Channels that were taken away, with no fault on record that made it so: no weight, however many."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose import catalog
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import codes, listed, plural, times, total

_SEVERITIES = ("warning", "error", "critical")


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a code and GPU, or a code over many hosts."""
    kinds = tuple(f"xid.{code}" for code, entry in catalog.all_xid().items() if entry.role == "consequence")
    counted = [
        event
        for event in evidence.open("agent.xid_count")
        if catalog.xid(event.data["code"]).role == "consequence"
    ]
    by_code: dict[int, list[Event]] = {}
    for event in counted:
        by_code.setdefault(int(event.data["code"]), []).append(event)
    for code, events in by_code.items():
        hosts = sorted({evidence.host(event) for event in events})
        yield _finding(code, events, "", f"on {plural(len(hosts), 'host')} ({listed(hosts[:8])})")
    for host in evidence.hosts:
        yield from _echoes(evidence, host, kinds)
    for _, device, events in evidence.by_device(evidence.open(*kinds)):
        for code in dict.fromkeys(int(event.data["code"]) for event in events):
            same = [event for event in events if event.data["code"] == code]
            yield _finding(code, same, device, f"on {device}" if device else "on GPUs that are not named")


def _echoes(evidence: Evidence, host: str, kinds: tuple[str, ...]) -> Iterator[Finding]:
    """Errors whose own lines are gone from the log: the driver names them beside what they took away."""
    told = [
        event
        for event in evidence.open(*kinds, host=host)
        if event.data.get("caused_by")
        and catalog.xid(int(event.data["caused_by"])).severity in _SEVERITIES
        and not evidence.seen(f"xid.{event.data['caused_by']}", host=host)
    ]
    if not told:
        return
    causes = {int(event.data["caused_by"]) for event in told}
    gravest = max(causes, key=lambda code: (_SEVERITIES.index(catalog.xid(code).severity), code))
    entry = catalog.xid(gravest)
    devices = tuple(dict.fromkeys(event.device for event in told if event.data["caused_by"] == gravest))
    evidence.explain(told)
    yield Finding(
        layer=entry.layer,
        # It took channels away, so it was no notice.
        severity="critical" if entry.severity == "critical" else "error",
        device=devices[0] if len(devices) == 1 else "",
        summary=f"Xid {listed(sorted(causes))}, of which only the clean-up is left in the log: "
        f"{entry.meaning}",
        why=(
            f"Xid {listed(codes(told))} weighs nothing of its own, but {times(total(told))} the driver named "
            f"Xid {listed(sorted(causes))} as the cause. Those lines are not in this log."
        ),
        events=tuple(told),
        action=entry.action if entry.action not in ("none", "observe") else "run_diagnostics",
        then=(*entry.then, "read_kernel_log"),
        count=total(told),
    )


def _finding(code: int, events: list[Event], device: str, where: str) -> Finding:
    entry = catalog.xid(code)
    named = sorted({int(event.data["caused_by"]) for event in events if event.data.get("caused_by")})
    follow = f" The lines name Xid {listed(named)} as the cause, which is not in this log." if named else ""
    return Finding(
        layer="application",
        severity="info",
        device=device,
        summary=f"Xid {code} {times(total(events))} {where}: {entry.meaning}",
        why=f"The code weighs nothing of its own, however often it comes: {entry.meaning}.{follow}",
        events=tuple(events),
        action="none",
        then=entry.then,
        count=total(events),
    )


RULE = Rule(id="channel_clean_up", rank=84, explain=explain)
