"""A drop-in of the provider assigns a GRUB variable anew, and what the main file says is lost."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._boot import missing, wanted
from nodeprep.diagnose.rules._words import arguments, listed


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a host."""
    for host in evidence.hosts:
        variables = evidence.open("boot.grub_variable", host=host)
        _, overridden = wanted(variables)
        running = evidence.seen("boot.cmdline", host=host)
        lost = missing(list(overridden), running[-1]) if running else list(overridden)
        if not lost:
            continue
        by = {id(event): event for word in lost for event in overridden[word]}
        told = [event for event in variables if set(lost) & set(event.data["args"])]
        files = sorted({str(event.data["file"]) for event in by.values()})
        yield Finding(
            layer="config",
            severity="warning",
            summary=f"{arguments(lost)} lost: {listed(files)} assigns the variable anew",
            why=(
                f"Drop-ins are read after /etc/default/grub, and {listed(files)} assigns "
                f"{listed(sorted({str(event.data['name']) for event in by.values()}))} without "
                "keeping what it held. "
                f"update-grub succeeds all the same, and {listed(lost)} "
                + ("is not in /proc/cmdline." if running else "goes nowhere.")
            ),
            events=(*told, *by.values(), *evidence.seen("boot.grub_sourced", host=host), *running[-1:]),
            action="fix_config",
            then=("add_later_drop_in_that_appends", "run_update_grub", "verify_proc_cmdline_after_reboot"),
            root_event="boot.grub_variable",
            count=1,
        )


RULE = Rule(id="boot_drop_in_overrides", rank=66, explain=explain)
