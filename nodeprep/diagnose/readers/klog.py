"""Kubernetes' and Google's logs: `I1009 06:41:17.205731       1 health.go:152] ...`.

PyTorch writes it with its rank before it: `[rank0]:[E1122 18:29:55.123456 ProcessGroupNCCL.cpp:616] ...`.
"""

from __future__ import annotations

import re

from nodeprep.diagnose.reader import NO_YEAR, Parsed
from nodeprep.diagnose.readers._log import log_reader
from nodeprep.diagnose.readers._time import CLOCK, NO_ZONE_NOTE, make

_PATTERN = (
    r"(?:\[\w{1,16}\]:)?\[?[IWEFC](?P<month>\d{2})(?P<day>\d{2}) "
    rf"(?P<clock>{CLOCK})\.(?P<fraction>\d{{1,9}}) {{1,12}}(?:\d{{1,10}} {{1,4}})?"
    r"[\w./-]{1,200}:\d{1,7}\] ?(?P<text>.*)"
)


def _build(match: re.Match[str]) -> Parsed:
    time = make(NO_YEAR, int(match["month"]), int(match["day"]), match["clock"], match["fraction"])
    return Parsed(text=match["text"], time=time, kernel=False, note=NO_ZONE_NOTE)


READER = log_reader("klog", _PATTERN, _build)
