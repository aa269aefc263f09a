"""Firmware gave a GPU's memory window no room."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.device import same_slot
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import of


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a GPU, and one for information a host for all other devices."""
    for host in evidence.hosts:
        gpus = evidence.gpus(host)
        groups: dict[str, list[Event]] = {}
        others: list[Event] = []
        for event in evidence.open("gpu.bar_missing", "pci.bar_unassigned", host=host):
            is_gpu = event.kind == "gpu.bar_missing" or any(same_slot(event.device, gpu) for gpu in gpus)
            (groups.setdefault(event.device, []) if is_gpu else others).append(event)
        for device, events in groups.items():
            # The kernel tries again after a first failure; only the driver's word is final.
            final = any(event.kind == "gpu.bar_missing" for event in events)
            after = evidence.open("gpu.init_failed", "gpu.init_failed_noted", host=host, device=device)
            after += evidence.open("gpu.probe_failed", "gpu.none_found", host=host)
            yield Finding(
                layer="config",
                severity="error" if final or after else "warning",
                device=device,
                summary=f"the memory window (BAR) of {of(device)} got no address space",
                why=(
                    "Firmware left too little room above 4 GiB for the GPU's window, so the driver "
                    "cannot reach its memory. "
                    "The card is fine."
                    if final or after
                    else "The kernel could not place a window at its first try; the driver did not "
                    "complain later."
                ),
                events=(*events, *after),
                action="fix_config",
                then=("enable_above_4g_decoding", "use_pci_realloc_as_stopgap"),
            )
        if others:
            yield Finding(
                layer="config",
                severity="info",
                summary="the kernel could not place windows of devices that are no GPUs",
                why="Hot-plug bridges and option ROMs ask for room that they never use.",
                events=tuple(others),
                action="none",
            )


RULE = Rule(id="gpu_address_space", rank=30, explain=explain)
