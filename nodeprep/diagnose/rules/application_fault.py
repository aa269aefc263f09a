"""Faults that a program makes on a GPU, and the same faults when driver or GPU are to blame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nodeprep.diagnose import catalog
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._recovery import asked
from nodeprep.diagnose.rules._symptoms import symptoms
from nodeprep.diagnose.rules._words import codes, duration, listed, of, pids, plural, processes, times, total

# Ranks of one job, and channels of one program, fail within seconds.
_ONE_FAULT_S = 60.0
# The driver takes channels away right after a fault.
_CLEAN_UP_S = 10.0
# Source: workflow of Xid 31: several runs are needed before a GPU is suspected.
_SUSPECT_RUNS = 3
_WHOLE_CHIP_PLACES = 4
# Source: workflow of Xid 31: one virtual address over several GPUs and processes is no accident of a program.
_SAME_ADDRESS = 3
# Interpreters run any program: their name tells nothing. That of a server is one program.
_ANY_PROGRAM = ("python", "pt_main", "ray::", "java", "node", "cuda-evthandlr")
# Clients that no kernel of a program uses: the host's own copies between cards.
_HOST_CLIENTS = ("HUBCLIENT_ESC", "HUBCLIENT_HOST")
_HOST_ENGINES = ("HOST", "BAR", "IFB")


def explain(evidence: Evidence) -> Iterator[Finding]:
    """Driver faults of a fleet first, then of a host, then GPUs under suspicion, then programs."""
    kinds = tuple(
        f"xid.{code}"
        for code, entry in catalog.all_xid().items()
        if entry.layer == "application" and entry.role == "fault" and code != 137
    )
    yield from _same_address(evidence)
    for host in evidence.hosts:
        yield from _host_engine(evidence, host)
        for _, device, events in evidence.by_device(evidence.open(*kinds, host=host)):
            if device and (finding := _suspect(evidence, host, device, events)):
                evidence.explain(finding.events)
                yield finding
        yield from _programs(evidence, host, evidence.open(*kinds, host=host))


def _same_address(evidence: Evidence) -> Iterator[Finding]:
    by_address: dict[str, list[Event]] = {}
    for event in evidence.open("xid.31"):
        if int(str(event.data.get("address", "0")).replace("_", ""), 16):
            by_address.setdefault(str(event.data["address"]), []).append(event)
    for address, events in by_address.items():
        places = {(evidence.host(event), event.device) for event in events}
        hosts = {host for host, _ in places}
        if not (len(hosts) > 1 or (len(places) > 1 and len(pids(events)) >= _SAME_ADDRESS)):
            continue
        after = [each for event in events for each in _clean_up(evidence, evidence.host(event), event)]
        where = plural(len(hosts), "host") if len(hosts) > 1 else plural(len(places), "GPU")
        yield Finding(
            layer="driver",
            severity="error",
            summary=f"MMU faults (Xid 31) at the one address {address} on {where}: a fault of the driver",
            why=(
                f"{plural(len(places), 'GPU')} and {plural(len(pids(events)), 'process')} faulted "
                f"{times(total(events))} "
                f"at {address}. Addresses of programs differ from run to run; one address "
                "everywhere is made by the "
                "driver or a library."
            ).replace("processs", "processes"),
            events=tuple({id(e): e for e in (*events, *after)}.values()),
            action="update_driver",
            then=("report_to_vendor", "run_good_program_on_this_gpu"),
            count=total(events),
        )


def _host_engine(evidence: Evidence, host: str) -> Iterator[Finding]:
    modified = evidence.open("driver.modified", host=host)
    # A copy engine also runs the program's own copies: only beside another sign is the driver meant.
    engines = _HOST_ENGINES + (("CE",) if modified or evidence.seen("iommu.fault", host=host) else ())
    events = [
        event
        for event in evidence.open("xid.31", host=host)
        if event.data.get("client") in _HOST_CLIENTS
        or (
            str(event.data.get("engine", "")).startswith(engines)
            and "HUBCLIENT" in str(event.data.get("client"))
        )
    ]
    if not events:
        return
    devices = tuple(dict.fromkeys(event.device for event in events))
    what = f"{events[0].data.get('engine')} {events[0].data.get('client')}"
    patched = f" The driver is a modified build ({modified[0].data['version']})." if modified else ""
    after = [each for event in events for each in _clean_up(evidence, host, event)]
    yield Finding(
        layer="driver",
        severity="error",
        device=devices[0] if len(devices) == 1 else "",
        summary=f"MMU faults (Xid 31) of the host engine on {plural(len(devices), 'GPU')}: peer "
        "copies and driver do not fit",
        why=(
            f"The faults come from {what}, which copies for the driver between host and peers, not "
            "from a kernel of a "
            f"program, on {plural(len(devices), 'GPU')} at once.{patched} The cards are fine."
        ),
        events=tuple({id(e): e for e in (*modified, *events, *after)}.values()),
        action="update_driver",
        then=("reinstall_vendor_driver", "disable_peer_to_peer", "check_acs_and_iommu")
        if modified
        else ("disable_peer_to_peer", "check_acs_and_iommu", "report_to_vendor"),
        root_event="xid.31",
        count=total(events),
    )


def _suspect(evidence: Evidence, host: str, device: str, events: list[Event]) -> Finding | None:
    """A GPU on which program after process faults."""
    runs = _runs(evidence, events)
    if len(runs) < _SUSPECT_RUNS:
        return None
    names = processes(events)
    own_name = [name for name in names if not name.lower().startswith(_ANY_PROGRAM)]
    if len(names) == 1 and own_name:
        return None
    if _whole_chip(evidence, events):
        return None
    others = [
        event
        for event in evidence.seen(*{event.kind for event in events}, host=host)
        if event.device != device
    ]
    if len(_runs(evidence, others)) >= _SUSPECT_RUNS:
        # The faults move between GPUs: the program or the driver, not this GPU.
        return None
    after = [each for event in events for each in _clean_up(evidence, host, event)]
    after += symptoms(evidence, host, events[0], codes(events))
    apart = evidence.clock.span(events)
    over = f" over {duration(apart)}" if apart is not None else ""
    places = {str(event.data["place"]) for event in events if "place" in event.data}
    same = f" Always the same place of the chip: {places.pop()}." if len(places) == 1 else ""
    return Finding(
        layer="hardware",
        severity="error",
        device=device,
        summary=f"{device} faults under one process after another (Xid {listed(codes(events))})",
        why=(
            f"{len(runs)} processes (pid {listed(pids(events))}) faulted on {device}{over}, and no "
            "other GPU shows it. "
            f"One fault is the program's own; so many on one GPU point at that GPU.{same} None of "
            "these codes means that "
            "memory ran out."
        ),
        events=tuple({id(e): e for e in (*events, *after)}.values()),
        action="run_diagnostics",
        then=("run_good_program_on_this_gpu", "run_program_on_another_gpu", "drain", "rma_if_it_returns"),
        root_event=events[0].kind,
        count=total(events),
    )


def _whole_chip(evidence: Evidence, events: Sequence[Event]) -> bool:
    """Whether one moment hit many places of the chip: a launch that went wrong everywhere, no bad place."""
    placed = [event for event in events if "place" in event.data]
    for first in placed:
        near = {
            str(event.data["place"])
            for event in placed
            if abs(evidence.clock.seconds(first, event) or 0.0) <= _CLEAN_UP_S
        }
        if len(near) >= _WHOLE_CHIP_PLACES:
            return True
    return False


def _runs(evidence: Evidence, events: Sequence[Event]) -> list[Event]:
    """The first event of each run: another process, and not one of the same job."""
    runs: list[Event] = []
    seen: set[int] = set()
    for event in events:
        pid = int(event.data.get("pid", 0))
        if not pid or pid in seen:
            continue
        seen.add(pid)
        apart = evidence.clock.seconds(runs[-1], event) if runs else None
        if runs and (apart is None or abs(apart) <= _ONE_FAULT_S):
            continue
        runs.append(event)
    return runs


def _programs(evidence: Evidence, host: str, events: list[Event]) -> Iterator[Finding]:
    """One finding for each fault of a program: its processes, its GPUs, its moment."""
    left = list(events)
    while left:
        first = left[0]
        group = [event for event in left if event is first or _one_program(evidence, first, event)]
        taken = set(map(id, group))
        left = [event for event in left if id(event) not in taken]
        yield _program(evidence, host, group)


def _one_program(evidence: Evidence, first: Event, event: Event) -> bool:
    pid, other = first.data.get("pid"), event.data.get("pid")
    if pid and pid == other:
        return True
    name, other_name = first.data.get("process"), event.data.get("process")
    if name and name == other_name and (event.device == first.device or event.kind == first.kind):
        return True
    apart = evidence.clock.seconds(first, event)
    if pid is None or other is None:
        return event.device == first.device
    return apart is not None and abs(apart) <= _CLEAN_UP_S and event.kind == first.kind


def _program(evidence: Evidence, host: str, events: list[Event]) -> Finding:
    devices = tuple(dict.fromkeys(event.device for event in events))
    device = devices[0] if len(devices) == 1 else ""
    entry = catalog.xid(int(events[0].data["code"]))
    after = [each for event in events for each in _clean_up(evidence, host, event)]
    after += symptoms(evidence, host, events[0], codes(events))
    recovery, asks = asked(evidence, host, device, events[0]) if device else ([], None)
    needs = asks is not None and asks.code != 0
    who = listed([f"{name}" for name in processes(events)]) or "a program"
    where = of(device) if device else plural(len(devices), "GPU")
    parts = [f"{entry.meaning[0].upper()}{entry.meaning[1:]}, {times(total(events))}, by {who} on {where}."]
    if found := pids(events):
        parts.append(f"Process id {listed(found[:8])}.")
    if len(devices) > 1:
        parts.append(
            "The same program faults on more than one GPU, so the program is at fault and not a GPU."
        )
    if entry.code in (13, 31):
        parts.append("It is no lack of memory, which raises no Xid.")
    if needs and asks:
        parts.append(f"The driver's last word on recovery: {asks.meaning}.")
    # A fault of a program ends its channel; it never costs the GPU or the node.
    beyond = needs and asks is not None and asks.severity == "critical"
    if beyond:
        parts.append("A program's own fault needs neither reset nor reboot, so the driver's state is broken.")
    return Finding(
        layer="driver" if beyond else "application",
        severity="critical" if beyond else "error",
        device=device,
        summary=f"{who} made a fault on {where}: Xid {listed(codes(events))}, {entry.meaning}",
        why=" ".join(parts),
        events=tuple({id(e): e for e in (*events, *after, *recovery)}.values()),
        action=asks.action if needs and asks else "restart_app",
        then=(*asks.then, *entry.then) if needs and asks else (*entry.then, "run_program_on_another_gpu"),
        root_event=events[0].kind,
        count=total(events),
    )


def _clean_up(evidence: Evidence, host: str, fault: Event) -> list[Event]:
    """Channels that the driver took away because of a fault."""
    return [
        event
        for event in evidence.open("xid.43", "xid.45", "xid.109", "xid.174", host=host, device=fault.device)
        if event.data.get("caused_by") == fault.data["code"]
        or (event.data.get("pid") and event.data.get("pid") == fault.data.get("pid"))
        or evidence.clock.within(fault, event, _CLEAN_UP_S, slack_s=1.0)
    ]


RULE = Rule(id="application_fault", rank=40, explain=explain)
