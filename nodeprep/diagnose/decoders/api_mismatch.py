"""The driver's module refuses a client of another version, in one sentence over four or five lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.decoders._each import bounded
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

_BEGINS = "NVRM: API mismatch"
_CONTINUES = re.compile(
    r"NVRM: (?:this kernel module|has the version|the version|make sure that|kernel module and|components|"
    r"have the same)"
)
_VERSION = r"\d{1,9}(?:\.\d{1,9}){1,3}"
# Source: kernel/nv.c: since R590 the sentence names the client's program.
_CLIENT = re.compile(
    rf"the client (?:'.{{0,64}}?' \(pid \d{{1,18}}\) )?has the version (?P<version>{_VERSION})"
)
_MODULE = re.compile(rf"kernel module has the version (?P<version>{_VERSION})")
# rsyslog writes a line feed within a message as an escape.
_BREAKS = re.compile(r"(?:#012|\s)*NVRM:\s*|\s+")
_MAX_LINES = 6


def decode(lines: Iterable[Line]) -> Iterator[Event]:
    """Events `driver.api_mismatch` {client, module}, whose versions are "" where they are cut off."""
    held: list[Line] = []
    for line in bounded(lines):
        if "NVRM" not in line.text:
            continue
        if held and (_goes_on(held, line)):
            held.append(line)
            continue
        if held:
            yield _event(held)
            held = []
        if _BEGINS in line.text:
            held = [line]
    if held:
        yield _event(held)


def _goes_on(held: list[Line], line: Line) -> bool:
    return (
        line.source == held[0].source
        and line.number - held[-1].number == 1
        and len(held) < _MAX_LINES
        and _CONTINUES.search(line.text) is not None
    )


def _event(lines: list[Line]) -> Event:
    whole = _BREAKS.sub(" ", " ".join(line.text for line in lines))
    client, module = _CLIENT.search(whole), _MODULE.search(whole)
    data = {"client": client["version"] if client else "", "module": module["version"] if module else ""}
    return Event(kind="driver.api_mismatch", lines=tuple(lines), data=data)


DECODER = Decoder(id="api_mismatch", needles=(b"NVRM",), decode=decode)
