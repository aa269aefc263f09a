"""A GPU no longer answers over PCIe: what went before it on its link, or above all lost GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.device import domain, same_slot
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._lost_gpu import CAUSE_WINDOW_S, TOGETHER_S, summary, why
from nodeprep.diagnose.rules._symptoms import WINDOW_S, follows, same_boot, symptoms
from nodeprep.model.diagnosis import Layer

_LOSSES = (
    "xid.79",
    "xid.167",
    "gpu.fallen_off_bus",
    "gpu.fallen_off_bus_noted",
    "nvml.gpu_lost",
    "nvml.no_handle",
)
# The link itself, then what stands above it.
_LINK = (
    "aer.fatal.",
    "aer.nonfatal.",
    "aer.firmware_first.",
    "dpc.containment",
    "pciehp.link_down",
    "pciehp.card_not_present",
    "ghes.pcie",
    "sel.pcie_fatal",
    "gpu.power_state_stuck",
    "gpu.never_ready",
)
_POWER = (
    "sel.power_supply",
    "sel.power_input",
    "sel.power_redundancy",
    "smi.power_brake",
    "sel.temperature",
    "sel.thermal_trip",
    "smi.hw_thermal",
)
# The driver notices by a read that fails, sometimes before the port's interrupt is served.
_SLACK_S = 2.0
# Corrected errors up to an hour before are worth telling, not the cause; so are those before them without a
# longer pause.
_PRECURSOR_WINDOW_S = 3600.0
_THEN = ("reboot_node", "cold_power_cycle_if_reboot_fails", "inspect_hardware", "rma_if_it_follows_the_card")


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a lost GPU, or one for those that went together."""
    for host in evidence.hosts:
        lost: dict[str, list[Event]] = {}
        told = [*evidence.open(*_LOSSES, host=host), *_all_ones(evidence, host)]
        # Calls fail so after any loss; they are news only where its own line is not in the log.
        if not told and not evidence.seen("xid.79", "xid.119", "xid.120", host=host):
            told = evidence.open("gpu.lost_status", host=host)
        for event in told:
            lost.setdefault(event.device, []).append(event)
        _spread_unnamed(lost)
        while lost:
            first = min(lost, key=lambda device: evidence.position(lost[device][0]))
            group = [
                device
                for device in lost
                if device == first
                or abs(evidence.clock.seconds(lost[first][0], lost[device][0]) or 1e9) <= TOGETHER_S
            ]
            yield _finding(evidence, host, group, [event for device in group for event in lost.pop(device)])


def _all_ones(evidence: Evidence, host: str) -> list[Event]:
    """GPUs that lspci shows as "rev ff": every read of their configuration comes back as ones."""
    listed_ = evidence.open("lspci.device", host=host)
    return [
        event
        for event in listed_
        if event.data["vendor"] == "nvidia" and "(rev ff)" in str(event.data["name"])
    ]


def _spread_unnamed(lost: dict[str, list[Event]]) -> None:
    """A loss without an address is that of the only GPU that is named."""
    named = [device for device in lost if device]
    if "" in lost and len(named) == 1:
        lost[named[0]].extend(lost.pop(""))


