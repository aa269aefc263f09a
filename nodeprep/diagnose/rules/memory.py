"""Memory of a GPU that fails: uncorrectable errors, repairs of rows, and memory that wears out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._recovery import asked
from nodeprep.diagnose.rules._symptoms import follows, symptoms
from nodeprep.diagnose.rules._words import codes, listed, of, times
from nodeprep.model.diagnosis import Action, Severity

_CODES = (48, 63, 64, 92, 94, 95, 140, 171, 172)
_UNCORRECTED = {"xid.48", "xid.94", "xid.95", "xid.140", "xid.171", "xid.172"}
_UNNAMED = ("agent.ecc_double_bit", "cuda.ecc_uncorrectable", "cuda.contained")
_STATE = (
    "smi.remap_failure",
    "smi.remap_pending",
    "smi.retired_pending",
    "smi.remapped_rows",
    "smi.ecc_uncorrected",
    "smi.sram_threshold",
)
_FOLLOW = ("xid.43", "xid.45", "xid.13", "xid.31", "gpu.reset_required")
# One fault prints its lines within seconds; what comes a minute later, or in another boot, is another fault.
_EPISODE_GAP_S = 60.0
# Source: XID catalogue, combination rules: the same place again after a remap, or remaps again and again.
_SAME_PLACE_EPISODES = 2
_EPISODES = 3
_REMAPPED_ROWS = 8


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a GPU."""
    kinds = tuple(f"xid.{code}" for code in _CODES)
    groups: dict[tuple[str, str], list[Event]] = {}
    for event in evidence.open(*kinds, "smi.remap_failure", "smi.sram_threshold"):
        device = event.device or evidence.device_of_uuid(str(event.data.get("uuid", "")))
        groups.setdefault((evidence.host(event), device), []).append(event)
    for host in evidence.hosts:
        unnamed = evidence.open(*_UNNAMED, host=host)
        of_host = [key for key in groups if key[0] == host]
        if not unnamed:
            continue
        if len(of_host) == 1:
            groups[of_host[0]].extend(unnamed)
        elif not of_host and any(event.kind != "cuda.contained" for event in unnamed):
            groups[host, ""] = unnamed
    for (host, device), events in groups.items():
        yield _finding(evidence, host, device, sorted(events, key=evidence.position))


def _finding(evidence: Evidence, host: str, device: str, faults: list[Event]) -> Finding:
    first = faults[0]
    state = evidence.open(*_STATE, host=host, device=device) if device else []
    recovery, entry = asked(evidence, host, device, first)
    after = [
        event
        for event in evidence.open(*_FOLLOW, host=host, device=device)
        if follows(evidence, first, event)
    ]
    if device:
        after += symptoms(evidence, host, first, _CODES)
    else:
        after += [event for event in evidence.open("agent.", host=host) if event.kind != "agent.xid_count"]
    kinds = {event.kind for event in (*faults, *state)}
    worn = _worn(evidence, faults, state)
    severity, action, then = _verdict(kinds, worn=worn)
    if entry and entry.code and not worn and severity != "info" and action != "restart_app":
        action = entry.action if action != "drain" else action
        then = (*entry.then, *then) if action != "drain" else (*then, entry.action, *entry.then)
    elif entry and entry.code and action == "restart_app":
        then = (entry.action, *then)
    return Finding(
        layer="hardware",
        severity=severity,
        device=device,
        summary=_summary(device, faults, worn),
        why=_why(faults, kinds, worn, entry.meaning if entry and entry.code else ""),
        events=tuple({id(e): e for e in (*faults, *state, *recovery, *after)}.values()),
        action=action,
        then=then,
        root_event=first.kind,
        count=len(
            _episodes(evidence, [event for event in faults if event.kind.startswith("xid.")] or faults)
        ),
    )


def _verdict(kinds: set[str], *, worn: str) -> tuple[Severity, Action, tuple[str, ...]]:  # noqa: PLR0911  # a ladder
    if worn:
        return "critical", "drain", ("rma_memory_wears_out", "check_remapped_rows", "run_diagnostics")
    if "smi.remap_failure" in kinds or "smi.sram_threshold" in kinds:
        return "critical", "drain", ("rma",)
    if "xid.64" in kinds:
        return "critical", "drain", ("reset_gpu", "check_remapped_rows", "rma_if_remap_failed")
    if kinds & {"xid.95", "xid.140"}:
        return (
            "critical",
            "reset_gpu",
            (
                "check_remapped_rows",
                "reboot_node_if_reset_fails",
                "rma_if_error_threshold_exceeded",
            ),
        )
    if "xid.94" in kinds:
        return (
            "error",
            "restart_app",
            ("check_remapped_rows", "reset_gpu_if_remap_pending", "restart_device_plugin"),
        )
    if "xid.48" in kinds and "xid.63" in kinds:
        return "critical", "drain", ("reset_gpu", "check_remapped_rows", "rma_if_remap_failed")
    if kinds & {"xid.48", "xid.171", "xid.172"}:
        return "critical", "reset_gpu", ("check_remapped_rows", "rma_if_error_threshold_exceeded")
    if "xid.92" in kinds:
        return "warning", "run_diagnostics", ("check_remapped_rows", "report_to_vendor")
    if "xid.63" in kinds:
        return "info", "observe", ("reset_gpu_if_remap_pending", "check_remapped_rows", "rma_if_remap_failed")
    return (
        "error",
        "run_diagnostics",
        ("read_xid_48_94_95_and_154", "check_remapped_rows", "reset_gpu_if_remap_pending"),
    )


