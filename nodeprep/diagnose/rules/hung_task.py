"""Tasks of the driver hang in the kernel, with no fault on record."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import listed, times, total

# Programs and kernel threads that do little else than call the driver. Any other waits for storage as well.
_OF_THE_DRIVER = re.compile(r"nvidia|nv_|nvsm|dcgm|nvc:|irq/\d+-nvid")

_BY_NAME = " That it is the driver is known by the name of the task alone; no stack is beside it."


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
                    "says so yet." + ("" if hangs or any(map(_names_driver, driver)) else _BY_NAME)
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
                why=f"Told {times(total(others))}{_where(others)}",
                events=tuple(others),
                action="observe",
                then=("read_stack_of_the_task", "read_kernel_log"),
                count=total(others),
            )


def _in_driver(event: Event) -> bool:
    return _names_driver(event) or bool(_OF_THE_DRIVER.match(str(event.data["process"])))


def _names_driver(event: Event) -> bool:
    return bool(event.data["code"] == "driver")


def _where(tasks: Iterable[Event]) -> str:
    """What is known of the place; a task that waits for 2 min says nothing of it without its stack."""
    if all(event.data["stack"] for event in tasks):
        return "; storage or file systems mostly. No GPU is named, and no code of its driver."
    return (
        ". Where it waits is not known without its stack: storage and network file systems are the most "
        "common, the driver of a GPU is possible. Frames of the stack tell."
    )


RULE = Rule(id="hung_task", rank=78, explain=explain)
