"""The fabric manager or IMEX logs an error that no other rule knows."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import times, total

# What the fabric's own log repeats in its words, and has a finding of its own.
_KNOWN = ("sxid.", "xid.74", "fabric.version_mismatch", "fabric.manager_failed", "fabric.no_nvswitch")


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a host."""
    for host in evidence.hosts:
        errors = evidence.open("fabric.log_error", host=host)
        if not errors:
            continue
        yield Finding(
            layer="config",
            severity="error",
            summary="the fabric manager or IMEX reports an error",
            why=(
                f"Told {times(total(errors))}, first in these words: {errors[0].data['what']}. Programs that "
                "use several GPUs, or GPUs of several nodes, fail or wait until it is set right."
            ),
            events=tuple(errors),
            action="fix_config",
            then=("check_fabric_manager", "check_fabric_state_completed"),
            count=total(errors),
            yields_to=_KNOWN,
        )


RULE = Rule(id="fabric_log", rank=88, explain=explain)
