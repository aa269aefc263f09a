"""What a trial boot came to: kernel arguments that were booted once before they were made permanent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

TrialState = Literal["permanent", "armed", "rolled_back", "unsettled", "lost", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialFinding:
    """One thing that is not after the trial's reboot as it was before, or not as it was wanted."""

    what: str
    before: str
    now: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialEvidence:
    """What somebody else saw of the boot: the console, the BMC, the node's own journal of it.

    Attributes:
        source: console, sel, chassis, bmc (when it could not be asked), journal or pstore.
        state: ok = text is what was read; not_configured = the inventory names no such source;
            error = it could not be read, text says why.
    """

    source: str
    state: Literal["ok", "not_configured", "error"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialReport:
    """One host's trial boot.

    Attributes:
        state: permanent = it came back as wanted and the arguments are permanent; armed = the next boot
            is the trial; rolled_back = the old arguments are permanent and the trial is over; unsettled = the
            trial is not over and the node is not known to hang; lost = it has not come back from its boot;
            refused = nothing was begun.
        cmdline: What the trial's entry gave the kernel.
        reboot_s: Seconds from the reboot's start until the node answered again; None when it did not.
        recovered_by: Who brought a node back that did not stay up: the controller (over ssh), the BMC, or
            neither of them (itself: a panic, the dead-man, or somebody's hand).
    """

    state: TrialState
    id: str
    cmdline: str
    reason: str = ""
    reboot_s: float | None = None
    recovered_by: Literal["", "itself", "controller", "bmc"] = ""
    findings: tuple[TrialFinding, ...] = ()
    evidence: tuple[TrialEvidence, ...] = ()
    notes: tuple[str, ...] = ()
