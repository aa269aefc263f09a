"""What is said of a GPU that no longer answers over PCIe, and of what came before."""

from __future__ import annotations

from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rules._words import called, capital, duration, listed, of, plural, times, total

# Source: XID catalogue, combination rules: an error on the path within 120 s before is the cause.
CAUSE_WINDOW_S = 120.0
# Source: XID catalogue, combination rules: several GPUs in one second; the driver works through them.
TOGETHER_S = 5.0
# What only the kernel says; of pasted text nothing else tells whose log it is.
_OF_THE_KERNEL = ("xid.", "gpu.", "aer.", "dpc.", "pciehp.", "gsp.", "driver.")
_KERNEL_LOGS = ("dmesg", "kmsg")


def summary(devices: list[str], losses: list[Event], root: Event, shared: str) -> str:  # noqa: PLR0911  # one return a story
    xid = " (Xid 79)" if any(event.kind == "xid.79" for event in losses) else ""
    if len(devices) > 1:
        above = f"; all are below {shared}" if shared else ", so what they share is at fault"
        return (
            f"{plural(len(devices), 'GPU')} fell off the bus together{xid}{above}: {listed(map(of, devices))}"
        )
    device = of(devices[0])
    if root in losses:
        if all(event.kind == "nvml.no_handle" for event in losses):
            return f"{device} gives no handle to NVML: it no longer answers"
        return f"{device} fell off the bus{xid}"
    if root.kind.startswith(("sel.", "smi.")):
        return f"{device} fell off the bus{xid} right after a power or cooling event ({called(root)})"
    if root.kind in ("gpu.power_state_stuck", "gpu.never_ready"):
        return f"{device} did not come out of its sleep state and fell off the bus{xid}"
    if root.kind.startswith("aer.corrected"):
        return f"link of {device} made corrected errors and then {device} fell off the bus{xid}"
    return (
        f"link of {device} died at {root.device or 'a port'}; {'Xid 79' if xid else 'the loss'} "
        "is the consequence"
    )


def why(
    evidence: Evidence,
    devices: list[str],
    losses: list[Event],
    *,
    root: Event,
    corrected: list[Event],
    shared: str,
) -> str:
    loss = losses[0]
    parts = []
    if len(devices) > 1:
        parts.append(
            f"{plural(len(devices), 'GPU')} went within {TOGETHER_S:g} s of each other. Several "
            "cards do not break "
            "at one moment; a PCIe switch, root port, baseboard or power supply above them does."
        )
        if shared:
            parts.append(f"The nearest port above all of them is {shared}.")
    if root not in losses:
        apart = evidence.clock.nearest(root, loss)
        when = (
            f"{duration(abs(apart))} {'before' if apart >= 0 else 'after'}"
            if apart is not None
            else "just before"
        )
        parts.append(
            f"{capital(called(root))} at {root.device or 'the host'} came {when} the loss, within the "
            f"{CAUSE_WINDOW_S:g} s in "
            "which an error on the path is its cause."
        )
    elif loss.kind == "gpu.lost_status":
        parts.append("The log has only the calls that failed for it; the loss itself came before them.")
    else:
        parts.append(_nothing_before(evidence, loss, corrected))
    first = corrected[0] if corrected else None
    if first and first is not root and (apart := evidence.clock.seconds(first, loss)) is not None:
        often = times(total(corrected))
        parts.append(f"Corrected errors on the path came {often}, the first {duration(apart)} before.")
    return " ".join(parts)


def _nothing_before(evidence: Evidence, loss: Event, corrected: list[Event]) -> str:
    """What is known of the time before a loss that nothing explains."""
    if not _has_kernel_log(evidence, evidence.host(loss)):
        return (
            "What was read shows no kernel log of its host to look in: "
            "what came on its link before the loss is not known."
        )
    if any(event.last and (evidence.clock.gap(event, loss) or 0.0) < 0 for event in corrected):
        return (
            "Corrected errors of its link came before and after the loss, too many to keep the time of each: "
            f"whether one came in the {CAUSE_WINDOW_S:g} s before it is not known."
        )
    return (
        f"No error of its link, of power or of cooling is on record in the {CAUSE_WINDOW_S:g} "
        "s before the loss."
    )


def _has_kernel_log(evidence: Evidence, host: str) -> bool:
    """Whether anything that was read is of the kernel's log of a host."""
    if any(
        line.kernel or (line.kernel is None and event.kind.startswith(_OF_THE_KERNEL))
        for event in evidence.events
        if evidence.host(event) == host
        for line in event.lines
    ):
        return True
    # These formats name no host, so they are of the one host that there is.
    return len(evidence.hosts) == 1 and any(each.format.startswith(_KERNEL_LOGS) for each in evidence.inputs)
