"""What went wrong on the host around the GPUs: memory, tasks that hang, CPUs that did not start."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.decoders._each import bounded
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

_OOM = re.compile(
    r"(?P<scope>Out of memory|Memory cgroup out of memory): Kill(?:ed)? process (?P<pid>\d{1,18}) "
    r"\((?P<name>[^)]*)\)"
)
# The first words of the same report; the line above is its last, and often cut off.
_OOM_BEGINS = re.compile(r"(?P<name>\S.{0,62}) invoked oom-killer: ")
_OOM_CHOICE = re.compile(
    r"oom-kill:constraint=(?P<constraint>CONSTRAINT_\w{1,20})"
    r"(?:.*?,task=(?P<name>[^,]{1,64}),pid=(?P<pid>\d{1,18}))?"
)
# Source: Linux, kernel/rcu/tree_stall.h.
_STALL = re.compile(r"rcu: INFO: rcu_\w+ (?:self-)?detected (?:expedited )?stalls? on CPU")
# Source: systemd-oomd; it ends a whole unit before the kernel must choose a process.
_OOMD = re.compile(r"Killed (?P<unit>/\S{1,400}) due to memory (?:pressure|used)")
_HUNG = re.compile(
    r"INFO: task (?P<name>.+?):(?P<pid>\d{1,18}) blocked for more than (?P<seconds>\d{1,18}) seconds"
)
_LOCKUP = re.compile(
    r"watchdog: BUG: soft lockup - CPU#(?P<cpu>\d{1,18}) stuck for (?P<seconds>\d{1,18})s! "
    r"\[(?P<name>.+?):\d{1,18}\]"
)
_HARD_LOCKUP = re.compile(r"(?:NMI watchdog: )?Watchdog detected hard LOCKUP on cpu (?P<cpu>\d{1,9})")
_APIC = re.compile(r"CPU ?(?P<cpu>\d{1,18}) has invalid APIC ID (?P<apic>[0-9a-fA-F]+)")
_X2APIC = re.compile(
    r"x2apic: IRQ remapping doesn't support X2APIC mode|x2apic disabled|IRQ remapping.*x2apic.*disabled"
)
_CPUS = re.compile(r"smp: Brought up (?P<nodes>\d{1,18}) nodes?, (?P<cpus>\d{1,18}) CPUs")
_THREADS = re.compile(r"^\s*Thread Count: (?P<threads>\d{1,18})\s*$")

_SUSPENDED = re.compile(r"PM: suspend exit|ACPI: (?:PM: )?Waking up from system sleep state")
_HOT = re.compile(r"(?:Core|Package) temperature above threshold, cpu clock throttled")
_TRACE = re.compile(r"(?:Call Trace|Call trace|\bRIP):?")
# A frame of the driver's own modules; those after a question mark are leftovers on the stack.
_DRIVER_FRAME = re.compile(r"(?<!\? )\b\w+\+0x[0-9a-f]+/0x[0-9a-f]+ \[nvidia(?:_uvm|_modeset|_drm)?\]")
# Registers and stack of one task.
_MAX_STACK_LINES = 80


def decode(lines: Iterable[Line]) -> Iterator[Event]:
    """Events `host.*` and `cpu.*`; of tasks that hang with the frames that tell whose code it is."""
    hung: Event | None = None
    for line in bounded(lines):
        text = line.text
        if hung and (
            line.source != hung.lines[0].source or line.number - hung.lines[0].number > _MAX_STACK_LINES
        ):
            yield hung
            hung = None
        if not any(word in text for word in _WORDS):
            continue
        if hung and _DRIVER_FRAME.search(text):
            if hung.data["code"] != "driver":
                hung = replace(
                    hung, lines=(*hung.lines, line), data={**hung.data, "stack": True, "code": "driver"}
                )
        elif hung and _TRACE.search(text):
            hung = replace(hung, data={**hung.data, "stack": True})
        elif event := _parse(line):
            if hung:
                yield hung
            hung = event if event.kind in ("host.task_hung", "host.soft_lockup", "host.hard_lockup") else None
            if hung is None:
                yield event
    if hung:
        yield hung


def _parse(line: Line) -> Event | None:  # noqa: PLR0911, PLR0912  # one return a message
    text = line.text
    if match := _OOM.search(text):
        data = {"process": match["name"], "pid": int(match["pid"]), "cgroup": "cgroup" in match["scope"]}
        return Event(kind="host.out_of_memory", lines=(line,), data=data)
    if match := _OOM_CHOICE.search(text):
        data = {"process": match["name"] or "", "cgroup": match["constraint"] == "CONSTRAINT_MEMCG"}
        return Event(kind="host.out_of_memory_noted", lines=(line,), data=data)
    if match := _OOM_BEGINS.search(text):
        data = {"process": "", "asked_by": match["name"], "cgroup": False}
        return Event(kind="host.out_of_memory_noted", lines=(line,), data=data)
    if "mem_cgroup_out_of_memory" in text:
        return Event(kind="host.out_of_memory_noted", lines=(line,), data={"process": "", "cgroup": True})
    if match := _OOMD.search(text):
        data = {"process": match["unit"].rsplit("/", 1)[-1], "pid": 0, "cgroup": True, "by": "systemd-oomd"}
        return Event(kind="host.out_of_memory", lines=(line,), data=data)
    if _HOT.search(text):
        return Event(kind="host.cpu_hot", lines=(line,))
    if match := _HUNG.search(text):
        data = {"process": match["name"], "seconds": int(match["seconds"]), "stack": False, "code": ""}
        return Event(kind="host.task_hung", lines=(line,), data=data)
    if match := _LOCKUP.search(text):
        data = {"process": match["name"], "seconds": int(match["seconds"]), "stack": False, "code": ""}
        return Event(kind="host.soft_lockup", lines=(line,), data=data)
    if _STALL.search(text):
        data = {"process": "a CPU", "seconds": 0, "stack": False, "code": ""}
        return Event(kind="host.soft_lockup", lines=(line,), data=data)
    if match := _HARD_LOCKUP.search(text):
        data = {"process": f"CPU {match['cpu']}", "stack": False, "code": ""}
        return Event(kind="host.hard_lockup", lines=(line,), data=data)
    if _SUSPENDED.search(text):
        return Event(kind="host.suspended", lines=(line,))
    if match := _APIC.search(text):
        return Event(kind="cpu.not_started", lines=(line,), data={"cpu": int(match["cpu"])})
    if _X2APIC.search(text):
        return Event(kind="cpu.x2apic_off", lines=(line,))
    if match := _CPUS.search(text):
        return Event(kind="cpu.count", lines=(line,), data={"cpus": int(match["cpus"])})
    if match := _THREADS.search(text):
        return Event(kind="cpu.socket_threads", lines=(line,), data={"threads": int(match["threads"])})
    return None


_WORDS = (
    "due to memory",
    "rcu: INFO",
    "ut of memory: Kill",
    "oom-kill",
    "mem_cgroup_out_of_memory",
    "blocked for more than",
    "soft lockup",
    "hard LOCKUP",
    "APIC",
    "x2apic",
    "Brought up",
    "Thread Count",
    "temperature above",
    "Call Trace",
    "Call trace",
    "RIP: ",
    "[nvidia",
    "PM: suspend exit",
    "Waking up from system",
)

DECODER = Decoder(
    id="host",
    needles=(
        b"due to memory",
        b"rcu: INFO",
        b"ut of memory: Kill",
        b"oom-kill",
        b"cgroup_out_of_memory",
        b"blocked for more than",
        b"soft lockup",
        b"hard LOCKUP",
        b"invalid APIC",
        b"x2apic",
        b"Brought up",
        b"Thread Count",
        b"temperature above",
        b"Call Trace",
        b"Call trace",
        b"[nvidia",
        b"PM: suspend exit",
        b"Waking up from system",
    ),
    decode=decode,
)
