"""Errors in the logs of the fabric manager, its subnet manager and IMEX, which share a form."""

from __future__ import annotations

import re

from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.decoders._each import each
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

_ERROR = re.compile(r"^\[(?:ERROR|CRITICAL|FATAL)\] \[tid \d{1,9}\] (?P<what>.{1,300})")
# Source: public issue (siderolabs/extensions 511): of its own configuration it speaks without a level.
_CONFIG = re.compile(r"(?P<what>fabric manager config file item: \w{1,60} has an invalid value)")
# A healthy log has "[INFO] [tid " in each of its lines.
_WORDS = ("[ERROR] [tid ", "[CRITICAL] [tid ", "[FATAL] [tid ", "fabric manager config file")


def _parse(line: Line) -> Event | None:
    match = _ERROR.match(line.text) or _CONFIG.search(line.text)
    if match is None:
        return None
    return Event(kind="fabric.log_error", lines=(line,), data={"what": match["what"].strip()})


DECODER = Decoder(
    id="fabric_log", needles=tuple(word.encode() for word in _WORDS), decode=each(_WORDS, _parse)
)