def _episodes(evidence: Evidence, events: Sequence[Event]) -> list[list[Event]]:
    """Events by fault: each with what came within a minute of it in the same boot."""
    found: list[list[Event]] = []
    for event in events:
        last = found[-1][-1] if found else None
        same_boot = last is not None and last.lines[0].boot == event.lines[0].boot
        apart = evidence.clock.gap(last, event) if last else None
        near = same_boot if apart is None else apart <= _EPISODE_GAP_S and (same_boot or apart < 1)
        if found and near:
            found[-1].append(event)
        else:
            found.append([event])
    return found


def _worn(evidence: Evidence, faults: Sequence[Event], state: Sequence[Event]) -> str:
    """Why the memory is dying although each repair went well; "" when it does not look so."""
    episodes = _episodes(evidence, [event for event in faults if event.kind in _UNCORRECTED | {"xid.63"}])
    places: dict[tuple[int, int], int] = {}
    for episode in episodes:
        here = {
            (int(event.data["partition"]), int(event.data.get("subpartition", -1)))
            for event in episode
            if "partition" in event.data
        }
        for place in here:
            places[place] = places.get(place, 0) + 1
    partition, subpartition = max(places, key=lambda place: places[place], default=(0, 0))
    if places and places[partition, subpartition] >= _SAME_PLACE_EPISODES:
        where = f"partition {partition}" + (f", subpartition {subpartition}" if subpartition >= 0 else "")
        return f"{where} failed {times(places[partition, subpartition])}, each time after a repair"
    if len(episodes) >= _EPISODES:
        return f"uncorrectable errors or row repairs came back {times(len(episodes))}"
    rows = [int(event.data.get("rows", 0)) for event in state if event.kind == "smi.remapped_rows"]
    if len(rows) > 1 and max(rows) > rows[0] and max(rows) >= _REMAPPED_ROWS:
        return f"remapped rows went from {rows[0]} to {max(rows)}"
    return ""


def _summary(device: str, faults: list[Event], worn: str) -> str:  # noqa: PLR0911  # a ladder
    kinds = {event.kind for event in faults}
    if worn:
        return f"memory of {of(device)} wears out: {worn}"
    if "smi.remap_failure" in kinds:
        return f"{of(device)} could not repair a memory row"
    if "smi.sram_threshold" in kinds:
        return f"SRAM of {of(device)} made more uncorrectable errors than its limit allows"
    if "xid.64" in kinds:
        return f"{of(device)} could not record a bad memory row for repair (Xid 64)"
    if kinds & {"xid.95", "xid.140"}:
        return (
            f"uncorrectable memory error on {of(device)} that may hit every program (Xid "
            f"{listed(codes(faults))})"
        )
    if "xid.94" in kinds:
        return (
            f"uncorrectable memory error on {of(device)}, contained in one program (Xid "
            f"{listed(codes(faults))})"
        )
    if kinds & _UNCORRECTED:
        return f"uncorrectable memory error on {of(device)} (Xid {listed(codes(faults))})"
    if kinds == {"xid.63"}:
        return f"a memory row of {of(device)} is put down for repair at the next reset (Xid 63)"
    if "xid.92" in kinds:
        return f"{of(device)} corrects memory errors at a high rate (Xid 92)"
    return f"uncorrectable memory error on {of(device)}, told by a program or an agent alone"


def _why(faults: list[Event], kinds: set[str], worn: str, asks: str) -> str:
    parts = []
    if worn:
        parts.append(
            f"In this log {worn}. A repair that has to be made again is no cure, though none of them failed."
        )
    if "smi.sram_threshold" in kinds:
        parts.append("Errors of SRAM cannot be repaired; past its limit the vendor takes the GPU back.")
    if "xid.94" in kinds:
        parts.append(
            "Xid 94 says that the error stayed within the program that used the memory; the others go on."
        )
    if kinds & {"xid.95", "xid.140"}:
        parts.append("Nothing that ran on the GPU at that time can be trusted.")
    if kinds & {"agent.ecc_double_bit"}:
        parts.append("The event of type 2 beside it is NVML's double-bit error.")
    if kinds == {"xid.92"}:
        parts.append(
            "Errors of this kind were corrected and no data was lost; their rate is what is reported."
        )
    if kinds == {"xid.63"}:
        parts.append(
            "The repair was recorded and takes effect with a reset. No error beside it is on record."
        )
    if kinds <= set(_UNNAMED):
        parts.append(
            "CUDA raises this for memory errors alone, so the GPU is meant and not the program. "
            "Which Xid, which row and "
            "which recovery go with it is in the kernel log, which is not here."
        )
    if asks:
        parts.append(f"The driver's last word on recovery: {asks}.")
    if not parts:
        count = sum(event.count for event in faults)
        parts.append(f"The memory of the GPU gave data that could not be corrected, told {times(count)}.")
    return " ".join(parts)


RULE = Rule(id="memory", rank=24, explain=explain)
