"""The bus has a GPU that nvidia-smi, or NVML on a live node, does not know."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.device import same_slot
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import listed, plural

# What keeps a GPU from NVML, and has a finding of its own.
_FAILED = ("gpu.init_failed", "gpu.boot_failed", "gpu.probe_failed", "gpu.fallen_off_bus", "nvml.gpu_lost",
           "gpu.not_probed", "xid.79")  # fmt: skip
_THEN = (
    "check_driver_and_gpu_count",
    "compare_with_inventory",
    "reboot_node",
    "cold_power_cycle_if_reboot_fails",
)


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a host; only where both listings are there and no rule has named the reason."""
    for host in evidence.hosts:
        yield from _not_in_nvml(evidence, host)
        on_bus = {
            event.device: event
            for event in evidence.seen("pci.device", host=host)
            if _is_gpu(evidence, event.device, host)
        }
        known = {event.device: event for event in evidence.seen("smi.gpu", host=host) if event.device}
        if not on_bus or not known:
            continue
        told = {event.device for event in evidence.seen("xid.", "gpu.", "nvml.", host=host) if event.device}
        missing = sorted(set(on_bus) - set(known) - told)
        if missing:
            yield Finding(
                layer="driver",
                severity="error",
                device=missing[0] if len(missing) == 1 else "",
                summary=f"nvidia-smi does not know {plural(len(missing), 'GPU')} that the bus has: "
                f"{listed(missing)}",
                why=(
                    f"The bus lists {plural(len(on_bus), 'GPU')}, nvidia-smi "
                    f"{plural(len(known), 'GPU')}. A GPU can vanish "
                    "without a message; no Xid proves nothing."
                ),
                events=tuple(on_bus[device] for device in missing),
                action="run_diagnostics",
                then=_THEN,
                count=len(missing),
            )


def _not_in_nvml(evidence: Evidence, host: str) -> Iterator[Finding]:
    """One finding for the GPUs that a live node's facts miss and whose failure no other finding has."""
    failed = evidence.seen(*_FAILED, host=host)
    missing = [
        event
        for event in evidence.open("gpu.not_in_nvml", host=host)
        if not any(same_slot(each.device, event.device) for each in failed)
    ]
    names = listed(sorted(event.device for event in missing))
    if missing:
        yield Finding(
            layer="driver",
            severity="error",
            device=missing[0].device if len(missing) == 1 else "",
            summary=f"NVML does not know {plural(len(missing), 'GPU')} that the bus has: {names}",
            why="The bus was read with NVML, and NVML answered without them. A GPU can vanish without a "
            "message; no Xid proves nothing.",
            events=tuple(missing),
            action="run_diagnostics",
            then=_THEN,
            count=len(missing),
        )


def _is_gpu(evidence: Evidence, device: str, host: str) -> bool:
    """Display and 3D controllers; audio functions and bridges of a GPU are none."""
    names = [event for event in evidence.seen("lspci.device", host=host) if event.device == device]
    return any(str(event.data.get("class_name", "")).startswith(("VGA", "3D", "Display")) for event in names)


RULE = Rule(id="gpu_missing", rank=64, explain=explain)
