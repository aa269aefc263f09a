"""What `nvidia-smi nvlink` says of each GPU's links: which are up, and what they counted.

`nvlink.status` {gpu, name, up, down} and `nvlink.errors` {gpu, name, replay, recovery, crc}, one a GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.decoders._each import bounded
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

_HEADING = re.compile(r"^\W*GPU (?P<gpu>\d{1,3}): (?P<name>[^()]{1,80}) \(UUID: GPU-")
_LINK = re.compile(
    r"^\W*Link (?P<link>\d{1,2}): (?:(?P<down><inactive>)|[\d.]{1,10} GB/s"
    r"|(?P<counter>Replay|Recovery|CRC)(?: FLIT)? Errors: (?P<count>\d{1,18}))\s*$"
)
_ALL_DOWN = re.compile(r"Unable to retrieve NV[Ll]ink information as all links are in[Aa]ctive")
# Eighteen links of three counters and a line between.
_MAX_LINES_APART = 8


@dataclass
class _Gpu:
    heading: Line
    gpu: int
    name: str
    up: list[int] = field(default_factory=list)
    down: list[int] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    shown: list[Line] = field(default_factory=list)
    last: int = 0
    all_down: bool = False

    def take(self, line: Line) -> None:
        self.last = line.number
        if _ALL_DOWN.search(line.text):
            self.all_down = True
            self.shown.append(line)
            return
        match = _LINK.match(line.text)
        if match is None:
            return
        link = int(match["link"])
        if match["counter"]:
            name, count = match["counter"].lower(), int(match["count"])
            self.counts[name] = self.counts.get(name, 0) + count
            if count and len(self.shown) < _MAX_LINES_APART:
                self.shown.append(line)
        elif match["down"]:
            self.down.append(link)
            self.shown.append(line)
        else:
            self.up.append(link)

    def events(self) -> Iterator[Event]:
        data = {"gpu": self.gpu, "name": self.name}
        lines = (self.heading, *self.shown[:_MAX_LINES_APART])
        if self.up or self.down or self.all_down:
            yield Event(kind="nvlink.status", lines=lines, data={**data, "up": self.up, "down": self.down})
        if any(self.counts.values()):
            counts = {name: self.counts.get(name, 0) for name in ("replay", "recovery", "crc")}
            yield Event(kind="nvlink.errors", lines=lines, data={**data, **counts})


def decode(lines: Iterable[Line]) -> Iterator[Event]:
    """Links belong to the heading above them."""
    gpu: _Gpu | None = None
    for line in bounded(lines):
        if gpu and (line.source != gpu.heading.source or line.number - gpu.last > _MAX_LINES_APART):
            yield from gpu.events()
            gpu = None
        heading = _HEADING.match(line.text) if "(UUID: GPU-" in line.text else None
        if heading:
            if gpu:
                yield from gpu.events()
            gpu = _Gpu(line, int(heading["gpu"]), heading["name"], last=line.number)
        elif gpu and ("Link " in line.text or "all links are in" in line.text):
            gpu.take(line)
    if gpu:
        yield from gpu.events()


DECODER = Decoder(
    id="nvlink_status",
    needles=(b"(UUID: GPU-", b": <inactive>", b" GB/s", b"all links are in", b" Errors: "),
    decode=decode,
)
