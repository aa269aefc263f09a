"""The driver could not bring a GPU up, for no reason that the log shows."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.device import same_slot
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._symptoms import symptoms
from nodeprep.diagnose.rules._words import of, times
from nodeprep.model.diagnosis import Action

_STUCK = ("gpu.power_state_stuck", "gpu.never_ready")


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a GPU."""
    for host in evidence.hosts:
        groups: dict[str, list[Event]] = {}
        for event in evidence.open("gpu.init_failed", "gpu.init_failed_noted", "xid.143", host=host):
            groups.setdefault(event.device, []).append(event)
        loose = evidence.open(
            "gpu.boot_failed", "gpu.probe_failed", "gpu.power_state_stuck", "gpu.never_ready", host=host
        )
        if not groups and evidence.open("gpu.firmware_missing", host=host):
            yield _firmware_alone(evidence, host)
        elif not groups and any(event.kind not in _STUCK for event in loose):
            refused = {event.device for event in loose if event.device and event.kind not in _STUCK}
            groups[refused.pop() if len(refused) == 1 else ""] = []
        for device, events in groups.items():
            yield _finding(evidence, host, device, events, loose, alike=_alike(groups))


def _firmware_alone(evidence: Evidence, host: str) -> Finding:
    missing = evidence.open("gpu.firmware_missing", host=host)
    return Finding(
        layer="driver",
        severity="error",
        device=next((event.device for event in missing if event.device), ""),
        summary="the driver's GSP firmware could not be loaded",
        why=(
            "The kernel did not find the firmware of the driver's own version: driver and firmware package "
            "are not of one version, or the installation broke off."
        ),
        events=tuple(missing),
        action="update_driver",
        then=("match_driver_and_firmware", "reboot_node"),
    )


def _alike(groups: dict[str, list[Event]]) -> int:
    """How many GPUs fail with one and the same status; 0 when that tells nothing."""
    statuses = {
        str(event.data["status"]) for events in groups.values() for event in events if "status" in event.data
    }
    return len(groups) if len(groups) > 1 and len(statuses) == 1 and "" not in statuses else 0


def _finding(
    evidence: Evidence, host: str, device: str, events: list[Event], loose: list[Event], *, alike: int
) -> Finding:
    loose = [event for event in loose if event.kind not in _STUCK or same_slot(event.device, device)]
    every = sorted((*events, *loose), key=evidence.position)
    stuck = [event for event in loose if event.kind in _STUCK]
    missing = evidence.open("gpu.firmware_missing", host=host)
    gsp = [
        event for event in loose if event.kind == "gpu.boot_failed" and "riscv" in event.lines[0].text.lower()
    ]
    gfw = [event for event in loose if "GFW" in event.lines[0].text]
    failed = [event for event in events if event.kind == "gpu.init_failed"]
    status = str(failed[0].data.get("status") or "") if failed else ""
    action: Action = "reboot_node"
    then: tuple[str, ...] = (
        "cold_power_cycle_if_reboot_fails",
        "reseat_card_and_riser",
        "update_driver_if_it_returns",
        "rma_if_it_returns",
    )
    parts = [f"RmInitAdapter failed {times(len(failed) or 1)}{f' (status {status})' if status else ''}."]
    if missing:
        parts.append(
            "The GSP firmware of the driver's own version is not where the kernel looks for it: driver and "
            "firmware package are not of one version, or the installation broke off."
        )
        action, then = "update_driver", ("match_driver_and_firmware", "reboot_node", "report_to_vendor")
    if stuck:
        parts.append("The device does not leave its sleep state, so nothing on it answers.")
        action, then = "cold_power_cycle", ("reseat_card_and_riser", "disable_aspm", "rma_if_it_returns")
    if gsp:
        parts.append(
            "The GPU's firmware processor did not boot, which mostly is driver, firmware or VBIOS "
            "not fitting."
        )
        then = ("update_driver_if_it_returns", *then)
    if gfw:
        parts.append("The firmware on the board (GFW) never finished its own boot, before any driver came.")
        then = ("cold_power_cycle_if_reboot_fails", "reseat_card_and_riser", "rma_if_it_returns")
    if alike and not (stuck or gfw or missing):
        parts.append(
            f"{alike} GPUs of this host fail with the same status. Cards do not break alike: driver, "
            "firmware settings or, in a virtual machine, its set-up come first."
        )
        then = ("update_driver_if_it_returns", "check_slot_and_bios_settings", *then)
    if not missing:
        parts.append("The log shows neither a lost link nor a missing address window as its reason.")
    return Finding(
        layer="driver",
        severity="critical",
        device=device,
        summary=f"the driver could not initialise {of(device)}" + (f" ({status})" if status else ""),
        why=" ".join(parts),
        events=tuple(
            {
                id(e): e
                for e in (*missing, *every, *symptoms(evidence, host, every[0], (143,), gpu_dead=True))
            }.values()
        ),
        action=action,
        then=then,
        root_event=failed[0].kind if failed else every[0].kind,
        count=len(failed) or 1,
    )


RULE = Rule(id="gpu_init", rank=56, explain=explain)
