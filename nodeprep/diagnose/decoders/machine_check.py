"""Errors of the host itself: machine checks of the CPUs, memory errors that EDAC counts."""

from __future__ import annotations

import re

from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.decoders._each import each
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

_EDAC = re.compile(
    r"EDAC (?P<unit>[\w#]+?): (?P<count>\d{1,18}) (?P<kind>CE|UE) (?P<what>.*?) on (?P<place>\S+)"
)
_BANK = re.compile(
    r"CPU (?P<cpu>\d{1,18}): Machine Check(?: Exception)?: (?P<flags>\w+) Bank "
    r"(?P<bank>\d{1,18}): (?P<status>[0-9a-fA-F]+)"
)
_LOGGED = re.compile(r"mce: \[Hardware Error\]: Machine check events logged")
_FATAL = re.compile(
    r"mce: \[Hardware Error\]:.*(?:Fatal|Uncorrected|PANIC|Processor context corrupt)|Kernel "
    r"panic.*[Mm]achine check",
    re.IGNORECASE,
)
# Source: Linux, arch/x86/kernel/cpu/amd.c: what the processor kept of the reset before.
_FLOOD = re.compile(
    r"Previous system reset reason \[0x[0-9a-fA-F]{1,8}\]: .*(?:sync flood|uncorrected error)"
)
# Source: Linux, arch/x86/kernel/nmi.c, pci_serr_error and io_check_error.
_SERR = re.compile(r"NMI: (?:PCI system error \(SERR\)|IOCK error)")
# Source: HPE Integrated Management Log.
_IML = re.compile(r"Uncorrectable Machine Check Exception \(")
_AMD = re.compile(r"\[Hardware Error\]: (?P<text>(?:Corrected|Uncorrected|Deferred|System Fatal) error.*)")
_POISON = re.compile(r"Memory failure: 0x[0-9a-fA-F]+: (?P<text>.*)|HARDWARE ERROR.*MEMORY ERROR")
# EDAC drivers of Intel announce corrected errors with these words as well; the bank's status tells.
_EDAC_NOTE = re.compile(r"HANDLING MCE MEMORY ERROR")
_EDAC_BANK = re.compile(
    r"EDAC \w+ \w+: CPU \d{1,18}: Machine Check Event: \w+ Bank \d{1,18}: (?P<status>[0-9a-fA-F]{1,16})\b"
)
# Source: Intel SDM 3B 16.3.2.2, IA32_MCi_STATUS: bit 61 UC.
_UC = 1 << 61


def _parse(line: Line) -> Event | None:  # noqa: PLR0911  # one return a message
    text = line.text
    if match := _EDAC.search(text):
        kind = "edac.uncorrected" if match["kind"] == "UE" else "edac.corrected"
        data = {"errors": int(match["count"]), "place": match["place"], "what": match["what"]}
        return Event(kind=kind, lines=(line,), data=data, count=max(1, int(match["count"])))
    if match := _BANK.search(text):
        uncorrected = int(match["status"], 16) & _UC
        kind = "mce.uncorrected" if uncorrected else "mce.corrected"
        data = {"cpu": int(match["cpu"]), "bank": int(match["bank"])}
        return Event(kind=kind, lines=(line,), data=data)
    if _FATAL.search(text) or _IML.search(text):
        return Event(kind="mce.uncorrected", lines=(line,))
    if _FLOOD.search(text):
        return Event(kind="mce.uncorrected", lines=(line,))
    if _SERR.search(text):
        return Event(kind="host.pci_serr", lines=(line,))
    if _LOGGED.search(text):
        return Event(kind="mce.logged", lines=(line,))
    if match := _AMD.search(text):
        kind = "mce.corrected" if match["text"].startswith("Corrected") else "mce.uncorrected"
        return Event(kind=kind, lines=(line,))
    if match := _EDAC_BANK.search(text):
        kind = "mce.uncorrected" if int(match["status"], 16) & _UC else "mce.logged"
        return Event(kind=kind, lines=(line,))
    if _EDAC_NOTE.search(text):
        return Event(kind="mce.logged", lines=(line,))
    if _POISON.search(text):
        return Event(kind="mce.memory_failure", lines=(line,))
    return None


DECODER = Decoder(
    id="machine_check",
    needles=(
        b"[Hardware Error]",
        b"Machine Check Exception",
        b"EDAC ",
        b"Memory failure: ",
        b"MEMORY ERROR",
        b"system reset reason",
        b"NMI: ",
    ),
    decode=each(
        (
            "[Hardware Error]",
            "EDAC ",
            "Memory failure: ",
            "MEMORY ERROR",
            "achine check",
            "Machine Check",
            "system reset reason",
            "NMI: ",
        ),
        _parse,
    ),
)
