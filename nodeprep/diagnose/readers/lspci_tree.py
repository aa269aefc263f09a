"""`lspci -t`, `-tv`: the tree as lines and dashes, ` +-01.1-[01-04]----00.0  NVIDIA ...`.

Events `pci.bridge` {first_bus, last_bus}, as the kernel's own lines make them, for each bridge.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nodeprep.diagnose.event import Event
from nodeprep.diagnose.reader import Item, RawLine, Reader
from nodeprep.diagnose.readers._document import lines_of

_OPENS = re.compile(rb"\s{0,2}[-+\\ ]{1,3}-?\[(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}(?:-[0-9a-f]{2})?\]-")
_ROOT = re.compile(r"[-+\\ ]{1,4}\[(?:(?P<domain>[0-9a-f]{4,8}):)?(?P<bus>[0-9a-f]{2})(?:-[0-9a-f]{2})?\]")
_BRIDGE = re.compile(
    r"(?P<slot>[0-9a-f]{2})\.(?P<function>[0-7])-{1,8}\[(?P<first>[0-9a-f]{2})(?:-(?P<last>[0-9a-f]{2}))?\]"
)
_MAX_DEPTH = 40


def _sniff(lines: Sequence[bytes]) -> int:
    return 93 if any(_OPENS.match(line) for line in lines[:3]) else 0


def _read(source: str, lines: Iterator[RawLine]) -> Iterator[Item]:
    domain = "0000"
    # Column at which a bus begins, and its number; a line further left ends it.
    stack: list[tuple[int, str]] = []
    for line in lines_of(source, lines):
        yield line
        text = line.text
        root = _ROOT.match(text)
        if root is not None:
            domain = f"{int(root['domain'] or '0', 16):04x}"
            stack = [(root.end(), root["bus"])]
        for match in _BRIDGE.finditer(text):
            while stack and stack[-1][0] > match.start():
                stack.pop()
            if not stack:
                break
            device = f"{domain}:{stack[-1][1]}:{match['slot']}.{match['function']}"
            first, last = int(match["first"], 16), int(match["last"] or match["first"], 16)
            data = {"first_bus": first, "last_bus": last}
            yield Event(kind="pci.bridge", lines=(line,), device=device, data=data)
            if len(stack) < _MAX_DEPTH:
                stack.append((match.end(), match["first"]))


READER = Reader(id="lspci_tree", sniff=_sniff, read=_read, whole=True, opens=_OPENS)
