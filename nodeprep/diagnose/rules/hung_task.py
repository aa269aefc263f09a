"""Tasks of the driver hang in the kernel, with no fault on record."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import listed, times, total

_OF_THE_DRIVER = ("nvidia", "nv_", "nvsm", "dcgm", "python", "nvc:", "irq/")


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a host for tasks of the driver and calls to NVML, one for all other tasks."""
    for host in evidence.hosts:
        tasks = evidence.open("host.task_hung", "host.soft_lockup", host=host)
        driver = [event for event in tasks if str(event.data["process"]).startswith(_OF_THE_DRIVER)]
        others = [event for event in tasks if event not in driver]
        hangs = evidence.open("nvml.hang", host=host)
        if driver or hangs:
            devices = {event.device for event in hangs if event.device}
            names = dict.fromkeys(
                str(event.data.get("process") or event.data.get("call")) for event in (*driver, *hangs)
            )
            yield Finding(
                layer="driver",
                severity="error",
                device=devices.pop() if len(devices) == 1 else "",
                summary=f"{listed(list(names)[:4])} hangs in the driver",
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
            names = dict.fromkeys(str(event.data["process"]) for event in others)
            yield Finding(
                layer="host",
                severity="warning",
                summary=f"{listed(list(names)[:4])} hangs in the kernel",
                why=f"Told {times(total(others))}; storage or file systems mostly. No GPU is named.",
                events=tuple(others),
                action="observe",
                then=("read_kernel_log",),
                count=total(others),
            )


RULE = Rule(id="hung_task", rank=78, explain=explain)
