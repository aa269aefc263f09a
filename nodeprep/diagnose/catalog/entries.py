"""What an entry of each file of the catalogue holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from nodeprep.model.diagnosis import Action, Layer, Severity

XidRole = Literal["fault", "notice", "consequence", "recovery", "nvlink5", "unknown"]
"""fault: of its own. notice: for information. consequence: follows another error and weighs nothing.
recovery, nvlink5: its data decide. unknown: nobody published a meaning."""

AerReading = Literal["signal", "lost", "silent", "config", "data", "internal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class XidEntry:
    """One Xid.

    Attributes:
        action: The first thing to do when it is seen alone.
        then: Steps after it, by their ids in steps.yaml.
        since: Driver that first had it; "" when it is older than the open driver.
        sources: Ids of the file's sources.
    """

    code: int
    name: str
    meaning: str
    role: XidRole
    layer: Layer
    severity: Severity
    action: Action
    sources: tuple[str, ...]
    then: tuple[str, ...] = ()
    advice: str = ""
    since: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SxidEntry:
    """One NVSwitch error, or a range of them."""

    first: int
    last: int
    meaning: str
    layer: Layer
    severity: Severity
    action: Action
    sources: tuple[str, ...]
    then: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AerEntry:
    """One PCI Express error type.

    Attributes:
        names: How kernels print it, the one of today first.
        bit: In the status register of its class.
    """

    id: str
    error_class: Literal["corrected", "uncorrected"]
    bit: int
    names: tuple[str, ...]
    meaning: str
    reading: AerReading
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryEntry:
    """One recovery action of the driver."""

    code: int
    words: tuple[str, ...]
    meaning: str
    severity: Severity
    action: Action
    sources: tuple[str, ...]
    then: tuple[str, ...] = ()
    since: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaEntry:
    """One CUDA error.

    Attributes:
        names: Of the driver API and of the runtime.
        text: What the runtime prints for it.
        xids: Those that go with it; none when the kernel log stays silent.
    """

    code: int
    id: str
    names: tuple[str, ...]
    text: str
    meaning: str
    layer: Layer
    severity: Severity
    action: Action
    sources: tuple[str, ...]
    then: tuple[str, ...] = ()
    xids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Nvlink5Rule:
    """What a pattern of an NVLink 5 message means.

    Attributes:
        bits_before_r575: Pattern of the first information word, MSB first, "-" any; also `bits_since_r575`.
        status_bit: One of these bits in the error status; 0 asks for a status of 0.
        fatal: "yes", "no", or "link" when only the link is lost.
    """

    xid: int
    unit: str
    bits_before_r575: str
    bits_since_r575: str
    status_bit: int
    immediate: Literal["ignore", "reset_gpu", "follow_recovery_action"]
    investigate: str
    fatal: Literal["yes", "no", "link"]
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLogKind:
    """What entries of a BMC's event log of one kind mean for the node.

    Attributes:
        id: Kind of the event, "sel.power_input".
    """

    id: str
    summary: str
    layer: Layer
    severity: Severity
    action: Action
    then: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLogWords:
    """Words by which an entry of a BMC's event log is known.

    Attributes:
        kind: "" for what is known and asks for nothing.
        pattern: Regular expression, in any case, anywhere in the line.
    """

    kind: str
    pattern: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLogMessage:
    """What some message ids of a maker's registry say.

    Attributes:
        kind: "" for what is known and asks for nothing.
    """

    ids: tuple[str, ...]
    kind: str
    meaning: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLogFile:
    """event_log.yaml."""

    sources: Mapping[str, str]
    kinds: tuple[EventLogKind, ...]
    words: tuple[EventLogWords, ...]
    messages: tuple[EventLogMessage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class XidFile:
    """xid.yaml."""

    sources: Mapping[str, str]
    xids: tuple[XidEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SxidFile:
    """sxid.yaml."""

    sources: Mapping[str, str]
    sxids: tuple[SxidEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AerFile:
    """aer.yaml."""

    sources: Mapping[str, str]
    errors: tuple[AerEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryFile:
    """recovery.yaml."""

    sources: Mapping[str, str]
    actions: tuple[RecoveryEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaFile:
    """cuda.yaml."""

    sources: Mapping[str, str]
    errors: tuple[CudaEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nvlink5File:
    """nvlink5.yaml, its table already turned into rules."""

    sources: Mapping[str, str]
    rules: tuple[Nvlink5Rule, ...]
