"""The kernel stumbled over a fault of its own code, or of the driver's."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import listed, times, total
from nodeprep.model.diagnosis import Severity


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a host for the driver's code, one for all other code."""
    for host in evidence.hosts:
        driver = evidence.open("driver.oops", host=host)
        if driver:
            yield Finding(
                layer="driver",
                severity=_severity(driver),
                summary=f"the NVIDIA driver crashed in the kernel{_where(driver)}",
                why=(
                    f"Told {times(total(driver))}. The driver's own code used an address that it may not. "
                    "What holds its locks waits for ever, so no GPU of the node can be relied on before a "
                    "reboot."
                ),
                events=tuple(driver),
                action="reboot_node",
                then=("update_driver_if_it_returns", "report_to_vendor"),
                count=total(driver),
            )
        others = evidence.open("host.kernel_oops", host=host)
        if others:
            count = total(others)
            if any("lockup" in line.text or "hung" in line.text for event in others for line in event.lines):
                # The kernel was told to panic when a task hangs.
                others += evidence.open("host.soft_lockup", "host.hard_lockup", "host.task_hung", host=host)
            yield Finding(
                layer="host",
                severity=_severity(others),
                summary=f"the kernel crashed{_where(others)}",
                root_event="host.kernel_oops",
                why=f"Told {times(count)}. No code of the NVIDIA driver is named in it.",
                events=tuple(others),
                action="reboot_node",
                then=("read_kernel_log", "read_sel"),
                count=count,
            )


def _severity(events: list[Event]) -> Severity:
    return "critical" if any(event.data.get("panic") for event in events) else "error"


def _where(events: list[Event]) -> str:
    places = [
        f"{event.data['function']}{' of ' + str(event.data['module']) if event.data['module'] else ''}"
        for event in events
        if event.data.get("function")
    ]
    names = [str(event.data["process"]) for event in events if event.data["process"]]
    return (f" in {listed(dict.fromkeys(places))}" if places else "") + (
        f" ({listed(dict.fromkeys(names))})" if names else ""
    )


RULE = Rule(id="kernel_oops", rank=77, explain=explain)
