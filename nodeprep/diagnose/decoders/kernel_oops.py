"""The kernel itself stumbled: an oops or a panic, and whose code it was in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.decoders._each import bounded
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

# Source: Linux, arch/x86/mm/fault.c, arch/x86/kernel/traps.c and dumpstack.c, lib/bug.c, kernel/panic.c.
_BEGINS = re.compile(
    r"BUG: (?:unable to handle|kernel NULL pointer dereference)|[Uu]nable to handle kernel|"
    r"general protection fault.{0,80}\[#\d{1,4}\]|kernel BUG at |\bOops: (?:[0-9a-fA-F]{4}|general "
    r"protection)|"
    r"Kernel panic - not syncing"
)
_FIRST_WORDS = re.compile(
    r"BUG: (?:unable|kernel NULL)|nable to handle kernel|protection fault|kernel BUG at "
)
# A machine check ends in a panic as well, and has a decoder of its own.
_OF_OTHERS = re.compile(r"[Mm]achine check", re.IGNORECASE)
_TASK = re.compile(r"CPU: \d{1,9}.{0,40} Comm: (?P<name>\S.{0,15}?) (?:Tainted|Not tainted|Kdump)")
_PLACE = re.compile(
    r"\bRIP: .*?(?P<function>[\w.]+)\+0x[0-9a-f]+/0x[0-9a-f]+(?: \[(?P<module>\w+)\])?|"
    r"\bpc : (?P<pc>[\w.]+)\+0x\S+(?: \[(?P<pc_module>\w+)\])?"
)
_FRAME = re.compile(r"(?<!\? )\b\w+\+0x[0-9a-f]+/0x[0-9a-f]+ \[nvidia(?:_uvm|_modeset|_drm)?\]")
_MODULE = re.compile(r"nvidia(?:_uvm|_modeset|_drm)?")
# Threads that the driver makes for itself.
_THREADS = ("nv_queue", "nvidia-modeset", "UVM ")
_MAX_LINES = 120


@dataclass(slots=True)
class _Oops:
    lines: list[Line] = field(default_factory=list)
    name: str = ""
    function: str = ""
    module: str = ""
    panic: bool = False
    driver: bool = False

    def ends_before(self, line: Line) -> bool:
        """Whether a line is of no report, or of the next one."""
        first = self.lines[0]
        if line.source != first.source or line.number - first.number > _MAX_LINES:
            return True
        return bool(self.function) and _FIRST_WORDS.search(line.text) is not None

    def take(self, line: Line) -> None:
        """What a line of the report says of the place."""
        text = line.text
        if task := _TASK.search(text):
            self.name = self.name or task["name"]
            self.driver = self.driver or task["name"].startswith(_THREADS)
        elif (place := _PLACE.search(text)) and not self.function:
            self.function = place["function"] or place["pc"]
            self.module = place["module"] or place["pc_module"] or ""
            self.driver = self.driver or _MODULE.fullmatch(self.module) is not None
        elif _FRAME.search(text) and not self.driver:
            self.driver = True
        elif "Kernel panic" in text:
            self.panic = True
        elif _BEGINS.search(text) is None:
            return
        self.lines.append(line)

    def event(self) -> Event:
        """`driver.oops` when it was in the driver's code, `host.kernel_oops` else."""
        data = {"process": self.name, "function": self.function, "module": self.module, "panic": self.panic}
        return Event(
            kind="driver.oops" if self.driver else "host.kernel_oops", lines=tuple(self.lines), data=data
        )


def decode(lines: Iterable[Line]) -> Iterator[Event]:
    """Events `driver.oops` and `host.kernel_oops` {process, function, module, panic}, one a report."""
    held: _Oops | None = None
    for line in bounded(lines):
        text = line.text
        if held and held.ends_before(line):
            yield held.event()
            held = None
        if held is None:
            if any(word in text for word in _WORDS) and _BEGINS.search(text) and not _OF_OTHERS.search(text):
                held = _Oops()
                held.take(line)
            continue
        held.take(line)
    if held:
        yield held.event()


_WORDS = ("BUG", "nable to handle", "protection fault", "Oops: ", "Kernel panic")

DECODER = Decoder(
    id="kernel_oops",
    needles=(
        b"BUG: ",
        b"nable to handle kernel",
        b"protection fault",
        b"kernel BUG at",
        b"Oops: ",
        b"Kernel panic",
        b" Comm: ",
        b"RIP: 00",
        b"[nvidia",
    ),
    decode=decode,
)
