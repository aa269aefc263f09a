"""The driver's display part complains, or waits in vain for its GPU."""

from __future__ import annotations

import re

from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.decoders._each import each
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

# Source: open-gpu-kernel-modules, src/nvidia-modeset/src/nvkms-dma.c and nvkms-evo.c.
_STUCK = re.compile(r"Error while waiting for GPU progress|Failed to query display engine channel state")


def _parse(line: Line) -> Event | None:
    """`display.gpu_stuck` when the GPU does not go on, `display.error` for all else."""
    kind = "display.gpu_stuck" if _STUCK.search(line.text) else "display.error"
    return Event(kind=kind, lines=(line,))


DECODER = Decoder(
    id="display", needles=(b"nvidia-modeset: ERROR",), decode=each(("nvidia-modeset: ERROR",), _parse)
)
