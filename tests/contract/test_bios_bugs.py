"""docs/bios-bugs.md names, for each group of public bugs, the files with its tests; none is without."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "bios-bugs.md"
GROUPS = range(1, 36)
_TEST = re.compile(r"^def (test_bug_\w+)\(", re.MULTILINE)
_NUMBER = re.compile(r"(?:bug|and)_(\d\d)(?=_)")


def named() -> Iterator[tuple[int, str]]:
    """Number and file of each test of a bug."""
    for file in TESTS.rglob("test_*.py"):
        for name in _TEST.findall(file.read_text()):
            for number in _NUMBER.findall(name):
                yield int(number), file.name


def listed() -> dict[int, set[str]]:
    """By number, the files that the page names."""
    rows = re.findall(r"^\| (\d+) \|.*\| ([^|]+) \|$", PAGE.read_text(), re.MULTILINE)
    return {int(number): set(re.findall(r"`(\w+\.py)`", cell)) for number, cell in rows}


def test_the_page_has_a_row_for_each_group() -> None:
    assert list(listed()) == list(GROUPS)


def test_each_group_has_tests_and_the_page_names_their_files() -> None:
    found: dict[int, set[str]] = {number: set() for number in GROUPS}
    for number, file in named():
        found[number].add(file)
    assert all(found.values())
    assert listed() == found
