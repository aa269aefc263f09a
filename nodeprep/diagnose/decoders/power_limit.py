"""Power limits and persistence mode as nvidia-smi speaks of them when it sets them."""

from __future__ import annotations

import re

from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.decoders._each import each
from nodeprep.diagnose.device import ADDRESS, address
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

_SET = re.compile(
    rf"Power limit for GPU (?P<device>{ADDRESS}) was set to (?P<to>\d{{1,9}}(?:\.\d{{1,9}})?) W "
    rf"from (?P<was>\d{{1,9}}(?:\.\d{{1,9}})?) W"
)
_OFF = re.compile(rf"persistence mode is disabled on (?:device|GPU):? ?(?P<device>{ADDRESS})?", re.IGNORECASE)

# Source: the unit that Ubuntu packages; the service is active and persistence mode is off all the same.
_FLAG = re.compile(r"nvidia-persistenced\b.*--no-persistence-mode")


def _parse(line: Line) -> Event | None:
    if match := _SET.search(line.text):
        data = {"limit_w": float(match["to"]), "was_w": float(match["was"])}
        return Event(kind="power.limit_set", lines=(line,), device=address(match["device"]), data=data)
    if match := _OFF.search(line.text):
        return Event(kind="power.persistence_off", lines=(line,), device=address(match["device"] or ""))
    if _FLAG.search(line.text):
        return Event(kind="power.persistenced_without_mode", lines=(line,))
    return None


DECODER = Decoder(
    id="power_limit",
    needles=(b"Power limit for GPU", b"ersistence mode is disabled", b"--no-persistence-mode"),
    decode=each(("Power limit for GPU", "ersistence mode is disabled", "--no-persistence-mode"), _parse),
)
