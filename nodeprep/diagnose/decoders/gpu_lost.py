"""GPUs that are gone: the driver's words for it besides Xid 79, and NVML's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.decoders._each import bounded
from nodeprep.diagnose.device import ADDRESS, address
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

# When it happens while the driver loads there is no Xid, and the sentence is broken over three lines, of
# which in a ring buffer only the first has a time.
_BEGINS = re.compile(rf"NVRM: The NVIDIA GPU (?P<device>{ADDRESS})\s*(?P<rest>.*)")
_CONTINUES = re.compile(
    r"NVRM: (?:\(PCI ID|installed in this system has|fallen off the bus)|^\s*NVRM: \(PCI ID"
)
_REPEATS = re.compile(rf"NVRM: GPU (?:at )?(?:PCI:)?(?P<device>{ADDRESS}):? (?:GPU )?has fallen off the bus")
_CONFIG_FFS = re.compile(
    rf"(?P<device>{ADDRESS}): (?:Unable|Refused) to change power state from (?P<state>\w+)"
)
# Source: NVML error strings, and nvidia-smi around them.
_LOST = re.compile(
    rf"Unable to determine the device handle for (?:GPU|gpu) ?(?P<device>{ADDRESS}): (?P<why>.*)|GPU is lost"
)
_MAX_LINES_APART = 4


def decode(lines: Iterable[Line]) -> Iterator[Event]:
    """Events `gpu.fallen_off_bus`, the same `_noted` beside an Xid, `nvml.gpu_lost`, `nvml.no_handle`."""
    held: list[Line] = []
    for line in bounded(lines):
        text = line.text
        if held and (line.source != held[0].source or line.number - held[-1].number > _MAX_LINES_APART):
            held = []
        if held and "NVRM" in text and _CONTINUES.search(text):
            held.append(line)
            if "fallen off the bus" in text:
                yield _fell_at_probe(held)
                held = []
            continue
        if begins := ("The NVIDIA GPU" in text and _BEGINS.search(text)):
            held = [line]
            if "fallen off the bus" in begins["rest"]:
                yield _fell_at_probe(held)
                held = []
        elif "fallen off the bus" in text and "Xid" not in text:
            match = _REPEATS.search(text)
            yield Event(
                kind="gpu.fallen_off_bus_noted",
                lines=(line,),
                device=address(match["device"]) if match else "",
            )
        elif "change power state" in text and (found := _CONFIG_FFS.search(text)):
            yield Event(kind="gpu.power_state_stuck", lines=(line,), device=address(found["device"]))
        elif ("device handle" in text or "GPU is lost" in text) and (lost := _LOST.search(text)):
            why = lost["why"] or "GPU is lost"
            kind = "nvml.gpu_lost" if "lost" in why.lower() else "nvml.no_handle"
            yield Event(
                kind=kind, lines=(line,), device=address(lost["device"] or ""), data={"why": why.strip()}
            )


def _fell_at_probe(lines: list[Line]) -> Event:
    begins = _BEGINS.search(lines[0].text)
    return Event(
        kind="gpu.fallen_off_bus", lines=tuple(lines), device=address(begins["device"]) if begins else ""
    )


DECODER = Decoder(
    id="gpu_lost",
    needles=(
        b"NVRM",
        b"fallen off the bus",
        b"GPU is lost",
        b"determine the device handle",
        b"to change power state",
    ),
    decode=decode,
)
