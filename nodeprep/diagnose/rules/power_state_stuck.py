"""A device does not wake up, or not come back from a reset, and no driver of NVIDIA was there to say so."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import times, total

_SIGNS_OF_A_GPU = ("xid.", "pci.device", "pci.bound", "smi.")


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a device."""
    for host, device, events in evidence.by_device(evidence.open("gpu.power_state_stuck", "gpu.never_ready")):
        # vfio-pci holds it for a virtual machine: a GPU on the machines this is made for.
        passed = any("vfio-pci" in line.text for event in events for line in event.lines)
        reset = next((str(event.data["after"]) for event in events if event.data.get("after")), "")
        gpu = bool(evidence.seen(*_SIGNS_OF_A_GPU, host=host, device=device))
        yield Finding(
            layer="firmware_pcie",
            severity="critical" if gpu or passed else "warning",
            device=device,
            summary=_summary(device, reset),
            why=(
                (
                    f"The kernel waited for it a minute and more after {reset}, {times(total(events))}, and "
                    "gave up: nothing at that address answers."
                    if reset
                    else f"The kernel could not change its power state, {times(total(events))}: nothing at "
                    "that address answers, so a reset of the function does not reach it either."
                )
                + (
                    " It is passed through to virtual machines; one that is given it will not start."
                    if passed
                    else ""
                )
            ),
            events=tuple(events),
            action="cold_power_cycle" if gpu or passed else "observe",
            then=("disable_aspm", "reseat_card_and_riser", "rma_if_it_returns")
            if gpu or passed
            else ("inspect_hardware",),
            count=total(events),
        )


def _summary(device: str, reset: str) -> str:
    if reset == "resume" or not reset:
        return f"{device} does not come out of its sleep state"
    return f"{device} does not come back after {reset}"


RULE = Rule(id="power_state_stuck", rank=57, explain=explain)
