"""Faults of programs right after an uncorrected error on their GPU's link are consequences of it."""

from __future__ import annotations

from collections.abc import Iterator

from nodeprep.diagnose import catalog
from nodeprep.diagnose.device import same_slot
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.rule import Finding, Rule
from nodeprep.diagnose.rules._symptoms import follows, symptoms
from nodeprep.diagnose.rules._words import called, capital, codes, listed, of, total

# Source: XID catalogue, note of Xid 31 and combination rules: what came before on the path within 120 s.
_CAUSE_WINDOW_S = 120.0
_ERRORS = ("aer.fatal.", "aer.nonfatal.", "aer.firmware_first.")
_FAULTS = ("xid.13", "xid.31", "xid.32", "xid.43", "xid.45")


def explain(evidence: Evidence) -> Iterator[Finding]:
    """One finding a GPU."""
    for host in evidence.hosts:
        errors = [event for event in evidence.open(*_ERRORS, host=host) if not _of_software(event)]
        for _, device, faults in evidence.by_device(evidence.open(*_FAULTS, host=host) if errors else []):
            causes = [event for event in errors if same_slot(event.device, device)]
            after = [
                fault
                for fault in faults
                if any(follows(evidence, cause, fault, _CAUSE_WINDOW_S) for cause in causes)
            ]
            # A clean-up alone is told by its own rule.
            if any(fault.kind in ("xid.13", "xid.31", "xid.32") for fault in after):
                yield _finding(evidence, host, device, causes, after)


def _finding(evidence: Evidence, host: str, device: str, causes: list[Event], faults: list[Event]) -> Finding:
    first = causes[0]
    fatal = any(event.kind.startswith("aer.fatal") for event in causes)
    links = [
        event
        for event in evidence.open("aer.recovery_failed", "aer.recovered", host=host)
        if follows(evidence, first, event, _CAUSE_WINDOW_S)
    ]
    return Finding(
        layer="firmware_pcie",
        severity="critical" if fatal else "error",
        device=device,
        summary=f"link of {of(device)} made an uncorrected error; Xid {listed(codes(faults))} comes of it",
        why=(
            f"{capital(called(first))} came first, within {_CAUSE_WINDOW_S:g} s. What the GPU reads or "
            "writes over a link that fails is not there, and the program that waits for it faults. "
            "It is not to blame."
        ),
        events=(*causes, *links, *faults, *symptoms(evidence, host, first, codes(faults))),
        action="drain",
        then=("read_sel", "inspect_hardware", "replace_cable_or_riser", "reboot_node"),
        root_event=first.kind,
        count=total(causes),
    )


def _of_software(event: Event) -> bool:
    """Requests that are refused, which a faulty program causes rather than suffers."""
    entry = catalog.aer(event.kind.rsplit(".", 1)[-1])
    return entry is not None and entry.reading == "config"


RULE = Rule(id="fault_after_link_error", rank=34, explain=explain)
