"""Xid lines of the driver, of all its eras, in kernel logs and in what agents copy from them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.decoders._each import bounded
from nodeprep.diagnose.decoders._xid_details import details
from nodeprep.diagnose.device import ADDRESS, address
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

_XID = re.compile(
    rf"NVRM: (?:GPU\d{{1,18}} )?Xid(?: \((?:PCI:)?(?P<device>{ADDRESS})?(?P<instance>[^()]{{0,80}})\) ?)?: "
    r"(?P<code>\d{1,5})(?P<rest>.*)",
    re.DOTALL,
)
_GPU_INSTANCE = re.compile(r"\bGPU[- ]I:\s*(\d{1,18})|\bGI:\s*(\d{1,18})")
_COMPUTE_INSTANCE = re.compile(r"\bGPU[- ]CI:\s*(\d{1,18})|\bCI:\s*(\d{1,18})")
_UUID = re.compile(r"\bGPU-[0-9a-fA-F]{8}-[0-9a-fA-F-]{8,27}")
_PID = re.compile(r"^,? ?pid='?(?P<pid>\d{1,18}|<unknown>)'?")
# A name may hold commas and brackets of its own, so it ends where a text that the driver prints begins,
# or else at the next comma.
_NAME = re.compile(
    r"^, name='?(?P<name>.*?)'?, (?=Ch |Channel |Graphics |GPU has|Timeout|Contained|Uncontained|An "
    r"unc|Row Rem|"
    r"Dynamic Page|NVLink|Class Error|errorString|MMU |SEC_|CTX|RLW_|TLW_|NETIR|SAW_|TREX|NVLPW|MSE|"
    r"pCh|Kernel|"
    r"Engine |PMU|Shader|Video|NVENC|NVDEC|L2|FECS|Cmd|GSP|Double|[0-9a-f]{4,8}[(, ])"
)
_PLAIN_NAME = re.compile(r"^, name='?(?P<name>[^,]*?)'?(?:, |$)")
_CAUSED_BY = re.compile(r"caused by previous Xid (\d{1,18})")
_IDENTITY = re.compile(rf"NVRM: GPU at (?:PCI:)?(?P<device>{ADDRESS}): (?P<uuid>GPU-[0-9a-fA-F-]{{8,36}})")


def decode(lines: Iterable[Line]) -> Iterator[Event]:
    """Events `xid.CODE` and `gpu.identity`."""
    for line in bounded(lines):
        if "Xid (" in line.text or "NVRM: Xid: " in line.text:
            event = _xid(line)
            if event:
                yield event
        elif "NVRM: GPU at" in line.text and (match := _IDENTITY.search(line.text)):
            yield Event(
                kind="gpu.identity",
                lines=(line,),
                device=address(match["device"]),
                data={"uuid": match["uuid"]},
            )


def _xid(line: Line) -> Event | None:
    match = _XID.search(line.text)
    if not match:
        return None
    code = int(match["code"])
    data: dict[str, Any] = {"code": code}
    _instances(match["instance"] or "", data)
    rest = _process(match["rest"], data).strip()
    data["text"] = rest
    if caused := _CAUSED_BY.search(rest):
        data["caused_by"] = int(caused[1])
    data.update(details(code, rest))
    return Event(kind=f"xid.{code}", lines=(line,), device=address(match["device"] or ""), data=data)


def _instances(text: str, data: dict[str, Any]) -> None:
    if found := _GPU_INSTANCE.search(text):
        data["gpu_instance"] = int(found[1] or found[2])
    if found := _COMPUTE_INSTANCE.search(text):
        data["compute_instance"] = int(found[1] or found[2])
    if found := _UUID.search(text):
        data["uuid"] = found[0]


def _process(rest: str, data: dict[str, Any]) -> str:
    """Takes pid and name off the front; what is left is the driver's own text."""
    pid = _PID.match(rest)
    if not pid:
        return rest.lstrip(", ")
    if pid["pid"].isdecimal():
        data["pid"] = int(pid["pid"])
    rest = rest[pid.end() :]
    name = _NAME.match(rest) or _PLAIN_NAME.match(rest)
    if name:
        if name["name"] != "<unknown>":
            data["process"] = name["name"]
        rest = rest[name.end() :]
    return rest.lstrip(", ")


DECODER = Decoder(id="xid", needles=(b"NVRM", b"Xid ("), decode=decode)
