"""A driver does not get a device's memory window, since somebody else holds it."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.device import same_slot
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import total


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a device; of interest when a GPU is meant, or something given to a guest."""
    for host, device, events in evidence.by_device(evidence.open("pci.bar_taken")):
        driver = str(events[0].data["driver"])
        gpu = any(same_slot(device, known) for known in evidence.gpus(host))
        matters = gpu or driver in ("vfio-pci", "nvidia")
        yield Finding(
            layer="config",
            severity="error" if matters else "info",
            device=device,
            summary=f"{driver} does not get the memory window (BAR) of {device}",
            why=(
                "Something else holds that address range, mostly the console that firmware set up at boot "
                "(simplefb, efifb). "
                + (
                    "A guest that is given the device sees a black screen or a driver that does not start. "
                    if driver == "vfio-pci"
                    else ""
                )
                + "/proc/iomem names who holds it."
            ),
            events=tuple(events),
            action="fix_config" if matters else "none",
            then=("free_boot_framebuffer",) if matters else (),
            count=total(events),
        )


RULE = Rule(id="bar_taken", rank=31, explain=explain)
