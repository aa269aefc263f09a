"""Console logs: only what is new, over rotation, and safe to print."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nodeprep.bmc import ConsoleLog, ConsoleMark, ConsoleUnreadable
from nodeprep.bmc.console import readable
from nodeprep.model.codec import decode, encode

GONE = "the log was emptied or replaced after the mark; what it said before that is not here"


@pytest.fixture
def log(tmp_path: Path) -> ConsoleLog:
    path = tmp_path / "node01.log"
    path.write_text("old boot\n")
    return ConsoleLog(path)


def add(log: ConsoleLog, text: str) -> None:
    with log.path.open("a") as file:
        file.write(text)


def test_only_what_came_after_the_mark(log: ConsoleLog) -> None:
    mark = log.mark()
    assert log.since(mark).text == ""
    add(log, "new boot\n")
    assert log.since(mark).text == "new boot"
    assert log.since(mark).note == ""


def test_a_mark_survives_as_json(log: ConsoleLog) -> None:
    mark = log.mark()
    add(log, "new boot\n")
    assert log.since(decode(encode(mark), ConsoleMark, source="x")).text == "new boot"


def test_a_long_text_is_cut_at_its_beginning_and_says_so(log: ConsoleLog) -> None:
    mark = log.mark()
    add(log, "".join(f"line {number:04}\n" for number in range(1000)))
    news = log.since(mark, most_bytes=35)
    assert news.text == "line 0997\nline 0998\nline 0999"
    assert news.note == "9965 bytes before this are left out"


def test_over_a_rotation_by_renaming(log: ConsoleLog) -> None:
    mark = log.mark()
    add(log, "before\n")
    log.path.rename(log.path.with_name("node01.log.1"))
    add(log, "after\n")
    assert log.since(mark).text == "before\nafter"
    assert log.since(mark).note == ""


def test_over_a_rotation_whose_old_file_is_gone(log: ConsoleLog) -> None:
    mark = log.mark()
    add(log, "before\n")
    # Kept open: otherwise the new file may get the old inode.
    with log.path.open():
        log.path.unlink()
        add(log, "after\n")
    assert (log.since(mark).text, log.since(mark).note) == ("after", GONE)


def test_over_a_rotation_by_emptying(log: ConsoleLog) -> None:
    mark = log.mark()
    os.truncate(log.path, 0)
    add(log, "new\n")
    assert (log.since(mark).text, log.since(mark).note) == ("new", GONE)


def test_emptied_and_grown_past_the_mark_again(log: ConsoleLog) -> None:
    mark = log.mark()
    os.truncate(log.path, 0)
    add(log, "much longer than the old boot\n")
    assert (log.since(mark).text, log.since(mark).note) == ("much longer than the old boot", GONE)


def test_a_log_that_begins_after_the_mark_is_new_altogether(tmp_path: Path) -> None:
    log = ConsoleLog(tmp_path / "node01.log")
    mark = log.mark()
    with pytest.raises(ConsoleUnreadable, match="nor was it there at the mark"):
        log.since(mark)
    add(log, "first words\n")
    assert log.since(mark).text == "first words"


def test_a_log_that_went_away(log: ConsoleLog) -> None:
    mark = log.mark()
    log.path.unlink()
    with pytest.raises(ConsoleUnreadable, match="it was there at the mark"):
        log.since(mark)


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_not_a_file_is_an_error_and_not_silence(tmp_path: Path, make: object) -> None:
    path = tmp_path / "console"
    make(path)  # type: ignore[operator]
    with pytest.raises(ConsoleUnreadable, match="cannot read the console log"):
        ConsoleLog(path).mark()
    with pytest.raises(ConsoleUnreadable, match="cannot read the console log"):
        ConsoleLog(path).since(ConsoleMark(1, 2, 3, ""))


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"one\r\ntwo\r\r\nthree", "one\ntwo\nthree"),
        (b"10%\r20%\r", "10%\n20%"),
        (b"\x1b[0;32m  OK  \x1b[0m] Started", "  OK  ] Started"),
        (b"\x1b[2J\x1b[1;1HGNU GRUB\x1b[3;2HDebian", "GNU GRUB\nDebian"),
        (b"\x1b]0;title\x07login:", "login:"),
        (b"\x1b(Bplain\x1b=", "plain"),
        ("\x9b31mred".encode(), "red"),
        (b"bell\x07 back\x08 nul\x00", "bell back nul"),
        ("right\u202eleft".encode(), "rightleft"),
        (b"caf\xc3\xa9 \xff", "café �"),
        (b"a\n\n \n\n\nb", "a\n\nb"),
        (b"cut off \x1b[", "cut off "),
    ],
)
def test_console_bytes_become_printable_lines(data: bytes, text: str) -> None:
    assert readable(data) == text
