"""The persistence service runs, and persistence mode is off: its unit says so."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a host."""
    for host in evidence.hosts:
        flag = evidence.open("power.persistenced_without_mode", host=host)
        if not flag:
            continue
        off = [
            event for event in evidence.seen("smi.gpu", host=host) if event.data.get("persistence") is False
        ]
        on = [event for event in evidence.seen("smi.gpu", host=host) if event.data.get("persistence") is True]
        yield Finding(
            layer="config",
            severity="info" if on and not off else "warning",
            summary="nvidia-persistenced runs with --no-persistence-mode, so persistence mode stays off",
            why=(
                "Ubuntu's unit starts the service with this flag. The service is active all the "
                "same, and the driver lets go "
                "of idle GPUs, with their power limits."
            ),
            events=(*flag, *off),
            action="fix_config",
            then=("start_persistenced_with_mode", "enable_persistence_mode"),
            count=1,
        )


RULE = Rule(id="persistence_off", rank=73, explain=explain)
