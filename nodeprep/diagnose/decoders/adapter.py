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
_STOPPED = re.compile(
    rf"mlx5_core (?P<device>{ADDRESS}):.{{0,60}}?(?P<what>device's health compromised - reached miss count|"
    r"Fatal error \d{1,3} detected|firmware internal error|irisc not responding|unrecoverable hardware error|"
    r"firmware CRC error|ICM fetch PCI error|ICM data parity error)"
)


def _parse(line: Line) -> Event | None:
    match = _STOPPED.search(line.text)
    if match is None:
        return None
    return Event(
        kind="adapter.stopped",
        lines=(line,),
        device=address(match["device"]),
        data={"what": match["what"]},
    )


DECODER = Decoder(id="adapter", needles=(b"mlx5_core",), decode=each(("mlx5_core",), _parse))
