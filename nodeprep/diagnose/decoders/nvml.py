"""What NVML and nvidia-smi print in place of an answer."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.decoders._each import bounded
from nodeprep.diagnose.device import ADDRESS, address
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

_BUS_ID = re.compile(r"\b[0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]\b")
_NOT_INITIALISED = re.compile(
    r"(?:Failed to initialize NVML|nvml(?:Init)?.*(?:error|failed)): (?P<why>Unknown Error|"
    r"Insufficient Permissions|"
    r"GPU access blocked|Driver Not Loaded)",
    re.IGNORECASE,
)
_NO_LIBRARY = re.compile(
    r"could not load NVML library|ERROR_LIBRARY_NOT_FOUND|libnvidia-ml\.so[.\d]*: cannot open shared object"
)
_HANG = re.compile(
    r"(?P<call>\bnvml\w+|nvidia-smi\b[^;]{0,40}?|NVML)\s+(?:call )?(?:did not (?:answer|return|"
    r"respond)|timed out|hung|"
    r"is not responding)(?: (?:within|after) (?P<seconds>\d{1,18}) ?s)?"
)
_DEVICE = re.compile(rf"bus_?id[=:] ?\"?(?P<device>{ADDRESS})|\bPCI:(?P<pci>{ADDRESS})", re.IGNORECASE)
_INFOROM = re.compile(rf"infoROM is corrupted at gpu (?P<device>{ADDRESS})", re.IGNORECASE)
_CONTAINER = re.compile(r"nvidia-container-cli: (?P<what>.*)")
_REQUIREMENT = re.compile(r"requirement error|unsatisfied condition")
_DAEMON_RELOAD = re.compile(r"systemctl daemon-reload|systemd\[1\]: Reloading\b")
_FABRIC_VERSION = re.compile(
    r"fabric ?manager.{0,120}version (?P<manager>[\d.]+).{0,80}(?:don't|doesn't|does not|do not) "
    r"match.*?(?P<driver>\d{1,18}\.[\d.]*\d)",
    re.IGNORECASE,
)
_FABRIC_NOTHING = re.compile(r"NV_WARN_NOTHING_TO_DO")
_FABRIC_FAILED = re.compile(
    r"nvidia-fabricmanager\.service: (?:Failed|Main process exited|Control process exited)|"
    r"Failed to start (?:nvidia-fabricmanager|.*[Ff]abric ?[Mm]anager)|"
    r"nvidia-fabricmanager.*(?:inactive \(dead\)|could not be found)|Unit "
    r"nvidia-fabricmanager\.service not found"
)
_WORD_KINDS = (("No devices were found", "nvml.no_devices"),)


def decode(lines: Iterable[Line]) -> Iterator[Event]:
    """Events `nvml.*`, `smi.err_cell`, `container.*`, `fabric.*`, `systemd.reload`."""
    bus_id: dict[str, str] = {}
    for line in bounded(lines):
        text = line.text
        # The table of nvidia-smi names a GPU one row above its readings.
        if found := _BUS_ID.search(text):
            bus_id[line.source] = address(found[0])
        event = _event(line, bus_id.get(line.source, ""))
        if event:
            yield event


def _event(line: Line, above: str) -> Event | None:  # noqa: PLR0911  # one return a message
    text = line.text
    if "ERR!" in text:
        return Event(kind="smi.err_cell", lines=(line,), device=above)
    if match := _NOT_INITIALISED.search(text):
        kind = "nvml." + match["why"].lower().replace(" ", "_")
        return Event(kind=kind, lines=(line,))
    if _NO_LIBRARY.search(text):
        return Event(kind="nvml.library_missing", lines=(line,))
    if match := _HANG.search(text):
        data = {"call": match["call"].strip(), "seconds": int(match["seconds"] or 0)}
        return Event(kind="nvml.hang", lines=(line,), device=_device(text), data=data)
    if match := _INFOROM.search(text):
        return Event(kind="nvml.inforom_corrupted", lines=(line,), device=address(match["device"]))
    if match := _CONTAINER.search(text):
        kind = "container.driver_too_old" if _REQUIREMENT.search(text) else "container.cli_failed"
        return Event(kind=kind, lines=(line,), data={"what": match["what"]})
    if match := _FABRIC_VERSION.search(text):
        data = {"manager": match["manager"], "driver": match["driver"]}
        return Event(kind="fabric.version_mismatch", lines=(line,), data=data)
    if _FABRIC_NOTHING.search(text):
        return Event(kind="fabric.no_nvswitch", lines=(line,))
    if _FABRIC_FAILED.search(text):
        return Event(kind="fabric.manager_failed", lines=(line,))
    if _DAEMON_RELOAD.search(text):
        return Event(kind="systemd.reload", lines=(line,))
    return next((Event(kind=kind, lines=(line,)) for words, kind in _WORD_KINDS if words in text), None)


def _device(text: str) -> str:
    match = _DEVICE.search(text)
    return address(match["device"] or match["pci"]) if match else ""


DECODER = Decoder(
    id="nvml",
    needles=(
        b"ERR!",
        b"NVML",
        b"nvml",
        b"nvidia-smi",
        b"libnvidia-ml",
        b"LIBRARY_NOT_FOUND",
        b"infoROM",
        b"nvidia-container-cli",
        b"abric",
        b"daemon-reload",
        b"NV_WARN_NOTHING",
        b"No devices were found",
    ),
    decode=decode,
)