def _finding(evidence: Evidence, host: str, devices: list[str], losses: list[Event]) -> Finding:
    losses.sort(key=evidence.position)
    loss = losses[0]
    causes = [
        event for event in evidence.open(*_LINK, host=host) if _may_cause(evidence, event, loss, devices)
    ]
    power = [event for event in evidence.open(*_POWER, host=host) if _near(evidence, event, loss)]
    corrected = _run_up(evidence, host, loss, devices)
    after = [
        event
        for device in devices
        for event in evidence.open("xid.", "gpu.", "gsp.", "smi.err_cell", host=host, device=device)
        if event not in losses
        and event.kind != "gpu.identity"
        # A lost GPU stays lost until the reboot, so its failures do not end with a window.
        and follows(evidence, loss, event, float("inf") if event.kind.startswith("gpu.") else WINDOW_S)
        # An Xid after a reboot is of a GPU that came back: a fault of its own.
        and (not event.kind.startswith("xid.") or same_boot(loss, event))
    ]
    # Older drivers name no GPU where they cannot start one.
    after += [
        event
        for event in evidence.open("gpu.init_failed", "gpu.init_failed_noted", host=host)
        if not event.device and follows(evidence, loss, event)
    ]
    # The kernel's own attempts at the link go on for a while; they tell nothing new.
    after += [
        event
        for event in evidence.open("aer.", "dpc.", "pciehp.", host=host)
        if evidence.clock.within(loss, event, CAUSE_WINDOW_S) and _related(evidence, host, event, devices)
    ]
    after += [
        event
        for event in evidence.open("aer.recovery_failed", "aer.recovered", "dpc.recovered", host=host)
        if _near(evidence, event, loss) and _related(evidence, host, event, devices)
    ]
    if len(devices) == 1:
        after += [event for event in evidence.open("xid.154", host=host) if not event.device]
    after += evidence.open("gpu.probe_failed", "gpu.boot_failed", "gpu.lost_status", host=host)
    # The kernel counts what a dying link did, also where its log has no line of it.
    after += [
        event
        for event in evidence.open("aer_counter.fatal.", "aer_counter.nonfatal.", host=host)
        if {event.device, *event.data.get("below", ())} & set(devices)
    ]
    late = [
        event
        for event in evidence.open("xid.119", "xid.120", "xid.62", host=host)
        if event.device in devices and _near(evidence, event, loss)
    ]
    after += symptoms(evidence, host, loss, (79,), gpu_dead=True)
    near = [event for event in corrected if _near(evidence, event, loss)]
    root = min((*causes, *power, *near), key=evidence.position, default=loss)
    if causes:
        root = _telling(evidence, causes)
    device = devices[0] if len(devices) == 1 else ""
    shared = evidence.topology(host).shared(devices) if len(devices) > 1 else ""
    layer: Layer = "hardware" if root in power else "firmware_pcie"
    then = ("check_power_supply", *_THEN) if root in power else _THEN
    return Finding(
        layer=layer,
        severity="critical",
        device=device,
        summary=summary(devices, losses, root, shared),
        why=why(evidence, devices, losses, root=root, corrected=corrected, shared=shared),
        events=tuple({id(e): e for e in (*corrected, *causes, *power, *late, *losses, *after)}.values()),
        action="drain",
        then=("check_upstream_device", *then) if len(devices) > 1 else then,
        root_event=root.kind,
        root_device=shared or root.device or device,
        count=_count(evidence, devices, losses),
    )


def _run_up(evidence: Evidence, host: str, loss: Event, devices: list[str]) -> list[Event]:
    """Corrected errors on the path before a loss, back to the first pause that is longer than an hour."""
    found: list[Event] = []
    for event in reversed(evidence.open("aer.corrected.", host=host)):
        if not _related(evidence, host, event, devices):
            continue
        begins = evidence.clock.seconds(event, loss)
        pause = evidence.clock.gap(event, found[-1] if found else loss)
        before = begins is not None and begins >= -_SLACK_S
        if (before and pause is not None and pause <= _PRECURSOR_WINDOW_S) or evidence.clock.within(
            event, loss, _PRECURSOR_WINDOW_S, slack_s=_SLACK_S
        ):
            found.append(event)
    return found[::-1]


def _telling(evidence: Evidence, causes: list[Event]) -> Event:
    """The first cause; of a port that contains, reports and unplugs in one moment, the error's own type."""
    first = min(causes, key=evidence.position)
    named = (
        event
        for event in causes
        if event.kind.startswith(("aer.fatal", "aer.nonfatal"))
        and event.device == first.device
        and abs(evidence.clock.seconds(first, event) or 0.0) <= _SLACK_S
    )
    return next(named, first)


def _may_cause(evidence: Evidence, event: Event, loss: Event, devices: list[str]) -> bool:
    return _near(evidence, event, loss) and _related(evidence, evidence.host(loss), event, devices)


def _near(evidence: Evidence, event: Event, loss: Event) -> bool:
    return evidence.clock.within(event, loss, CAUSE_WINDOW_S, slack_s=_SLACK_S)


def _related(evidence: Evidence, host: str, event: Event, devices: list[str]) -> bool:
    """Whether an error's device is a lost GPU or a port above it, as far as anything tells."""
    if not event.device:
        return True
    if any(same_slot(event.device, device) for device in devices):
        return True
    topology = evidence.topology(host)
    known = [topology.on_path(event.device, device) for device in devices]
    if any(known):
        return True
    if any(answer is None for answer in known):
        # Nothing is known of the tree: a port may be above the GPU, another endpoint is not. A BMC mostly
        # names the port.
        return (_is_port(event) or event.kind.startswith("sel.")) and domain(event.device) in map(
            domain, filter(None, devices)
        )
    return False


def _is_port(event: Event) -> bool:
    text = " ".join(line.text for line in event.lines)
    return "pcieport" in text or "pciehp" in text or "DPC" in text or "oot Port" in text


def _count(evidence: Evidence, devices: list[str], losses: list[Event]) -> int:
    """How often GPUs were lost: what is said several times of one loss is one."""
    count = 0
    last: dict[str, Event] = {}
    for event in losses:
        before = last.get(event.device)
        apart = evidence.clock.gap(before, event) if before else None
        if before is None or (apart or 0.0) > CAUSE_WINDOW_S:
            # Of many that are one event it is not known whether they are of several losses.
            count += 1 if event.last else event.count
        last[event.device] = event
    return max(count, len(devices))


RULE = Rule(id="gpu_lost", rank=10, explain=explain)
