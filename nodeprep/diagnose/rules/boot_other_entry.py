"""A boot entry has an argument, and the machine booted another one."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._boot import asked_for, missing
from nodeprep.diagnose.rules._words import arguments


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a host."""
    for host in evidence.hosts:
        running = evidence.seen("boot.cmdline", host=host)
        entries = evidence.open("boot.entry", host=host)
        if not running or not entries:
            continue
        lost = missing(asked_for(entries), running[-1])
        if not lost:
            continue
        with_it = [event for event in entries if set(lost) & set(event.data["args"])]
        without = [event for event in entries if event not in with_it]
        yield Finding(
            layer="config",
            severity="warning",
            summary=f"{arguments(lost)} in a boot entry that is not the one that runs",
            why=(
                f"{len(with_it)} of {len(entries)} boot entries have it, and /proc/cmdline does not: "
                + (
                    "another entry is the default, or one of another machine id wins."
                    if without
                    else "the machine was not booted since, or boots from elsewhere."
                )
            ),
            events=(*entries, running[-1]),
            action="fix_config",
            then=("reboot_into_the_entry", "remove_stale_boot_entries", "verify_proc_cmdline_after_reboot"),
            root_event="boot.entry",
            count=1,
        )


RULE = Rule(id="boot_other_entry", rank=67, explain=explain)
