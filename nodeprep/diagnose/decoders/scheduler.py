"""What a batch system says of the GPUs of its nodes."""

from __future__ import annotations

import re

from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.decoders._each import each
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

# Source: Slurm, src/slurmctld/node_mgr.c and src/interfaces/gres.c.
_FEWER = re.compile(
    r"(?:\bnode (?P<node>[\w.-]{1,100}) .{0,60})?gres/gpu count reported lower than configured "
    r"\((?P<have>\d{1,4}) < (?P<want>\d{1,4})\)"
)
_NO_FILE = re.compile(r"can't stat gres\.conf file (?P<file>/dev/nvidia\d{1,3})")


def _parse(line: Line) -> Event | None:
    text = line.text
    if match := _FEWER.search(text):
        data = {"node": match["node"] or "", "have": int(match["have"]), "want": int(match["want"])}
        return Event(kind="slurm.fewer_gpus", lines=(line,), data=data)
    if match := _NO_FILE.search(text):
        return Event(kind="slurm.no_device_file", lines=(line,), data={"file": match["file"]})
    return None


DECODER = Decoder(
    id="scheduler",
    needles=(b"count reported lower", b"stat gres.conf file"),
    decode=each(("count reported lower", "stat gres.conf file"), _parse),
)
