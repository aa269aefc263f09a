"""What the vGPU manager of a host logs of a virtual machine's share of a GPU."""

from __future__ import annotations

import re

from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.decoders._each import each
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

_ERROR = re.compile(r"error: vmiop(?:_env)?_log: (?P<what>\S.{0,200})")


def _parse(line: Line) -> Event | None:
    match = _ERROR.search(line.text)
    if match is None:
        return None
    return Event(kind="vgpu.error", lines=(line,), data={"what": match["what"].strip()})


DECODER = Decoder(id="vgpu", needles=(b"error: vmiop",), decode=each(("error: vmiop",), _parse))
