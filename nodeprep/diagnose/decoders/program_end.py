"""How processes of a program ended, as launchers tell it, and what CUDA's libraries said."""

from __future__ import annotations

import re

from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.decoders._each import each
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

_SIGNAL = re.compile(r"Signal (?P<number>\d{1,2}) \((?P<name>SIG[A-Z]{2,6})\) received by PID")
_LIBRARY = re.compile(
    r"\b(?P<what>CU(?:BLAS|DNN|SPARSE|SOLVER)_STATUS_(?!ALLOC_FAILED)(?!SUCCESS)[A-Z_]{4,40})\b"
)


def _parse(line: Line) -> Event | None:
    if match := _SIGNAL.search(line.text):
        return Event(kind="app.signal", lines=(line,), data={"signal": match["name"]})
    if match := _LIBRARY.search(line.text):
        return Event(kind="app.library_failed", lines=(line,), data={"what": match["what"]})
    return None


DECODER = Decoder(
    id="program_end",
    needles=(b") received by PID", b"_STATUS_"),
    decode=each(("received by PID", "_STATUS_"), _parse),
)
