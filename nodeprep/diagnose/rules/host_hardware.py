"""Memory, CPUs or other devices of the host fail; no GPU is to blame."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose.device import same_slot
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._words import listed, of, times, total
from nodeprep.model.diagnosis import Action, Severity

_MEMORY = ("edac.uncorrected", "mce.memory_failure", "sel.memory_uncorrected", "ghes.memory", "bert.memory")
_CPU = ("mce.uncorrected", "ghes.processor", "bert.processor", "sel.processor")
_CORRECTED = ("edac.corrected", "mce.corrected", "sel.memory_corrected", "mce.logged")
# Source: EDAC and memory vendors: corrected errors at this number in one log mean a module to watch.
_MANY_CORRECTED = 100
# As for AER: a handful is what links of a healthy machine make in days.
_SOME_CORRECTED = 10
_NVIDIA = "10de"
_SAID: dict[str, Severity] = {"corrected": "warning", "info": "info", "fatal": "critical"}


def explain(evidence: Evidence) -> Iterator[Finding]:
    """Uncorrected memory, processor, devices that firmware reports, corrected errors."""
    for host in evidence.hosts:
        yield from _memory(evidence, host)
        yield from _processor(evidence, host)
        for _, device, events in evidence.by_device(
            evidence.open(
                "ghes.pcie",
                "bert.pcie",
                "ghes.other",
                "bert.other",
                "ghes.firmware",
                "bert.firmware",
                host=host,
            )
        ):
            yield _device(evidence, host, device, events)
        corrected = evidence.open(*_CORRECTED, "ghes.memory", "ghes.processor", host=host)
        if corrected:
            yield _corrected(corrected)


def _memory(evidence: Evidence, host: str) -> Iterator[Finding]:
    events = [event for event in evidence.open(*_MEMORY, host=host) if _is_grave(event)]
    if not events:
        return
    places = list(dict.fromkeys(str(event.data["place"]) for event in events if event.data.get("place")))
    places += [str(event.data["dimm"]) for event in events if event.data.get("dimm")]
    noted = evidence.open("mce.logged", "mce.uncorrected", "mce.memory_failure", host=host)
    yield Finding(
        layer="host",
        severity="critical",
        summary=f"host memory error that could not be corrected{f' at {listed(places)}' if places else ''}",
        why=(
            f"The memory controller or firmware reported it {times(total(events))}. It is memory of "
            "the host, not of a "
            "GPU; what crashed after it is not the GPU's fault."
        ),
        events=tuple({id(e): e for e in (*events, *noted)}.values()),
        action="drain",
        then=("replace_dimm", "read_sel", "reboot_node"),
        root_event=events[0].kind,
        count=total(events),
    )


def _is_grave(event: Event) -> bool:
    if not event.kind.startswith(("ghes.", "bert.")):
        return True
    return event.data.get("severity") not in ("corrected", "info")


def _processor(evidence: Evidence, host: str) -> Iterator[Finding]:
    events = [event for event in evidence.open(*_CPU, host=host) if _is_grave(event)]
    if events:
        noted = evidence.open("mce.logged", host=host)
        yield Finding(
            layer="host",
            severity="critical",
            summary="a CPU reported a machine check that could not be corrected",
            why=f"Told {times(total(events))} by CPU or firmware. The host is at fault, not a GPU.",
            events=(*events, *noted),
            action="drain",
            then=("read_sel", "reboot_node", "replace_cpu_or_board_if_it_returns"),
            root_event=events[0].kind,
            count=total(events),
        )


def _device(evidence: Evidence, host: str, device: str, events: list[Event]) -> Finding:
    first = events[0]
    vendor = str(first.data.get("vendor", "")).lower()
    gpu = vendor == _NVIDIA or any(same_slot(device, known) for known in evidence.gpus(host))
    said = str(first.data.get("severity", ""))
    severity = _SAID.get(said, "error")
    if said == "corrected" and total(events) <= _SOME_CORRECTED:
        severity = "info"
    action: Action = "observe" if severity in ("info", "warning") else "drain"
    before = " on the previous boot" if first.kind.startswith("bert.") else ""
    aer = evidence.open("aer.firmware_first.", host=host, device=device) if device else []
    return Finding(
        layer="firmware_pcie" if gpu else "host",
        severity=severity,
        device=device,
        summary=f"firmware reported a {said or 'hardware'} error of {device or 'the platform'}{before}"
        + ("" if gpu or not vendor else f", which is no GPU (vendor {vendor})"),
        why=(
            f"Firmware saw the error first and told the kernel {times(total(events))} "
            f"(section: {first.data.get('section', 'not named')})."
            + (f" The device is {of(device)}, a GPU." if gpu else "")
            + (f" Vendor id {vendor} is not NVIDIA's, so no GPU is to blame." if vendor and not gpu else "")
        ),
        events=(*events, *aer),
        action=action,
        then=("read_sel",)
        if severity == "info"
        else ("read_sel", "inspect_hardware")
        if gpu
        else ("replace_nvme_or_named_device", "read_sel")
        if device
        else ("read_sel", "report_to_vendor"),
        root_event=first.kind,
        count=total(events),
    )


def _corrected(events: list[Event]) -> Finding:
    count = total([event for event in events if event.kind != "mce.logged"])
    places = list(dict.fromkeys(str(event.data["place"]) for event in events if event.data.get("place")))
    many = count >= _MANY_CORRECTED
    return Finding(
        layer="host",
        severity="warning" if many else "info",
        summary=f"the host corrected memory or CPU errors {times(max(1, count))}"
        + (f" at {listed(places[:4])}" if places else ""),
        why="Corrected errors lose nothing."
        + (f" {_MANY_CORRECTED} and more in one log mark a module to watch." if many else ""),
        events=tuple(events),
        action="observe",
        then=("replace_dimm", "read_sel") if many else ("read_sel",),
        count=max(1, count),
    )


RULE = Rule(id="host_hardware", rank=64, explain=explain)
