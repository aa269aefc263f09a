"""Network adapters whose firmware stopped: the ranks of a job find only that a peer is gone."""

from __future__ import annotations

import re

from nodeprep.diagnose.decoder import Decoder
from nodeprep.diagnose.decoders._each import each
from nodeprep.diagnose.device import ADDRESS, address
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

# Source: Linux, drivers/net/ethernet/mellanox/mlx5/core/health.c: poll_health and hsynd_str. What it prints
# beside that (assert_var, fw_ver, ext_synd) is for the vendor.
_WORDS = (
    "health compromised",
    "Fatal error ",
    "firmware internal error",
    "irisc not responding",
    "unrecoverable hardware error",
    "firmware CRC error",
    "ICM fetch PCI error",
    "ICM data parity error",
)
# Source: the same file, mlx5_health_try_recover: the driver starts the adapter again by itself. Older kernels
# spell it in the second way.
_AGAIN = ("health recovery succeeded", "health revovery succeded")
_RECOVERED = re.compile(rf"mlx5_core (?P<device>{ADDRESS}):.{{0,60}}?(?:{'|'.join(_AGAIN)})")
_STOPPED = re.compile(
    rf"mlx5_core (?P<device>{ADDRESS}):.{{0,60}}?(?P<what>device's health compromised - reached miss count|"
    rf"Fatal error \d{{1,3}} detected|{'|'.join(_WORDS[2:])})"
)


def _parse(line: Line) -> Event | None:
    """`adapter.stopped` {what} and `adapter.recovered`."""
    if match := _RECOVERED.search(line.text):
        return Event(kind="adapter.recovered", lines=(line,), device=address(match["device"]))
    match = _STOPPED.search(line.text)
    if match is None:
        return None
    return Event(
        kind="adapter.stopped",
        lines=(line,),
        device=address(match["device"]),
        data={"what": match["what"]},
    )


# The driver's name alone is in thousands of lines about links that come up.
_ALL = (*_WORDS, *_AGAIN)
DECODER = Decoder(id="adapter", needles=tuple(word.encode() for word in _ALL), decode=each(_ALL, _parse))
