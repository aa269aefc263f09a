"""What collective libraries and inference engines say when a rank is gone: mostly a symptom."""

from __future__ import annotations

import re

from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.decoders._each import each
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

_TIMEOUT = re.compile(
    r"Watchdog caught collective operation timeout|ProcessGroupNCCL.*(?:timed out|timeout)|"
    r"NCCL.{0,60}(?:timed out|timeout)|RPC call to \w+ timed out|No available shared memory broadcast block|"
    r"EngineCore encountered a fatal error|Engine process failed|EngineDeadError"
)
_REMOTE = re.compile(
    r"remote process exited|ncclRemoteError|Connection (?:closed|reset) by (?:remote )?peer.*NCCL|"
    r"NCCL.*Connection (?:closed|reset)"
)
_SHM = re.compile(
    r"(?:Error while (?:creating|attaching)|failed to open).*shared memory|/dev/shm.*No space left",
    re.IGNORECASE,
)
_IB = re.compile(
    r"NCCL WARN.*(?:NET/IB|ibv_|IBV_WC|Got completion from peer|[Cc]onnect to \S{1,80} (?:failed|returned)|"
    r"socketStartConnect)|NCCL INFO.*connect returned (?:No route to host|Connection timed out)|"
    # Without its head, as people quote it; plugins have names of their own (NET/IBP).
    r"NET/\w{2,16} ?: ?Got completion from peer|"
    # Each address is tried in turn; only the last words are a failure.
    r"\[c10d\] The client socket has failed to connect to any network address"
)
_SYSTEM = re.compile(
    r"unhandled system error|ncclSystemError|ncclInternalError|internal error - please report"
)
_CUDA = re.compile(r"NCCL WARN Cuda failure|unhandled cuda error|ncclUnhandledCudaError")

_INFO = re.compile(r"NCCL INFO (?:Channel|Connected|comm|ncclCommInit|Using network|NET/|P2P|Ring|Tree)")


def _parse(line: Line) -> Event | None:
    for kind, pattern in (
        ("nccl.shared_memory", _SHM),
        ("nccl.network", _IB),
        ("nccl.remote_gone", _REMOTE),
        ("nccl.timeout", _TIMEOUT),
        ("nccl.system_error", _SYSTEM),
        ("nccl.cuda_failure", _CUDA),
    ):
        if pattern.search(line.text):
            # It tries again, and says no more when that succeeds.
            data = {"retrying": True} if kind == "nccl.network" and ", retrying" in line.text else {}
            return Event(kind=kind, lines=(line,), data=data)
    if "NCCL INFO" in line.text and _INFO.search(line.text):
        data = {"complete": True} if line.text.rstrip().endswith("Init COMPLETE") else {}
        return Event(kind="collective.started", lines=(line,), data=data)
    return None


_WORDS = ("NCCL", "[c10d]", "nccl", "Got completion from peer", "RPC call to", "broadcast block",
          "EngineCore", "EngineDead", "Engine process", "shared memory", "dev/shm", "system error",
          "cuda error", "remote process exited")  # fmt: skip

DECODER = Decoder(
    id="collectives",
    needles=(
        b"NCCL",
        b"[c10d]",
        b"nccl",
        b"Got completion from peer",
        b"RPC call to",
        b"broadcast block",
        b"EngineCore",
        b"EngineDead",
        b"Engine process",
        b"shared memory",
        b"dev/shm",
        b"system error",
        b"cuda error",
        b"remote process exited",
    ),
    decode=each(_WORDS, _parse),
)
