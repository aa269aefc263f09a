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
# Logs and tickets break the sentence anew, with and without the mark of the driver on each line.
_CONTINUES = re.compile(r"\(PCI ID|installed in this|fallen off the bus")
_REPEATS = re.compile(rf"NVRM: GPU (?:at )?(?:PCI:)?(?P<device>{ADDRESS}):? (?:GPU )?has fallen off the bus")
_CONFIG_FFS = re.compile(
    # Kernels before 5.17 say it in the second way.
    rf"(?P<device>{ADDRESS}): (?:(?:Unable|Refused) to change power state from (?P<state>\w+)|"
    r"can't change power state from \w+ to D0 \(config space inaccessible\))"
)
# Source: Linux, drivers/pci/pci.c, pci_dev_wait: it waits in growing steps, and these are its last words.
_NOT_READY = re.compile(
    rf"(?P<device>{ADDRESS}): not ready \d{{1,9}}ms after (?P<what>[\w ]{{1,40}}); giving up"
)
# Source: NVML error strings, and nvidia-smi around them.
_LOST = re.compile(
    # A number of the GPU comes before its address since R610, and was all there is in some versions.
    # An address that was masked or mistyped names no GPU, and the GPU is as silent. Windows says "detect".
    rf"Unable to (?:determine|detect) the device handle for (?:GPU|gpu) ?(?:(?P<device>{ADDRESS})|\d{{1,3}}"
    rf"(?:: (?P<device2>{ADDRESS}))?|[\w*:.-]{{1,24}}): (?P<why>.*)|GPU is lost|"
    # The names that bindings of NVML give to the same error.
    r"\bGPUIsLost\b|(?:NVML_)?ERROR_GPU_IS_LOST"
)
# Source: nvstatuscodes.h, NV_ERR_GPU_IS_LOST is 0x0f: calls that fail since the GPU is gone. Without brackets
# the name is of a condition that an assertion would accept.
_LOST_STATUS = re.compile(
    r"NVRM: .*(?:\[NV_ERR_GPU_IS_LOST\]|rpcSendMessage failed with status 0x0{6,8}f\b|"
    r"GPU lost from the bus)"
)
_NVML_WORDS = ("device handle", "GPU is lost", "GPUIsLost", "GPU_IS_LOST")
_MAX_LINES_APART = 4


def decode(lines: Iterable[Line]) -> Iterator[Event]:
    """Events of GPUs that fell off, do not wake up or come back, and of calls that find them gone."""
    held: list[Line] = []
    for line in bounded(lines):
        text = line.text
        if held and (line.source != held[0].source or line.number - held[-1].number > _MAX_LINES_APART):
            held = []
        if held and _continues(text):
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
        elif "; giving up" in text and (silent := _NOT_READY.search(text)):
            data = {"after": silent["what"].strip()}
            yield Event(kind="gpu.never_ready", lines=(line,), device=address(silent["device"]), data=data)
        elif "NVRM" in text and "Xid" not in text and _LOST_STATUS.search(text):
            yield Event(kind="gpu.lost_status", lines=(line,))
        elif any(word in text for word in _NVML_WORDS) and (lost := _LOST.search(text)):
            why = lost["why"] or "GPU is lost"
            kind = "nvml.gpu_lost" if "lost" in why.lower() else "nvml.no_handle"
            yield Event(
                kind=kind,
                lines=(line,),
                device=address(lost["device"] or lost["device2"] or ""),
                data={"why": why.strip()},
            )


def _continues(text: str) -> bool:
    """Whether a line goes on with the sentence, and begins none of its own."""
    return (
        _CONTINUES.search(text) is not None
        and "The NVIDIA GPU" not in text
        and "Xid" not in text
        and _REPEATS.search(text) is None
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
        b"GPUIsLost",
        b"GPU_IS_LOST",
        b"the device handle for",
        b"change power state",
        b"; giving up",
    ),
    decode=decode,
)
