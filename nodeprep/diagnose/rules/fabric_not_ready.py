"""The NVSwitch fabric is not up, so no program can start."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule

# Source: NVML fabric states; "Completed" is the one that is ready.
_NOT_YET = ("Not Started", "In Progress")


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a host, with the reason when a log of the fabric manager gives one."""
    for host in evidence.hosts:
        version = evidence.open("fabric.version_mismatch", host=host)
        failed = evidence.open("fabric.manager_failed", host=host)
        nothing = evidence.open("fabric.no_nvswitch", host=host)
        not_ready = evidence.open("cuda.system_not_ready", host=host)
        # A card without NVSwitch shows "N/A", which the reader leaves out.
        shown = [
            event
            for event in evidence.open("smi.gpu", host=host)
            if event.data.get("fabric_state") in _NOT_YET
        ]
        if nothing and not not_ready:
            yield Finding(
                layer="config",
                severity="info",
                summary="the fabric manager found no NVSwitch and ended",
                why="A node without NVSwitches needs no fabric manager; it says that there is nothing to do.",
                events=(*nothing, *failed),
                action="none",
            )
            continue
        if not (version or failed or not_ready or shown):
            continue
        reason = "it does not run or has not finished"
        then = ("start_fabric_manager", "match_fabric_manager_version", "check_fabric_state_completed")
        if version:
            reason = f"it has version {version[0].data['manager']}, the driver {version[0].data['driver']}"
            then = ("match_fabric_manager_version", "start_fabric_manager", "check_fabric_state_completed")
        elif failed:
            reason = "its service failed"
        yield Finding(
            layer="config",
            severity="error",
            summary="the NVSwitch fabric is not ready: " + reason,
            why=(
                "CUDA error 802 (system not yet initialized) is raised while the fabric between the "
                "GPUs is not set up. "
                if not_ready
                else "GPUs behind NVSwitches take no program before the fabric manager has set them up. "
            )
            + f"Of the fabric manager: {reason}. The GPUs are fine.",
            events=(*version, *failed, *nothing, *not_ready, *shown),
            action="fix_config",
            then=then,
            root_event=(version or failed or not_ready or shown)[0].kind,
            count=1,
        )


RULE = Rule(id="fabric_not_ready", rank=54, explain=explain)
