"""A container lost its GPUs although the host has them."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import times, total


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a host; only when nothing says that the GPU itself is lost."""
    for host in evidence.hosts:
        events = evidence.open("nvml.unknown_error", "nvml.insufficient_permissions", host=host)
        library = evidence.open("nvml.library_missing", host=host)
        if library and not evidence.seen("driver.not_loaded", host=host):
            yield Finding(
                layer="config",
                severity="error",
                summary="a program finds no NVML library (libnvidia-ml.so.1)",
                why=(
                    f"Told {times(total(library))}. The driver brings the library; a container gets it "
                    "from the NVIDIA runtime. So either it was started with another runtime, or the host "
                    "has no driver."
                ),
                events=tuple(library),
                action="fix_config",
                then=("set_nvidia_container_runtime", "check_driver_and_gpu_count"),
            )
        old = evidence.open("container.driver_too_old", host=host)
        failed = evidence.open("container.cli_failed", host=host)
        if events:
            reloaded = evidence.open("systemd.reload", host=host)
            seen = (
                "systemd was reloaded in this log, which takes device rights from running containers"
                if reloaded
                else "a reload of systemd, or an update of the container's limits, takes device "
                "rights from running containers"
            )
            yield Finding(
                layer="config",
                severity="error",
                summary="NVML cannot be used in a container: its rights to the GPU's device files are gone",
                why=(
                    f"Failed to initialize NVML, told {times(total(events))}, with no Xid and no "
                    f"lost GPU on record: {seen}. "
                    "The GPUs are fine."
                ),
                events=(*reloaded, *events, *evidence.open("cuda.no_device", host=host)),
                action="fix_config",
                then=("restart_container", "create_dev_char_links", "use_newer_container_runtime"),
                root_event="systemd.reload" if reloaded else events[0].kind,
                count=1,
            )
        if old:
            yield Finding(
                layer="config",
                severity="error",
                summary="the container asks for a newer driver than the host has",
                why=f"The container toolkit refused to start it: {old[0].data['what'][:200]}",
                events=(*old, *failed),
                action="update_driver",
                then=("match_driver_and_library",),
            )
        elif failed:
            yield Finding(
                layer="config",
                severity="error",
                summary="the container toolkit could not give a container its GPUs",
                why=f"Its own words: {failed[0].data['what'][:200]}",
                events=tuple(failed),
                action="fix_config",
                then=("check_driver_and_gpu_count", "use_newer_container_runtime"),
            )


RULE = Rule(id="container_lost_gpu", rank=70, explain=explain)
