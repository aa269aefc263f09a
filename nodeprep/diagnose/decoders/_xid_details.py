"""What the text after an Xid's number says, for the codes whose text decides."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

_MMU = re.compile(
    r"ENGINE (?P<engine>\w+)(?: (?P<unit>GPC\d{1,18}))? (?P<client>\w+) faulted @ "
    r"(?P<address>0x[0-9a-fA-F_]+)"
    r"(?:\. Fault is of type (?P<fault>\w+)(?: (?P<access>\w+))?)?"
)
_SM = re.compile(r"\(GPC (?P<gpc>\d{1,18}), TPC (?P<tpc>\d{1,18})(?:, SM (?P<sm>\d{1,18}))?\)")
_RECOVERY = re.compile(
    r"recovery action changed (?:from 0x(?P<old>[0-9a-fA-F]+) .*? )?to 0x(?P<new>[0-9a-fA-F]+)"
)
_PLACE = re.compile(
    r"partition (?P<partition>\d{1,18}), subpartition (?P<subpartition>\d{1,18})|"
    r"FBPA (?P<fbpa>\d{1,18})(?:,? subpartition (?P<sub>\d{1,18}))?"
)
_ROW = re.compile(r"\((0x[0-9a-fA-F]+)\)")
_NVLINK5 = re.compile(
    r"(?P<unit>[A-Z][A-Z0-9_]+) (?P<fatal>Fatal|Nonfatal|Non-fatal|Link Fatal)\s+XC "
    r"?(?P<xc>-?\d{1,18})\s+i ?(?P<i>-?\d{1,18})"
    r"\s+Link (?P<link>-?\d{1,18})\s*[(\[](?P<words>0x[0-9a-fA-Fx ,]*)",
    re.IGNORECASE,
)
_NVLINK = re.compile(r"link (?P<link>\d{1,18})", re.IGNORECASE)
_SECONDS = re.compile(r"Timeout after (?P<seconds>\d{1,18})s")
_FUNCTION = re.compile(r"Expected function (?P<function>\d{1,18} ?\(\w+\))")
_CONTAINED = re.compile(r"\b(?P<kind>Contained|Uncontained): (?P<unit>.*?)\.(?: RST: (?P<reset>Yes|No))?")


def details(code: int, text: str) -> Mapping[str, Any]:
    """Named values from the text of an Xid; empty when its code has no reader or the text is another."""
    return _READERS[code](text) if code in _READERS else {}


def _mmu(text: str) -> dict[str, Any]:
    match = _MMU.search(text)
    return {name: value for name, value in match.groupdict().items() if value} if match else {}


def _sm(text: str) -> dict[str, Any]:
    match = _SM.search(text)
    return {"place": match[0]} if match else {}


def _recovery(text: str) -> dict[str, Any]:
    match = _RECOVERY.search(text)
    return {"old_action": int(match["old"] or "0", 16), "new_action": int(match["new"], 16)} if match else {}


def _memory(text: str) -> dict[str, Any]:
    data: dict[str, Any] = {}
    if place := _PLACE.search(text):
        data["partition"] = int(place["partition"] or place["fbpa"])
        if sub := place["subpartition"] or place["sub"]:
            data["subpartition"] = int(sub)
    if row := _ROW.search(text):
        data["row"] = row[1]
    return data


def _containment(text: str) -> dict[str, Any]:
    match = _CONTAINED.search(text)
    return {"contained": match["kind"] == "Contained", "unit": match["unit"]} if match else {}


def _nvlink(text: str) -> dict[str, Any]:
    match = _NVLINK.search(text)
    return {"link": int(match["link"])} if match else {}


def _nvlink5(text: str) -> dict[str, Any]:
    match = _NVLINK5.search(text)
    if not match:
        return {}
    words = [int(word, 16) for word in re.findall(r"0x[0-9a-fA-F]{1,8}\b", match["words"])]
    data: dict[str, Any] = {
        "unit": match["unit"].upper(),
        "said_fatal": match["fatal"].lower() in ("fatal", "link fatal"),
        "link": int(match["link"]),
    }
    if words:
        data["info"] = words[0]
        data["sub_code"] = words[0] >> 20 & 0x3F
    if len(words) > 1:
        data["error_status"] = words[1]
    return data


def _gsp(text: str) -> dict[str, Any]:
    data: dict[str, Any] = {}
    if function := _FUNCTION.search(text):
        data["function"] = function["function"]
    if seconds := _SECONDS.search(text):
        data["timeout_s"] = int(seconds["seconds"])
    return data


_READERS: Mapping[int, Callable[[str], dict[str, Any]]] = {
    13: _sm,
    31: _mmu,
    48: _memory,
    63: _memory,
    64: _memory,
    74: _nvlink,
    94: _containment,
    95: _containment,
    119: _gsp,
    120: _gsp,
    136: _nvlink,
    137: _nvlink,
    154: _recovery,
    171: _memory,
    172: _memory,
    **dict.fromkeys(range(144, 151), _nvlink5),
}
