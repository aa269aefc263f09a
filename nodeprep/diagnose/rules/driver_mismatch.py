"""Kernel module and libraries of the driver are of different versions."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a host."""
    for host in evidence.hosts:
        events = evidence.open(
            "driver.api_mismatch", "driver.version_mismatch", "cuda.system_driver_mismatch", host=host
        )
        if not events:
            continue
        told = next((event for event in events if event.data.get("client")), None)
        # An upgrade takes the old version's firmware files away, which the old module asks for later.
        firmware = evidence.open("gpu.firmware_missing", host=host)
        failed = evidence.open("gpu.init_failed", "gpu.init_failed_noted", host=host) if firmware else []
        versions = (
            f" The client has {told.data['client']}, the module {told.data['module'] or 'another'}."
            if told
            else ""
        )
        yield Finding(
            layer="driver",
            severity="error",
            summary="kernel module and user libraries of the driver have different versions",
            why=(
                "The driver was replaced while its old module stayed loaded, or an old one sits in "
                f"the initramfs.{versions} "
                + (
                    "The old module finds no firmware files of its version any more, so it cannot "
                    "initialise a GPU. "
                    if failed
                    else ""
                )
                + "The GPUs are fine; a reboot, or unloading and loading the module, makes them one again."
            ),
            events=(*events, *firmware, *failed, *evidence.open("nvml.failed", host=host)),
            action="reboot_node",
            then=("match_driver_and_library",),
        )


RULE = Rule(id="driver_mismatch", rank=50, explain=explain)
