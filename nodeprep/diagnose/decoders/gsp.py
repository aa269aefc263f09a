"""What the driver says of the GPU's own firmware processor, and of a reset that is due, without an Xid."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.decoders._each import bounded
from nodeprep.diagnose.device import ADDRESS, address
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

_LIMITED = re.compile(rf"Rate limiting GSP RPC error prints for GPU at PCI:(?P<device>{ADDRESS})")
_TIMEOUT = re.compile(
    r"(?:_kgspRpcRecvPoll|_kgspIsHeartbeatTimedOut|rpcRecvPoll|GSP RPC|GspRpc).*?"
    r"(?:timed? ?out|Timeout|timeout)",
    re.IGNORECASE,
)
# Source: open-gpu-kernel-modules, kernel_gsp.c, kgspLogRpcDebugInfo: printed when a call was not answered.
_HISTORY = re.compile(r"NVRM: .{0,20}RPC (?:event )?history \(")
_CRASH = re.compile(r"GSP (?:task|RM|firmware)?.{0,40}(?:exception|crash|halted|panic)", re.IGNORECASE)
# Source: nvstatuscodes.h, NV_ERR_RESET_REQUIRED.
_RESET = re.compile(
    r"NV_ERR_RESET_REQUIRED|paramsStatus=0x0*62\b|(?<!params)[sS]tatus=0x0*62\b|\[GPU requires reset\]"
)
_RPC = re.compile(r"rpcRmApi\w+_GSP: \w+ failed|GspRmAlloc failed|GspRmControl failed")


def decode(lines: Iterable[Line]) -> Iterator[Event]:
    """Events `gsp.errors_limited`, `gsp.timeout`, `gsp.crash`, `gpu.reset_required`, `gsp.call_failed`."""
    for line in bounded(lines):
        text = line.text
        if "NVRM" not in text and "requires reset" not in text:
            continue
        if "Xid (" in text:
            continue
        if _RESET.search(text):
            yield Event(kind="gpu.reset_required", lines=(line,))
        elif limited := _LIMITED.search(text):
            yield Event(kind="gsp.errors_limited", lines=(line,), device=address(limited["device"]))
        elif _TIMEOUT.search(text) or _HISTORY.search(text):
            yield Event(kind="gsp.timeout", lines=(line,))
        elif _CRASH.search(text):
            yield Event(kind="gsp.crash", lines=(line,))
        elif _RPC.search(text):
            yield Event(kind="gsp.call_failed", lines=(line,))


DECODER = Decoder(id="gsp", needles=(b"NVRM", b"requires reset"), decode=decode)
