"""The GPU's own firmware processor (GSP) no longer answers the driver."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._recovery import asked
from nodeprep.diagnose.rules._symptoms import WINDOW_S, follows, symptoms
from nodeprep.diagnose.rules._words import called, capital, of, processes, times
from nodeprep.model.diagnosis import Action, Layer

# Source: XID catalogue, combination rules and note of Xid 119: an AER error or Xid 62 before it is the cause.
_CAUSE_WINDOW_S = 120.0
_CAUSES = ("aer.fatal.", "aer.nonfatal.", "dpc.containment", "pciehp.link_down", "xid.62")
_FOLLOW = (
    "xid.43",
    "xid.45",
    "xid.109",
    "xid.154",
    "xid.8",
    "xid.38",
    "xid.13",
    "xid.31",
    "gpu.init_failed",
    "gpu.init_failed_noted",
    "gpu.reset_required",
    "gpu.lost_status",
    "nvml.hang",
    "smi.err_cell",
)
# Source: XID catalogue, note of Xid 119: known driver faults of the 525 branch before this version.
_FIXED_IN = (525, 105, 17)


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a GPU, with all that followed on it."""
    for host, device, faults in evidence.by_device(evidence.open("xid.119", "xid.120")):
        yield _finding(evidence, host, device, faults)
    for host in evidence.hosts:
        alone = evidence.open("gsp.timeout", "gsp.crash", "gsp.errors_limited", host=host)
        if alone:
            yield _finding(evidence, host, alone[0].device or _only_gpu(evidence, host), alone)


def _only_gpu(evidence: Evidence, host: str) -> str:
    """The driver counts GPUs in these lines ("GPU0"); it can mean only one where only one is known."""
    gpus = evidence.gpus(host)
    return gpus[0] if len(gpus) == 1 else ""


def _finding(evidence: Evidence, host: str, device: str, faults: list[Event]) -> Finding:
    first = faults[0]
    causes = [
        event
        for event in evidence.open(*_CAUSES, host=host)
        if evidence.clock.within(event, first, _CAUSE_WINDOW_S)
        and (evidence.topology(host).on_path(event.device, device) is not False if device else True)
        and (event.kind != "xid.62" or event.device == device)
    ]
    root = causes[0] if causes else first
    recovery, entry = asked(evidence, host, device, first)
    after = [
        event
        for event in evidence.open(*_FOLLOW, host=host, device=device or None)
        if follows(evidence, first, event) or event.kind.startswith("gpu.init_failed")
    ]
    after += [
        event
        for event in evidence.open("gsp.", host=host)
        if (not event.device or event.device == device)
        and abs(evidence.clock.seconds(first, event) or 0.0) <= WINDOW_S
    ]
    after += symptoms(evidence, host, first, (119, 120), gpu_dead=True)
    dead = [event for event in after if event.kind == "gpu.init_failed"]
    action: Action = entry.action if entry and entry.code else "reset_gpu"
    then: tuple[str, ...] = (
        *(entry.then if entry else ()),
        "stop_polling_the_gpu",
        "reboot_node_if_reset_fails",
        "cold_power_cycle_if_reboot_fails",
    )
    if dead and _rebooted(first, dead[0]):
        action, then = "cold_power_cycle", ("drain", "inspect_hardware", "rma_if_it_returns")
    version = evidence.driver_version(host)
    then = (*then, "update_driver" if _is_old(version) else "update_driver_if_it_returns")
    layer: Layer = "driver" if root.kind.startswith(("xid.", "gsp.")) else "firmware_pcie"
    return Finding(
        layer=layer,
        severity="critical",
        device=device,
        summary=f"GSP firmware of {of(device)} stopped answering the driver"
        + ("; it stays dead after a reboot" if dead and _rebooted(first, dead[0]) else ""),
        why=_why(faults, root, version, dead, entry.meaning if recovery and entry else ""),
        events=tuple({id(e): e for e in (*causes, *faults, *recovery, *after)}.values()),
        action=action,
        then=then,
        root_event=root.kind,
        root_device=root.device or device,
        count=sum(event.count for event in faults),
    )


def _rebooted(first: Event, later: Event) -> bool:
    one, other = first.lines[0], later.lines[0]
    if one.boot and other.boot:
        return one.boot != other.boot
    return one.uptime_s is not None and other.uptime_s is not None and other.uptime_s < one.uptime_s


def _is_old(version: str) -> bool:
    parts = tuple(int(part) for part in version.split(".") if part.isdecimal())
    return parts[:1] == _FIXED_IN[:1] and parts < _FIXED_IN


def _why(faults: list[Event], root: Event, version: str, dead: list[Event], asks: str) -> str:
    asked_by = processes(faults)
    who = f" {' and '.join(asked_by)} only asked and waited." if asked_by else ""
    count = sum(event.count for event in faults)
    parts = [f"The driver waited {times(count)} in vain for an answer of the GPU's firmware processor.{who}"]
    if root is not faults[0]:
        parts.append(f"{capital(called(root))} came first, within {_CAUSE_WINDOW_S:g} s, and is the cause.")
    if _is_old(version):
        parts.append(
            f"Driver {version} is known for this; it was mended with {'.'.join(map(str, _FIXED_IN))}."
        )
    if asks:
        parts.append(f"The driver's last word on recovery: {asks}.")
    if dead:
        status = str(dead[0].data.get("status") or "")
        reboot = " A warm reboot leaves the board under power." if _rebooted(faults[0], dead[0]) else ""
        parts.append(f"Later the GPU could not be initialised{f' ({status})' if status else ''}.{reboot}")
    return " ".join(parts)


RULE = Rule(id="gsp", rank=20, explain=explain)
