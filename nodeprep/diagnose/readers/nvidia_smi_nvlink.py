"""`nvidia-smi nvlink --status` and `-e`: a heading a GPU, then a line a link or a counter.

Its lines are for the decoder nvlink_status, which also finds them in the midst of a paste.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nodeprep.diagnose.reader import Item, RawLine, Reader
from nodeprep.diagnose.readers._document import lines_of

_HEADING = re.compile(rb"\s*GPU \d{1,3}: .{1,100} \(UUID: GPU-")
_LINK = re.compile(rb"\s*(?:Link \d{1,2}: |NVML: Unable to retrieve NV[Ll]ink information)")
_FIRST_LINES = 12


def _sniff(lines: Sequence[bytes]) -> int:
    first = lines[:_FIRST_LINES]
    heading = next((n for n, line in enumerate(first) if _HEADING.match(line)), len(first))
    return 91 if heading + 1 < len(first) and _LINK.match(first[heading + 1]) else 0


def _read(source: str, lines: Iterator[RawLine]) -> Iterator[Item]:
    yield from lines_of(source, lines)


READER = Reader(id="nvidia_smi_nvlink", sniff=_sniff, read=_read, whole=True)
