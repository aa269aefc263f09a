"""How the driver's module came up: its version, who refused it, who holds its GPU."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.decoders._each import each
from nodeprep.diagnose.device import ADDRESS, address
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

_LOADED = re.compile(
    r"(?:NVRM: loading |NVRM version: )?NVIDIA UNIX (?P<open>Open )?(?:\w+ )?Kernel Module\s+(?:for \w+\s+)?"
    r"(?P<version>\d{1,18}(?:\.\d{1,18})+)"
)
_ASSERTION = re.compile(
    r"NVRM: .{0,60}nvAssert\w*: Assertion failed: (?!.*\[NV_ERR_(?:GPU_IS_LOST|RESET_REQUIRED)\])"
)
_MISMATCH = re.compile(r"[Dd]river/library version mismatch")
_NO_DRIVER = re.compile(
    r"couldn'?t communicate with the NVIDIA driver|Failed to query NVIDIA devices\. Please ensure|"
    r"modprobe nvidia(?:[-_]\w{1,10})?' failed with exit code|"
    r"Unable to load the kernel module 'nvidia\.ko'|nvidia\.ko.* not found|"
    r"FATAL: Module nvidia not found|Driver Not Loaded",
    re.IGNORECASE,
)
_NOUVEAU = re.compile(
    rf"nouveau (?P<device>{ADDRESS}): |NVRM: .*\bnouveau\b|nouveau kernel driver.*(?:conflict|in use)"
)
_CONFLICT = re.compile(
    r"NVRM: .*(?:nouveau, rivafb|obtained ownership|No NVIDIA devices probed)|"
    r"nouveau.{0,60}(?:currently in use|conflict)"
)
_KEY = re.compile(
    r"Key was rejected by service|Loading of (?:unsigned )?module with unavailable key is rejected|"
    r"Loading of unsigned module is rejected|Required key not available|"
    r"PKCS#7 signature not signed with a trusted key"
)
_HARMLESS = re.compile(
    r"nvidia[-_\w]*: module verification failed: signature and/or required key missing|"
    r"nvidia[-_\w]*: loading out-of-tree module taints kernel|module license 'NVIDIA' taints kernel"
)
_VERMAGIC = re.compile(r"nvidia[-_\w]*: (?:version magic|disagrees about version of symbol|Unknown symbol)")
# Peer memory is the one symbol that belongs to the RDMA modules, not to the kernel.
_PEERMEM = re.compile(
    r"(?:nvidia_peermem|nv_peer_mem): (?:disagrees about version of symbol|Unknown symbol) ib_|"
    r"could not insert '(?:nvidia_peermem|nv_peer_mem)'"
)
_UNSUPPORTED = re.compile(
    rf"NVRM: (?:The NVIDIA(?: GPU)? (?P<device>{ADDRESS}).{{0,60}}? )?"
    r"(?:.{0,40}installed in this system |\.\.\. )"
    r"(?P<why>is not supported by|requires use of the NVIDIA open|is$)"
)
# The second of these lines is all that some filters leave of the sentence above.
_TOO_OLD = re.compile(r"NVRM: nvidia\.ko because it does not include the required GPU")
_LEGACY = re.compile(r"NVRM:\s+supported through the NVIDIA (?P<branch>[\w.]{0,12}) ?Legacy drivers")
_HELD = re.compile(rf"NVRM: GPU (?P<device>{ADDRESS}) is already bound to (?P<driver>[\w-]{{1,32}})")
_GPU_NAMED = re.compile(rf"NVRM: The NVIDIA(?: GPU)? (?P<device>{ADDRESS})")
_DKMS = re.compile(
    r"^nvidia(?:-\w+)*[/, ]+(?P<version>[\d.]+)(?P<suffix>-?[A-Za-z][\w.+~-]*)?, .*: (?:installed|"
    r"built|added)"
)


def _parse(line: Line) -> Event | None:  # noqa: PLR0911, PLR0912  # one branch a message
    text = line.text
    if loaded := _LOADED.search(text):
        data = {"version": loaded["version"], "open": bool(loaded["open"])}
        return Event(kind="driver.loaded", lines=(line,), data=data)
    if _ASSERTION.search(text):
        return Event(kind="driver.assertion", lines=(line,))
    if _MISMATCH.search(text):
        return Event(kind="driver.version_mismatch", lines=(line,))
    if _NO_DRIVER.search(text):
        return Event(kind="driver.not_loaded", lines=(line,))
    if _KEY.search(text):
        return Event(kind="driver.key_rejected", lines=(line,))
    if _HARMLESS.search(text):
        return None
    if _PEERMEM.search(text):
        return Event(kind="driver.peermem_refused", lines=(line,))
    if _VERMAGIC.search(text):
        return Event(kind="driver.wrong_kernel", lines=(line,))
    if _CONFLICT.search(text):
        return Event(kind="driver.nouveau_conflict", lines=(line,))
    if nouveau := _NOUVEAU.search(text):
        return Event(kind="driver.nouveau", lines=(line,), device=address(nouveau["device"] or ""))
    if (unsupported := _UNSUPPORTED.search(text)) and unsupported["why"]:
        kind = "driver.needs_open_module" if "requires" in unsupported["why"] else "driver.gpu_unsupported"
        return Event(kind=kind, lines=(line,), device=address(unsupported["device"] or ""))
    if _TOO_OLD.search(text):
        return Event(kind="driver.gpu_unsupported_noted", lines=(line,))
    if legacy := _LEGACY.search(text):
        return Event(kind="driver.gpu_legacy", lines=(line,), data={"branch": legacy["branch"]})
    if held := _HELD.search(text):
        kind = "gpu.held_for_guests" if held["driver"] == "vfio-pci" else "driver.nouveau_conflict"
        data = {"driver": held["driver"]}
        return Event(kind=kind, lines=(line,), device=address(held["device"]), data=data)
    if (dkms := _DKMS.search(text)) and dkms["suffix"]:
        data = {"version": dkms["version"] + dkms["suffix"]}
        return Event(kind="driver.modified", lines=(line,), data=data)
    return None


_WORDS = (
    "NVRM", "NVIDIA UNIX", "version mismatch", "NVIDIA driver", "query NVIDIA devices", "modprobe nvidia",
    "module 'nvidia.ko'", "nouveau", "rejected", "Required key",
    "PKCS#7", "nvidia: ", "nvidia/", "nvidia, ", "nvidia.ko", "Module nvidia",
    "of symbol ", "Unknown symbol ", "peermem'", "peer_mem'",
)  # fmt: skip

_each = each(_WORDS, _parse)


def _decode(lines: Iterable[Line]) -> Iterator[Event]:
    """The events; a refusal that stands on the line after the one with the address has that address."""
    held: list[Line] = []

    def watched() -> Iterator[Line]:
        for line in lines:
            held.append(line)
            del held[:-2]
            yield line

    for event in _each(watched()):
        before = held[0]
        named = _GPU_NAMED.search(before.text)
        if (
            event.kind in ("driver.needs_open_module", "driver.gpu_unsupported")
            and not event.device
            and named
        ):
            yield replace(event, lines=(before, *event.lines), device=address(named["device"]))
        else:
            yield event


DECODER = Decoder(
    id="driver_load",
    needles=(
        b"NVRM",
        b"NVIDIA UNIX",
        b"version mismatch",
        b"NVIDIA driver",
        b"query NVIDIA devices",
        b"modprobe nvidia",
        b"nouveau",
        b"is rejected",
        b"was rejected",
        b"Required key",
        b"PKCS#7",
        b"nvidia: ",
        b"nvidia/",
        b"nvidia, ",
        b"nvidia.ko",
        b"Module nvidia",
        b"of symbol ",
        b"Unknown symbol ",
        b"peermem'",
        b"peer_mem'",
    ),
    decode=_decode,
)
