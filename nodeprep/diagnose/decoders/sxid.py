"""NVSwitch errors. The driver prints up to three lines for one, of which the first says what it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.decoders._each import bounded
from nodeprep.diagnose.device import ADDRESS, address
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

_SXID = re.compile(
    rf"(?:(?P<switch>nvidia-nvswitch\d{{1,18}}): )?SXid \((?:PCI:)?(?P<device>{ADDRESS})\): "
    rf"(?P<code>\d{{1,18}}), "
    rf"(?P<text>.*)"
)
_FATAL = re.compile(r"^(?P<word>Fatal|Non-fatal|Non fatal|Nonfatal)\b", re.IGNORECASE)
_LINK = re.compile(r"\bLink (\d{1,18})")
_FOLLOWS = re.compile(r"^(?:Severity \d|Data \{)")


def decode(lines: Iterable[Line]) -> Iterator[Event]:
    """Events `sxid.CODE`, each with all its lines."""
    open_: dict[tuple[str, int], list[Line]] = {}
    for line in bounded(lines):
        if "SXid" not in line.text or not (match := _SXID.search(line.text)):
            continue
        key = address(match["device"]), int(match["code"])
        if _FOLLOWS.match(match["text"]) and key in open_:
            open_[key].append(line)
            continue
        if key in open_:
            yield _event(key, open_.pop(key))
        open_[key] = [line]
    for key, found in open_.items():
        yield _event(key, found)


def _event(key: tuple[str, int], lines: list[Line]) -> Event:
    match = _SXID.search(lines[0].text)
    text = match["text"] if match else lines[0].text
    data: dict[str, Any] = {"code": key[1], "text": text}
    if fatal := _FATAL.match(text):
        data["said_fatal"] = fatal["word"].lower() == "fatal"
    if link := _LINK.search(text):
        data["link"] = int(link[1])
    if match and match["switch"]:
        data["switch"] = match["switch"]
    return Event(kind=f"sxid.{key[1]}", lines=tuple(lines), device=key[0], data=data)


DECODER = Decoder(id="sxid", needles=(b"SXid",), decode=decode)
