"""GPUs that the driver could not bring up."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.decoders._each import bounded
from nodeprep.diagnose.device import ADDRESS, address
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

_RM_INIT = re.compile(
    # Old drivers name no GPU here.
    rf"NVRM: (?:GPU (?P<device>{ADDRESS}): )?RmInitAdapter failed!(?: \((?P<status>[0-9a-fA-Fx:]+)\))?"
)
_MINOR = re.compile(rf"NVRM: (?:GPU (?P<device>{ADDRESS}): )?rm_init_adapter(?:\(\d{{1,4}}\))? failed")
_PROBE = re.compile(r"NVRM: The NVIDIA probe routine failed for (?P<count>\d{1,18}) device")
_REFUSED = re.compile(
    rf"nvidia(?: (?P<device>{ADDRESS}))?: probe (?:of (?P<device2>{ADDRESS})|with driver nvidia) "
    r"failed with error"
)
_NOT_PROBED = re.compile(r"NVRM: The NVIDIA probe routine was not called for (?P<count>\d{1,18}) device")
_BAR = re.compile(r"NVRM: BAR(?P<bar>\d) is 0M @ 0x0 \(PCI:(?P<device>[0-9a-fA-F:.]+)\)")
_BAR_INVALID = re.compile(r"NVRM: This PCI I/O region assigned to your NVIDIA device is invalid")
_NO_GPU = re.compile(r"NVRM: No NVIDIA (?:GPU|graphics adapter) (?:found|probed)", re.IGNORECASE)
_BOOT = re.compile(
    r"NVRM:? .*(?:GFW_BOOT|GFW boot|osInitNvMapping|Cannot attach gpu|cannot bootstrap riscv/gsp|"
    r"Cannot initialize GSP firmware|failed to execute FWSEC|Timeout waiting for GSP target mask|"
    r"Booter failed|failed to copy vbios)"
)
# The driver asks the kernel for a file of its own version; without it no GSP starts. Log strings
# (gsp_log_*.bin) are not shipped, and nobody needs them.
_FIRMWARE = re.compile(
    rf"nvidia (?P<device>{ADDRESS}): (?:Direct firmware load for|loading) (?!\S*gsp_log)\S*nvidia/\S+ "
    r"failed with error|"
    r"NVRM: .*(?:No firmware image found|[Ff]ailed to load .{0,40}gsp\w*\.bin)"
)
# Source: kernel-open/nvidia/nv-pci.c, nv_pci_remove.
_REMOVED = re.compile(
    rf"NVRM: Attempting to remove (?:minor )?device (?P<device>{ADDRESS})?.{{0,20}} with non-zero usage count"
)
_POWER = re.compile(r"NVRM: GPU does not have the necessary power cables connected")


def decode(lines: Iterable[Line]) -> Iterator[Event]:  # noqa: PLR0912  # one branch a message
    """Events `gpu.init_failed`, `.probe_failed`, `.not_probed`, `.bar_missing` and the like."""
    invalid: Line | None = None
    for line in bounded(lines):
        text = line.text
        if "failed with error" in text and (refused := _REFUSED.search(text)):
            device = address(refused["device"] or refused["device2"] or "")
            yield Event(kind="gpu.probe_failed", lines=(line,), device=device, data={"devices": 1})
            continue
        if "NVRM" not in text and "nvidia/" not in text:
            continue
        if match := _RM_INIT.search(text):
            yield Event(
                kind="gpu.init_failed",
                lines=(line,),
                device=address(match["device"] or ""),
                data={"status": match["status"] or ""},
            )
        elif match := _MINOR.search(text):
            yield Event(kind="gpu.init_failed_noted", lines=(line,), device=address(match["device"] or ""))
        elif match := _PROBE.search(text):
            yield Event(kind="gpu.probe_failed", lines=(line,), data={"devices": int(match["count"])})
        elif match := _NOT_PROBED.search(text):
            yield Event(kind="gpu.not_probed", lines=(line,), data={"devices": int(match["count"])})
        elif _BAR_INVALID.search(text):
            invalid = line
        elif match := _BAR.search(text):
            lines_ = (invalid, line) if invalid and line.number - invalid.number <= 2 else (line,)
            yield Event(
                kind="gpu.bar_missing",
                lines=lines_,
                device=address(match["device"]),
                data={"bar": int(match["bar"])},
            )
            invalid = None
        elif firmware := _FIRMWARE.search(text):
            yield Event(kind="gpu.firmware_missing", lines=(line,), device=address(firmware["device"] or ""))
        elif removed := _REMOVED.search(text):
            yield Event(kind="gpu.removed_in_use", lines=(line,), device=address(removed["device"] or ""))
        elif _POWER.search(text):
            yield Event(kind="gpu.power_cable_missing", lines=(line,))
        elif _NO_GPU.search(text):
            yield Event(kind="gpu.none_found", lines=(line,))
        elif _BOOT.search(text):
            yield Event(kind="gpu.boot_failed", lines=(line,))
    if invalid:
        yield Event(kind="gpu.bar_missing", lines=(invalid,))


DECODER = Decoder(
    id="gpu_init",
    needles=(b"NVRM", b"nvidia/", b"nvidia: probe of", b"with driver nvidia failed"),
    decode=decode,
)
