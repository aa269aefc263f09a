"""`nodeprep.bios/1`, `nodeprep.bios_plan/1`, `nodeprep.bios_apply/1`: the BIOS settings of one machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

BiosValue = str | int | float | bool | None
RegistryState = Literal["found", "absent"]
KnobStatus = Literal["ok", "change", "unsupported", "refused", "ambiguous"]


@dataclass(frozen=True, slots=True, kw_only=True)
class BiosMachine:
    """Whose BIOS it is, as the BMC says; "" is what it does not say."""

    vendor: str
    model: str
    bios: str
    bmc_firmware: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BiosAttribute:
    """One attribute as it is.

    Attributes:
        type: Enumeration, Integer, Boolean, String, Password; "" when the BMC has no registry.
        pending: Staged for the next reset; None when that leaves it as it is.
        values: What an enumeration offers, as it is written.
        writable: False when it is read-only, hidden or grayed out just now.
    """

    name: str
    current: BiosValue
    pending: BiosValue = None
    display_name: str = ""
    menu_path: str = ""
    type: str = ""
    values: tuple[str, ...] = ()
    writable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class BiosSetting:
    """One attribute that a knob is, and the value it should have.

    Attributes:
        pending: Staged for the next reset; None when that leaves it as it is.
        value: As it is written; equal to current where nothing is to change.
        scope: "global", or which slot or port, for example "slot 3".
        phase: 2 when it can be written only after the changes of phase 1 took effect.
    """

    name: str
    current: BiosValue
    pending: BiosValue
    value: BiosValue
    scope: str
    display_name: str = ""
    phase: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BiosCandidate:
    """An attribute that a knob could be; listed when several could."""

    name: str
    display_name: str
    menu_path: str
    scope: str
    current: BiosValue


@dataclass(frozen=True, slots=True, kw_only=True)
class BiosKnobState:
    """What one knob is set to now.

    Attributes:
        found: Attributes were found; without them the reason says what was looked for.
        value: enabled, disabled, a PCIe generation, auto; "mixed" where slots differ, "" where it is
            neither.
    """

    knob: str
    found: bool
    value: str
    reason: str
    settings: tuple[BiosCandidate, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BiosState:
    """`nodeprep.bios/1`: what `bios show` prints."""

    bmc: BiosMachine
    registry: RegistryState
    knobs: tuple[BiosKnobState, ...]
    attributes: tuple[BiosAttribute, ...]
    simulated: bool = False
    tls: str = ""
    """How the BMC proved who it is; says so when nothing was verified."""
    notes: tuple[str, ...] = ()
    schema: Literal["nodeprep.bios/1"] = field(default="nodeprep.bios/1")


@dataclass(frozen=True, slots=True, kw_only=True)
class BiosKnobPlan:
    """What is to be done for one knob.

    Attributes:
        status: ok = all attributes are as wanted, now and after the next reset; change = some are to be
            written, or are staged and wait for a reset; unsupported = this BMC has no such attribute or
            value; refused = a guard, or an attribute that cannot be written; ambiguous = several
            attributes could be meant, nothing was chosen.
        reason: What an operator must know: why not, or why this value.
        attributes: Empty when nothing was chosen.
        candidates: When ambiguous.
    """

    knob: str
    wanted: str
    status: KnobStatus
    reason: str
    risks: tuple[str, ...] = ()
    attributes: tuple[BiosSetting, ...] = ()
    candidates: tuple[BiosCandidate, ...] = ()
    slots: tuple[str, ...] = ()
    """The slots it was limited to; empty for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BiosFacts:
    """The BIOS of a node as its BMC told it: a part of `nodeprep.facts/1`.

    Attributes:
        serial: Of the system; "" when the BMC tells none. Restore points are kept by it.
        knobs: What each knob is set to, whether anybody asked for it or not.
        answers: What this BIOS has for the values that the policy asked for when it was read: which
            attributes, in which spelling. Only its own registry can tell, so the question goes to the BMC.
        blocked_by: What keeps this BMC from taking any change.
        simulated: The BMC says that it is a simulator.
        tls: How the BMC proved who it is; says so when nothing was verified.
    """

    bmc: BiosMachine
    registry: RegistryState
    serial: str
    knobs: tuple[BiosKnobState, ...]
    answers: tuple[BiosKnobPlan, ...]
    blocked_by: tuple[str, ...] = ()
    simulated: bool = False
    tls: str = ""
    notes: tuple[str, ...] = ()

    def answer(self, knob: str, wanted: str) -> BiosKnobPlan | None:
        """What it has for a value of a knob; None when that was not asked."""
        return next((one for one in self.answers if (one.knob, one.wanted) == (knob, wanted)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class BiosPlan:
    """`nodeprep.bios_plan/1`.

    Attributes:
        needs_reset: Something is to be written, or is staged already.
        blocked_by: What keeps this BMC from taking any change: lockdown, a password, a job under way.
    """

    bmc: BiosMachine
    registry: RegistryState
    knobs: tuple[BiosKnobPlan, ...]
    needs_reset: bool
    blocked_by: tuple[str, ...] = ()
    simulated: bool = False
    tls: str = ""
    """How the BMC proved who it is; says so when nothing was verified."""
    notes: tuple[str, ...] = ()
    schema: Literal["nodeprep.bios_plan/1"] = field(default="nodeprep.bios_plan/1")

    @property
    def in_desired_state(self) -> bool:
        """Every knob was found and is as wanted."""
        return all(knob.status == "ok" for knob in self.knobs)

    def to_write(self, phase: int) -> dict[str, BiosValue]:
        """Attributes to be staged in a phase, and their values."""
        return {
            setting.name: setting.value
            for knob in self.knobs
            if knob.status == "change"
            for setting in knob.attributes
            if setting.phase == phase
            and (
                setting.current != setting.value
                if setting.pending is None
                else setting.pending != setting.value
            )
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class BiosOutcome:
    """What became of one attribute.

    Attributes:
        result: taken = it reads back as written; staged = it waits for a reset; lost = the BMC accepted it
            and it reads back otherwise; refused = the BMC did not accept it; unread = it could not be read
            back; unwritten = not sent, since something before it did not end well.
    """

    name: str
    knob: str
    before: BiosValue
    wanted: BiosValue
    after: BiosValue
    result: Literal["taken", "staged", "lost", "refused", "unread", "unwritten"]
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BiosApplication:
    """`nodeprep.bios_apply/1`: what `bios apply` did.

    Attributes:
        state: unchanged = nothing was to do; staged = written, and no reset was to be caused; applied = all
            reads back as wanted; partial = some does; failed = none does, or it is not known.
        job: URI of the BMC's job or task; "" when it made none.
        restore_point: Values before, by attribute: what a roll-back writes.
    """

    bmc: BiosMachine
    state: Literal["unchanged", "staged", "applied", "partial", "failed"]
    before: BiosPlan
    after: BiosPlan | None
    outcomes: tuple[BiosOutcome, ...]
    restore_point: dict[str, BiosValue] = field(default_factory=dict)
    job: str = ""
    resets: int = 0
    error: str = ""
    hint: str = ""
    notes: tuple[str, ...] = ()
    simulated: bool = False
    tls: str = ""
    """How the BMC proved who it is; says so when nothing was verified."""
    restore_file: str = ""
    """Where the restore point is kept; what `bios rollback --restore` takes."""
    undone: bool = False
    """It was a roll-back; the plans are then empty, and the outcomes are of single attributes."""
    schema: Literal["nodeprep.bios_apply/1"] = field(default="nodeprep.bios_apply/1")
