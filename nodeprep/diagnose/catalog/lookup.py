"""Questions to the catalogue. What it does not know is answered as unknown, in raw, never guessed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

from nodeprep.diagnose.catalog._load import load, read
from nodeprep.diagnose.catalog.entries import (
    AerEntry,
    AerFile,
    CudaEntry,
    CudaFile,
    EventLogFile,
    EventLogKind,
    EventLogMessage,
    Nvlink5File,
    Nvlink5Rule,
    RecoveryEntry,
    RecoveryFile,
    SxidEntry,
    SxidFile,
    XidEntry,
    XidFile,
)
from nodeprep.errors import NodeprepError
from nodeprep.model.codec import decode_strict

_R575 = 575


@cache
def _xid_file() -> XidFile:
    return load("xid", XidFile)


@cache
def all_xid() -> Mapping[int, XidEntry]:
    """Every Xid that is listed, by code."""
    return {entry.code: entry for entry in _xid_file().xids}


@cache
def xid(code: int) -> XidEntry:
    """An Xid; one that nobody lists is unknown, a warning, and to be reported."""
    return all_xid().get(code) or XidEntry(
        code=code,
        name="",
        meaning="not in any published list",
        role="unknown",
        layer="driver",
        severity="warning",
        action="observe",
        then=("report_to_vendor",),
        sources=(),
    )


@cache
def all_sxid() -> tuple[SxidEntry, ...]:
    """NVSwitch errors that need more than the driver's own word for them."""
    return load("sxid", SxidFile).sxids


def sxid(code: int) -> SxidEntry | None:
    """An NVSwitch error; None when only the line itself says what it is."""
    return next((entry for entry in all_sxid() if entry.first <= code <= entry.last), None)


@cache
def all_aer() -> Mapping[str, AerEntry]:
    """PCI Express errors by id."""
    return {entry.id: entry for entry in load("aer", AerFile).errors}


@cache
def _aer_names() -> Mapping[str, AerEntry]:
    names = {name.lower(): entry for entry in all_aer().values() for name in entry.names}
    return {**names, **all_aer()}


def aer(name: str) -> AerEntry | None:
    """A PCI Express error by any name a kernel gives it, or by its id."""
    return _aer_names().get(name.strip().lower())


def aer_bits(error_class: str, status: int) -> tuple[AerEntry, ...]:
    """The errors whose bits are set in a status register of a class ("corrected", "uncorrected")."""
    return tuple(
        entry for entry in all_aer().values() if entry.error_class == error_class and status >> entry.bit & 1
    )


@cache
def all_recovery() -> Mapping[int, RecoveryEntry]:
    """Recovery actions by number."""
    return {entry.code: entry for entry in load("recovery", RecoveryFile).actions}


def recovery(code: int) -> RecoveryEntry:
    """A recovery action; a number that nobody lists asks for a look, since something is asked for."""
    return all_recovery().get(code) or RecoveryEntry(
        code=code,
        words=(),
        meaning="asks for something that no published list names",
        severity="error",
        action="drain",
        then=("report_to_vendor",),
        sources=(),
    )


@cache
def all_cuda() -> Mapping[int, CudaEntry]:
    """CUDA errors by code."""
    return {entry.code: entry for entry in load("cuda", CudaFile).errors}


def cuda(code: int) -> CudaEntry | None:
    """A CUDA error by its number."""
    return all_cuda().get(code)


def cuda_by_id(name: str) -> CudaEntry | None:
    """A CUDA error by its id in the catalogue."""
    return next((entry for entry in all_cuda().values() if entry.id == name), None)


@cache
def event_log() -> EventLogFile:
    """What is known of entries of BMCs' event logs."""
    return load("event_log", EventLogFile)


@cache
def _event_log_messages() -> Mapping[str, EventLogMessage]:
    return {name: entry for entry in event_log().messages for name in entry.ids}


def event_log_message(message_id: str) -> EventLogMessage | None:
    """A maker's message by its id, with or without registry and version: "IDRAC.2.8.PSU0003"."""
    return _event_log_messages().get(message_id.rsplit(".", 1)[-1])


@cache
def event_log_kinds() -> Mapping[str, EventLogKind]:
    """What entries of event logs mean for the node, by kind."""
    return {kind.id: kind for kind in event_log().kinds}


@cache
def nvlink5_rules() -> tuple[Nvlink5Rule, ...]:
    """The decoding table of NVLink 5."""
    table = read("nvlink5")
    # A row a line keeps the table readable; the columns are named once.
    rules = [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]
    file = decode_strict(
        {"sources": table["sources"], "rules": rules}, Nvlink5File, source="catalog/nvlink5.yaml"
    )
    return file.rules


def nvlink5(code: int, info: int, status: int, driver: str = "") -> tuple[Nvlink5Rule, ...]:
    """What an NVLink 5 message means.

    Args:
        code: The Xid, 144 to 150.
        info: First information word of the message.
        status: Error status, its second word.
        driver: Version of the driver, for example "570.133.20"; "" when it is not known, and then the
            layout of today is tried first and the older one after it.
    """
    major = int(driver.split(".", maxsplit=1)[0]) if driver.split(".", maxsplit=1)[0].isdecimal() else 0
    layouts = ("since", "before") if not major else ("since",) if major >= _R575 else ("before",)
    for layout in layouts:
        found = [
            rule
            for rule in nvlink5_rules()
            if rule.xid == code
            and _matches(rule.bits_since_r575 if layout == "since" else rule.bits_before_r575, info)
        ]
        # Of some units the status is a number, of others a set of bits; a number fits as a whole.
        whole = tuple(rule for rule in found if rule.status_bit == status)
        bits = tuple(rule for rule in found if status & rule.status_bit)
        if whole or bits:
            return whole or bits
    return ()


def _matches(pattern: str, word: int) -> bool:
    bits = f"{word & 0xFFFFFFFF:032b}"
    # A few patterns of the vendor's sheet are a place short; they are meant from the right.
    return all(want in ("-", have) for want, have in zip(reversed(pattern), reversed(bits), strict=False))


@cache
def _sources(family: str) -> Mapping[str, str]:
    return dict(read(family)["sources"])


def sources(family: str, ids: Iterable[str]) -> tuple[str, ...]:
    """Sources of an entry in full.

    Args:
        family: Name of the file: "xid", "sxid", "aer", "recovery", "cuda", "nvlink5" or "event_log".
    """
    return tuple(_sources(family)[name] for name in ids)


@cache
def _steps() -> Mapping[str, str]:
    steps = read("steps")
    if not isinstance(steps, dict):
        raise NodeprepError("catalog/steps.yaml is no mapping")
    return {str(name): str(words) for name, words in steps.items()}


def step(name: str) -> str:
    """A step of an answer, in words for people.

    Raises:
        NodeprepError: The catalogue does not list it.
    """
    try:
        return _steps()[name]
    except KeyError:
        raise NodeprepError(f"catalog/steps.yaml does not list {name!r}") from None
