"""The kernel log has no Xid, no fault of driver, PCIe or host, from during the load."""

from __future__ import annotations

import re
from collections.abc import Iterator

from nodeprep.checks._check import Check, Context
from nodeprep.checks._facts import facts, require_same_boot
from nodeprep.model.facts import KernelEvent
from nodeprep.model.reading import Unreadable
from nodeprep.model.result import CheckResult

# What is a fault in each kind of line; of some kinds every line is one. Corrected errors are not for this
# check: aer_quiet_load counts them where somebody owns the counters.
_UNCORRECTED = r"uncorrect|non-?fatal|\bfatal\b"
_ALWAYS = re.compile("")
_FAULTS = {
    "xid": _ALWAYS,
    "dpc": _ALWAYS,
    "aer": re.compile(rf"{_UNCORRECTED}|can't recover|recovery failed", re.IGNORECASE),
    "mce": re.compile(rf"{_UNCORRECTED}|machine check exception|\bUE\b", re.IGNORECASE),
    "pciehp": re.compile(r"link down|card not present|surprise", re.IGNORECASE),
    "nvrm": re.compile(
        rf"{_UNCORRECTED}|fallen off the bus|rminitadapter failed|crash dump|Xid\d|probably locked",
        re.IGNORECASE,
    ),
    "iommu_fault": _ALWAYS,
    "power_state": _ALWAYS,
    "lockup": _ALWAYS,
    "hung_task": _ALWAYS,
    "rcu_stall": _ALWAYS,
    "oops": _ALWAYS,
    # NVSwitch errors, firmware's own reports (APEI), links that the kernel could not keep up.
    "other": re.compile(rf"\bSXid\b|severity: (fatal|recoverable)|retraining|{_UNCORRECTED}", re.IGNORECASE),
}

# The driver has many words for what breaks, and new ones with each release: what it says at this kernel
# priority or a worse one is a fault unless it is known to be none.
_WARNING = 4
# Source: lines of a healthy driver at load, at start of persistence mode and beside any Xid.
_HARMLESS = re.compile(
    r"NVRM: GPU at PCI:\S+: GPU-[0-9a-f-]+$|"
    r"NVRM: GPU Board Serial Number: \w*$|"
    r"NVRM: Persistence mode is deprecated|"
    r"NVRM: loading NVIDIA UNIX |nvidia-modeset: Loading NVIDIA |nvidia-uvm: Loaded the UVM driver|"
    r"nvidia[-_\w]*: (?:loading out-of-tree module taints kernel|module license 'NVIDIA' taints kernel|"
    r"module verification failed: signature and/or required key missing)"
)
_SOURCE = "NVIDIA Xid catalogue; Linux kernel sources; driver lines of priority 4 or worse denied by default"
# How many lines that are no fault a pass carries along.
_SHOWN = 5


def evaluate(context: Context) -> Iterator[CheckResult]:
    """One result for each device that the kernel complained about, or one on the node."""
    log = facts(context, "after").kernel_log
    bad: dict[str, list[KernelEvent]] = {}
    every = log.events.require("the kernel log from during the load")
    for event in every:
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
            source=_SOURCE,
            evidence=("facts.after#/kernel_log/events", *(event.text for event in events[:3])),
        )
    # One result a subject: a fault of the node says more than what could not be read of it.
    unread = _what_was_not_read(context) or _what_was_killed(every)
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
            source=_SOURCE,
            evidence=("facts.after#/kernel_log/events", *(event.text for event in every[:_SHOWN])),
        )


def _is_bad(event: KernelEvent) -> bool:
    if event.kind == "oom":
        return False
    # A kind that this version does not know is read like "other".
    if _FAULTS.get(event.kind, _FAULTS["other"]).search(event.text):
        return True
    return event.kind == "nvrm" and event.priority <= _WARNING and not _HARMLESS.match(event.text)


def _words(events: list[KernelEvent]) -> str:
    first = events[0]
    xids = sorted({event.xid for event in events if event.xid is not None})
    what = f"Xid {', '.join(map(str, xids))}" if xids else first.kind.upper().replace("_", " ")
    more = f" and {len(events) - 1} more" if len(events) > 1 else ""
    return f"{what} under load: {first.text}{more}"


def _what_was_killed(events: tuple[KernelEvent, ...]) -> str:
    killed = next((event for event in events if event.kind == "oom"), None)
    return (
        f"the host ran out of memory, so it could not hold the load, and nothing is known of the GPUs "
        f"under it: {killed.text}"
        if killed
        else ""
    )


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
    title="no Xid and no fault in the kernel log during the load",
    phase="load",
    evaluate=evaluate,
    explains=("gpu_survived_load", "probe_completed"),
)
