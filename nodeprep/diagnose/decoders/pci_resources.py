"""Address space that firmware gave too little of."""

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


def _parse(line: Line) -> Event | None:
    match = _BAR.search(line.text)
    if not match or "[io " in line.text:
        # Port I/O space is always short on large servers, and no GPU needs it.
        return None
    data = {"bar": match["bar"] or "window"}
    return Event(kind="pci.bar_unassigned", lines=(line,), device=address(match["device"]), data=data)


DECODER = Decoder(
    id="pci_resources",
    needles=(b"can't assign", b"no space for", b"failed to assign", b"can't claim"),
    decode=each(("can't assign", "no space for", "failed to assign", "can't claim"), _parse),
)
