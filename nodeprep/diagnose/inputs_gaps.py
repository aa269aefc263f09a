"""What only the inputs together tell: files missing between rotated ones, and inputs that say nothing."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

from nodeprep.diagnose.inputs_report import FileReport
from nodeprep.diagnose.readers._log import NO_START

_ROTATED = re.compile(r"(?P<base>.+?)\.(?P<number>\d{1,4})(?:\.(?:gz|xz|zst|bz2))?$")
_TELLING_NOTHING = frozenset({"plain"})


def add_gaps(files: Sequence[FileReport], *, silent: bool) -> None:
    """Adds to the reports what is missing between the files, and takes off what an older file holds.

    Args:
        silent: Nothing was found in any of them.
    """
    groups: dict[str, dict[int, FileReport]] = defaultdict(dict)
    for file in files:
        rotated = _ROTATED.match(file.name)
        base, number = (rotated["base"], int(rotated["number"])) if rotated else (file.name, 0)
        groups[base].setdefault(number, file)
    for base, group in groups.items():
        _compare(base, group)
    if silent:
        _require_something(files)


def _compare(base: str, group: dict[int, FileReport]) -> None:
    numbers = sorted(group)
    for newer, older in pairwise(numbers):
        if older == newer + 1:
            # What came before its first line is in the older file.
            for section in group[newer].sections:
                section.gaps = [gap for gap in section.gaps if not gap.startswith(NO_START)]
            continue
        missing = f"{base}.{newer + 1}" if older == newer + 2 else f"{base}.{newer + 1} to .{older - 1}"
        group[newer].gaps.append(f"{missing} is missing between it and {group[older].name}")


def _require_something(files: Sequence[FileReport]) -> None:
    """Text that no reader knows is no evidence of health."""
    for file in files:
        if file.sections and {section.format for section in file.sections} <= _TELLING_NOTHING:
            file.gaps.append("nothing in it was recognised as a log or as the output of a tool")
