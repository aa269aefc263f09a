"""Address space that firmware gave too little of, or that somebody else holds."""

from __future__ import annotations

import re

from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.decoders._each import each
from nodeprep.diagnose.device import ADDRESS, address
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

_BAR = re.compile(
    rf"(?P<device>{ADDRESS}): (?:(?P<bar>(?:VF )?BAR \d{{1,18}})|bridge window|(?P<window>[A-Z]?\w* "
    rf"?window))?.*?"
    r"(?P<what>can't assign; no space|no space for|failed to assign|can't claim)"
)


# Source: Linux, drivers/pci/pci.c, __pci_request_region.
_TAKEN = re.compile(rf"(?P<driver>[\w-]+) (?P<device>{ADDRESS}): BAR (?P<bar>\d): can't reserve \[mem")


def _parse(line: Line) -> Event | None:
    if taken := _TAKEN.search(line.text):
        data = {"bar": taken["bar"], "driver": taken["driver"]}
        return Event(kind="pci.bar_taken", lines=(line,), device=address(taken["device"]), data=data)
    match = _BAR.search(line.text)
    if not match or "[io " in line.text:
        # Port I/O space is always short on large servers, and no GPU needs it.
        return None
    data = {"bar": match["bar"] or "window"}
    return Event(kind="pci.bar_unassigned", lines=(line,), device=address(match["device"]), data=data)


DECODER = Decoder(
    id="pci_resources",
    needles=(b"can't assign", b"no space for", b"failed to assign", b"can't claim", b"can't reserve"),
    decode=each(("can't assign", "no space for", "failed to assign", "can't claim", "can't reserve"), _parse),
)
