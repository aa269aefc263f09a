"""What the catalogue knows of one code: `nodeprep diagnose --explain 79`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from nodeprep.diagnose import catalog
from nodeprep.diagnose.catalog import AerEntry
from nodeprep.errors import UsageError
from nodeprep.model.explanation import Explanation, Step

_HINT = "try 79, xid 79, sxid 12028, aer surprise_down, cuda 719 or recovery 1; docs/diagnose lists all"
_MAX_CODE = 99_999
_MAX_QUOTED = 40
_QUERY = re.compile(
    r"(?:(?P<family>xid|sxid|aer|cuda|recovery|154)[ :=]+|(?P<joined>xid|sxid|cuda|recovery)(?=\d))?"
    r"(?P<code>.+)",
    re.IGNORECASE | re.DOTALL,
)
# Of a line that was pasted whole: what stands in brackets is the device.
_LINE = re.compile(r"\b(?P<family>s?xid) ?\([^()]{0,120}\) ?: ?(?P<code>\d{1,5})\b", re.IGNORECASE)
# Of a PCI Express error the first thing to do comes from what kind it is, not from its name.
_AER_STEPS: Mapping[str, tuple[str, ...]] = {
    "signal": ("observe", "read_aer_counters", "inspect_hardware", "reseat_card_and_riser"),
    "lost": ("drain", "read_sel", "inspect_hardware", "replace_cable_or_riser"),
    "silent": ("drain", "read_kernel_log", "disable_aspm", "inspect_hardware"),
    "config": ("fix_config", "check_acs_and_iommu"),
    "data": ("drain", "read_sel", "inspect_hardware"),
    "internal": ("observe", "read_aer_counters", "report_to_vendor"),
}


def explain(query: str) -> Explanation:
    """What is known of a code.

    Args:
        query: `79` or `xid 79`, `sxid 12028`, `aer surprise_down` or `aer SDES`, `cuda 719` or a CUDA
            name, `recovery 1`; or a line of the kernel log with an Xid or SXid. A bare number that is no
            Xid but a code of another family is explained as that.

    Raises:
        UsageError: It is no code of any family.
    """
    words = query.strip()
    if line := _LINE.search(words):
        return _FAMILIES[line["family"].lower()](line["code"])
    match = _QUERY.fullmatch(words)
    if not match:
        raise UsageError("no code to explain", hint=_HINT)
    family = (match["family"] or match["joined"] or "").lower().replace("154", "recovery")
    code = match["code"].strip()
    if not family and code.isdecimal():
        return _bare(code)
    return _FAMILIES[family or ("cuda" if code.lower().startswith("cuda") else "aer")](code)


def _bare(code: str) -> Explanation:
    """A number alone: an Xid, unless only another family has it."""
    number = _number(code, "xid")
    others = [
        family
        for family, known in (
            ("cuda", catalog.cuda(number) is not None),
            ("sxid", catalog.sxid(number) is not None),
            ("recovery", number in catalog.all_recovery()),
        )
        if known
    ]
    found = _xid(code)
    remark = ""
    # The few small numbers of recovery actions are rarely meant without their family's name.
    if not (found.known or found.names) and others and others[0] != "recovery":
        found = _FAMILIES[others.pop(0)](code)
        remark = f"No list here has an Xid {number}."
    if others:
        remark = f"{remark} The same number elsewhere: {', '.join(f'{each} {number}' for each in others)}."
    return replace(found, advice=f"{found.advice} {remark.strip()}".strip())


def _quoted(code: str) -> str:
    return repr(code if len(code) <= _MAX_QUOTED else f"{code[:_MAX_QUOTED]}...")


def _number(code: str, family: str) -> int:
    try:
        number = int(code, 0) if code.lower().startswith("0x") else int(code)
    except ValueError:
        raise UsageError(f"{family} {_quoted(code)} is no number", hint=_HINT) from None
    if not 0 <= number <= _MAX_CODE:
        raise UsageError(f"{family} {_quoted(code)} is out of range", hint=_HINT)
    return number


def _xid(code: str) -> Explanation:
    entry = catalog.xid(_number(code, "xid"))
    return Explanation(
        family="xid",
        code=str(entry.code),
        names=(entry.name,) if entry.name else (),
        meaning=entry.meaning,
        known=entry.role != "unknown",
        layer="" if entry.role == "unknown" else entry.layer,
        severity="" if entry.role in ("recovery", "nvlink5") else entry.severity,
        steps=_steps((entry.action, *entry.then)),
        advice=entry.advice,
        beside=tuple(f"cuda {cuda.code}" for cuda in catalog.all_cuda().values() if entry.code in cuda.xids),
        since=entry.since,
        sources=catalog.sources("xid", entry.sources),
    )


def _sxid(code: str) -> Explanation:
    number = _number(code, "sxid")
    entry = catalog.sxid(number)
    if entry is None:
        return Explanation(
            family="sxid",
            code=str(number),
            names=(),
            meaning="not in any list here; the line itself says what it is and whether it is fatal",
            known=False,
            layer="",
            severity="",
            steps=_steps(("observe", "check_fabric_state_completed", "report_to_vendor")),
        )
    return Explanation(
        family="sxid",
        code=str(number),
        names=(),
        meaning=entry.meaning,
        known=True,
        layer=entry.layer,
        severity=entry.severity,
        steps=_steps((entry.action, *entry.then)),
        sources=catalog.sources("sxid", entry.sources),
    )


def _aer(code: str) -> Explanation:
    entry: AerEntry | None = catalog.aer(code) or catalog.aer(code.replace("_", " "))
    if entry is None:
        raise UsageError(f"no code and no PCI Express error is called {_quoted(code)}", hint=_HINT)
    return Explanation(
        family="aer",
        code=entry.id,
        names=entry.names,
        meaning=entry.meaning,
        known=True,
        layer="config" if entry.reading == "config" else "firmware_pcie",
        severity="",
        steps=_steps(_AER_STEPS[entry.reading]),
        advice=f"Bit {entry.bit} of the {entry.error_class} error status register.",
        sources=catalog.sources("aer", entry.sources),
    )


def _cuda(code: str) -> Explanation:
    entry = (
        catalog.cuda(int(code))
        if code.isdecimal()
        else next((each for each in catalog.all_cuda().values() if code in (each.id, *each.names)), None)
    )
    if entry is None:
        raise UsageError(f"no CUDA error {_quoted(code)} in the catalogue", hint=_HINT)
    return Explanation(
        family="cuda",
        code=str(entry.code),
        names=entry.names,
        meaning=entry.meaning,
        known=True,
        layer=entry.layer,
        severity=entry.severity,
        steps=_steps((entry.action, *entry.then)),
        advice=f'Printed as "{entry.text}".',
        beside=tuple(f"xid {xid}" for xid in entry.xids),
        sources=catalog.sources("cuda", entry.sources),
    )


def _recovery(code: str) -> Explanation:
    number = _number(code, "recovery")
    entry = catalog.recovery(number)
    return Explanation(
        family="recovery",
        code=str(entry.code),
        names=entry.words,
        meaning=entry.meaning,
        known=number in catalog.all_recovery(),
        layer="driver",
        severity=entry.severity,
        steps=_steps((entry.action, *entry.then)),
        since=entry.since,
        sources=catalog.sources("recovery", entry.sources),
    )


_FAMILIES: Mapping[str, Callable[[str], Explanation]] = {
    "xid": _xid,
    "sxid": _sxid,
    "aer": _aer,
    "cuda": _cuda,
    "recovery": _recovery,
}


def _steps(ids: Iterable[str]) -> tuple[Step, ...]:
    return tuple(Step(id=name, words=catalog.step(name)) for name in dict.fromkeys(ids))
