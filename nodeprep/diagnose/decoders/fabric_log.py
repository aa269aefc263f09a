"""Errors in the logs of the fabric manager, its subnet manager and IMEX, which share a form."""

from __future__ import annotations

import re

from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.decoders._each import each
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

_ERROR = re.compile(r"^\[(?:ERROR|CRITICAL|FATAL)\] \[tid \d{1,9}\] (?P<what>.{1,300})")


def _parse(line: Line) -> Event | None:
    match = _ERROR.match(line.text)
    if match is None:
        return None
    return Event(kind="fabric.log_error", lines=(line,), data={"what": match["what"].strip()})


DECODER = Decoder(id="fabric_log", needles=(b"] [tid ",), decode=each(("] [tid ",), _parse))
