"""Marks that mails and tickets put before lines are taken off, and nothing that belongs to a log is."""

from __future__ import annotations

import pytest

from nodeprep.diagnose.inputs_quoting import unwrapped
from nodeprep.diagnose.reader import RawLine
from nodeprep.diagnose.readers import all_readers


def without_marks(*lines: str) -> list[str]:
    raw = (RawLine(number, line.encode()) for number, line in enumerate(lines, 1))
    return [line.data.decode() for line in unwrapped(raw)]


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        (("> [    1.000000] a", "> > b", ">", "c"), ["[    1.000000] a", "b", "", "c"]),
        (("     1\t[    1.000000] a", "     2\tb", "     3\tc"), ["[    1.000000] a", "b", "c"]),
        (("117: a", "118: b", "119: c", "120: d"), ["a", "b", "c", "d"]),
        (
            (
                "[  291.686628] pcieport 0001:00:00.0: PCIe Bus Error: a ",
                "severity=x",
                "[  292.000000] pcieport 0001:00:00.0: PCIe Bus Error: b ",
                "[  293.000000] c",
            ),
            [
                "[  291.686628] pcieport 0001:00:00.0: PCIe Bus Error: a severity=x",
                "[  292.000000] pcieport 0001:00:00.0: PCIe Bus Error: b ",
                "[  293.000000] c",
            ],
        ),
        # Two lines with numbers that fit may be so by chance.
        (("1: a", "2: b"), ["1: a", "2: b"]),
        (("1: a", "2: b", "7: c"), ["1: a", "2: b", "7: c"]),
    ],
)
def test_marks_are_taken_off(lines: tuple[str, ...], wanted: list[str]) -> None:
    assert without_marks(*lines) == wanted


def test_lines_are_not_joined_without_end() -> None:
    row = "NVRM: " + "y" * 50 + " "
    lines = without_marks("[    1.000000] " + row, *[row] * 50_000)
    assert max(map(len, lines)) < 2_000
    assert sum(line.count("NVRM") for line in lines) == 50_001


@pytest.mark.parametrize(
    "lines",
    [
        ("01:00.0 VGA compatible controller: x", "02:00.0 3D controller: x", "03:00.0 3D controller: x"),
        ("   1 | 01/02/2026 | 10:00:00 | a", "   2 | 01/02/2026 | 10:00:01 | b", "   3 | 01/02/2026 | c"),
        ("<4>[    1.000000] a", "<4>[    2.000000] b", "<4>[    3.000000] c"),
        ("6,1,100,-;a", "6,2,200,-;b", "6,3,300,-;c"),
    ],
)
def test_logs_keep_their_own_numbers(lines: tuple[str, ...]) -> None:
    assert without_marks(*lines) == list(lines)


@pytest.mark.parametrize(
    "stamp",
    [
        "Do Mär 26 07:38:49 2020",
        "jeu. mars 26 07:38:49 2020",
        "Чт мар 26 07:38:49 2020",
        "四 3月 26 07:38:49 2020",
        "木  3月 26 07:38:49 2020",
        "jue mar 26 07:38:49 2020",
    ],
)
def test_months_of_other_languages(stamp: str) -> None:
    reader = all_readers()["dmesg_ctime"]
    line = f"[{stamp}] NVRM: x"
    assert reader.opens is not None
    assert reader.opens.match(line.encode())
    assert reader.parse is not None
    parsed = reader.parse(line)
    assert parsed is not None
    assert str(parsed.time and parsed.time.isoformat()) == "2020-03-26T07:38:49+00:00"
