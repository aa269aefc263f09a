"""Tasks of the driver hang in the kernel, with no fault on record."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import listed, times, total

_OF_THE_DRIVER = ("nvidia", "nv_", "nvsm", "dcgm", "nvc:", "irq/")
# They hang in whatever they call: of the driver when no stack says otherwise.
_ANY_PROGRAM = ("python", "pt_main")


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a host for tasks of the driver and calls to NVML, one for all other tasks."""
    for host in evidence.hosts:
        tasks = evidence.open("host.task_hung", "host.soft_lockup", "host.hard_lockup", host=host)
        names = {event.data["process"] for event in tasks if _in_driver(event)}
        # A task that still hangs is told again, and its stack at times not.
        driver = [event for event in tasks if event.data["process"] in names]
        others = [event for event in tasks if event not in driver]
        hangs = evidence.open("nvml.hang", host=host)
        if driver or hangs:
            devices = {event.device for event in hangs if event.device}
            hanging = dict.fromkeys(
                str(event.data.get("process") or event.data.get("call")) for event in (*driver, *hangs)
            )
            yield Finding(
                layer="driver",
                severity="error",
                device=devices.pop() if len(devices) == 1 else "",
                summary=f"{listed(list(hanging)[:4])} hangs in the driver",
                why=(
                    f"Told {times(total([*driver, *hangs]))}. A GPU or its firmware does not answer "
                    "the driver, and no Xid "
                    "says so yet."
                ),
                events=(*driver, *hangs),
                action="drain",
                then=("stop_polling_the_gpu", "reset_gpu", "reboot_node_if_reset_fails", "read_kernel_log"),
                count=total([*driver, *hangs]),
            )
        if others:
            hanging = dict.fromkeys(str(event.data["process"]) for event in others)
            yield Finding(
                layer="host",
                severity="error" if any(e.kind == "host.hard_lockup" for e in others) else "warning",
                summary=f"{listed(list(hanging)[:4])} hangs in the kernel",
                why=f"Told {times(total(others))}; storage or file systems mostly. No GPU is named, "
                "and no code of its driver.",
                events=tuple(others),
                action="observe",
                then=("read_kernel_log",),
                count=total(others),
            )


def _in_driver(event: Event) -> bool:
    name = str(event.data["process"])
    if event.data["code"] == "driver" or name.startswith(_OF_THE_DRIVER):
        return True
    return not event.data["stack"] and name.startswith(_ANY_PROGRAM)


RULE = Rule(id="hung_task", rank=78, explain=explain)
