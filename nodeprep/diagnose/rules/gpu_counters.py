"""What nvidia-smi shows of a GPU whose fault no log tells: repairs that wait, errors counted, slowdowns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from nodeprep.diagnose import catalog
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import of
from nodeprep.model.diagnosis import Action, Severity


@dataclass(frozen=True, slots=True)
class _Shown:
    """What a field that is set means."""

    summary: str
    why: str
    severity: Severity
    action: Action
    then: tuple[str, ...]


_FIELDS = {
    "smi.remap_pending": _Shown(
        "a row repair waits for a reset", "The spare row is used after the next reset; the GPU "
            "works until then.",
        "warning", "reset_gpu", ("check_remapped_rows", "rma_if_remap_failed"),
    ),
    "smi.retired_pending": _Shown(
        "a page retirement waits for a reload of the driver", "The bad page stays in use until the "
            "driver is loaded again.",
        "warning", "reset_gpu", ("reboot_node_if_reset_fails",),
    ),
    "smi.power_brake": _Shown(
        "the power brake slowed the GPU down", "Power supply or board pulled the brake: the node "
            "gives too little power.",
        "warning", "run_diagnostics", ("check_power_supply", "check_power_cables", "read_sel"),
    ),
    "smi.hw_thermal": _Shown(
        "heat slowed the GPU down", "The hardware's own limit was reached: cooling is too weak for the load.",
        "warning", "run_diagnostics", ("check_cooling", "read_sel"),
    ),
    "smi.hw_slowdown": _Shown(
        "the hardware slowed the GPU down", "Heat or power; the fields beside it say which.",
        "warning", "run_diagnostics", ("check_cooling", "check_power_supply"),
    ),
    "smi.sw_thermal": _Shown(
        "the driver lowered the clocks to keep the temperature", "The GPU works at its limit of heat; "
            "nothing is broken, and it is slower than it could be.",
        "info", "observe", ("check_cooling", "compare_with_siblings"),
    ),
    "smi.remapped_rows": _Shown(
        "rows were repaired in the past", "Repairs that are done and none pending: the memory is whole.",
        "info", "observe", ("check_remapped_rows",),
    ),
}  # fmt: skip


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a GPU and field; the recovery action by its number."""
    for _, device, events in evidence.by_device(evidence.open("smi.recovery_action")):
        yield _recovery(device, events)
    for host, device, events in evidence.by_device(evidence.open("smi.ecc_uncorrected")):
        volatile = [event for event in events if event.data.get("scope") != "aggregate"]
        now = bool(volatile)
        yield Finding(
            layer="hardware",
            severity="error" if now else "info",
            device=device,
            summary=f"{of(device)} counted uncorrectable memory errors"
            + (" since its driver was loaded" if now else " in its life, none since its driver was loaded"),
            why=(
                "The count is of this driver load, so the error is not cured yet; the kernel log has its Xid."
                if now
                else "Lifetime counts never go back; the GPU has been reset since."
            ),
            events=(
                *events,
                *evidence.open("smi.remap_pending", "smi.remapped_rows", host=host, device=device),
            ),
            action="reset_gpu" if now else "observe",
            then=("read_xid_48_94_95_and_154", "check_remapped_rows", "rma_if_remap_failed"),
            count=1,
        )
    for kind, shown in _FIELDS.items():
        for host, device, events in evidence.by_device(evidence.open(kind)):
            beside = evidence.open("smi.hw_slowdown", "smi.remapped_rows", host=host, device=device or None)
            yield Finding(
                layer="hardware",
                severity=shown.severity,
                device=device,
                summary=f"{of(device)}: {shown.summary}",
                why=shown.why,
                events=tuple({id(e): e for e in (*events, *beside)}.values()),
                action=shown.action,
                then=shown.then,
                root_event=kind,
                count=1,
            )


def _recovery(device: str, events: list[Event]) -> Finding:
    last = events[-1]
    code = last.data.get("code")
    entry = catalog.recovery(int(code) if code is not None else -1)
    return Finding(
        layer="driver",
        severity=entry.severity,
        device=device,
        summary=f"{of(device)}: {entry.meaning}",
        why=f"nvidia-smi shows the recovery action: {last.data['text']}. Counters may be zero while "
        "it is due.",
        events=tuple(events),
        action=entry.action,
        then=(*entry.then, "read_kernel_log"),
        count=1,
    )


RULE = Rule(id="gpu_counters", rank=36, explain=explain)
