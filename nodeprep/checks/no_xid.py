"""The kernel log has no Xid, no uncorrected PCIe error and no lost link from during the load."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.checks._facts import facts, require_same_boot
from nodeprep.model.facts import KernelEvent
from nodeprep.model.reading import Unreadable
from nodeprep.model.result import CheckResult

# What is a fault in each kind of line; every Xid and every containment (DPC) is one. Corrected errors
# are not for this check: aer_quiet_load counts them where somebody owns the counters.
_UNCORRECTED = r"uncorrect|non-?fatal|\bfatal\b"
_FAULTS = {
    "xid": re.compile(""),
    "dpc": re.compile(""),
    "aer": re.compile(_UNCORRECTED, re.IGNORECASE),
    "mce": re.compile(rf"{_UNCORRECTED}|machine check exception|\bUE\b", re.IGNORECASE),
    "pciehp": re.compile(r"link down|card not present|surprise", re.IGNORECASE),
    "nvrm": re.compile(r"fallen off the bus|rminitadapter failed|crash dump", re.IGNORECASE),
    # NVSwitch errors, firmware's own reports (APEI), links that the kernel could not keep up.
    "other": re.compile(rf"\bSXid\b|severity: (fatal|recoverable)|retraining|{_UNCORRECTED}", re.IGNORECASE),
}


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result for each device that the kernel complained about, or one on the node."""
    log = facts(context, "after").kernel_log
    bad: dict[str, list[KernelEvent]] = {}
    for event in log.events.require("the kernel log from during the load"):
        if _is_bad(event):
            bad.setdefault(event.device or "node", []).append(event)
    for subject, events in bad.items():
        yield CHECK.result(
            "FAIL",
            subject,
            _words(events),
            measured=len(events),
            limit=0,
            unit="kernel messages",
            source="NVIDIA Xid catalogue; Linux AER and DPC drivers",
            evidence=("facts.after#/kernel_log/events", *(event.text for event in events[:3])),
        )
    unread = _what_was_not_read(context)
    if unread and "node" not in bad:
        yield CHECK.result("ERROR", "node", unread)
    elif not bad:
        yield CHECK.result(
            "PASS",
            "node",
            "the kernel log was read without a gap and has no fault from during the load",
            measured=0,
            limit=0,
            unit="kernel messages",
            source="NVIDIA Xid catalogue; Linux AER and DPC drivers",
            evidence=("facts.after#/kernel_log/events",),
        )


def _is_bad(event: KernelEvent) -> bool:
    # A kind that this version does not know is read like "other".
    return bool(_FAULTS.get(event.kind, _FAULTS["other"]).search(event.text))


def _words(events: list[KernelEvent]) -> str:
    first = events[0]
    xids = sorted({event.xid for event in events if event.xid is not None})
    what = f"Xid {', '.join(map(str, xids))}" if xids else first.kind.upper()
    more = f" and {len(events) - 1} more" if len(events) > 1 else ""
    return f"{what} under load: {first.text}{more}"


def _what_was_not_read(context: Context) -> str:
    """Why the log is no proof of silence; "" when it is."""
    cursor = context.before.log_cursor
    log = facts(context, "after").kernel_log
    try:
        require_same_boot(context)
        lost = log.lost_records.require("the number of lost kernel log records")
        start = cursor.sequence.require("where the kernel log stood before the load")
        since = None if log.since is None else log.since.sequence.value
    except Unreadable as error:
        return str(error)
    if lost:
        return f"{lost} kernel log records from during the load were overwritten before they could be read"
    if log.since is None or log.since.boot_id != cursor.boot_id or since is None or since > start:
        return "the kernel log after the load was not read on from where it stood before it"
    return ""


CHECK = Check(
    id="no_xid",
    title="no Xid or fatal PCIe message during the load",
    phase="load",
    evaluate=evaluate,
    explains=("gpu_survived_load", "probe_completed"),
)
