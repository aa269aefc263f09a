"""Event logs of BMCs as inputs of a diagnosis: what an entry looks like, and where the next one goes on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from nodeprep.bmc import BmcTarget, LogEntry, LogMark, LogNews
from nodeprep.workflows import event_logs
from nodeprep.workflows.event_logs import EventLog, read_event_logs

TARGET = BmcTarget("n1", "ipmi", "127.0.0.1", 623, "admin", "x")
NOW = LogMark("7", "aa", 0)


def _read(monkeypatch: pytest.MonkeyPatch, news: LogNews, **more: Any) -> EventLog:
    class Controller:
        def log_mark(self) -> LogMark:
            return NOW

        def log_since(self, _mark: LogMark) -> LogNews:
            return news

    @contextlib.contextmanager
    def connect(_target: BmcTarget, **_options: Any) -> Iterator[Controller]:
        yield Controller()

    monkeypatch.setattr(event_logs, "connect", connect)
    return read_event_logs({"n1": TARGET}, **more)["n1"]


def _lines(log: EventLog) -> list[str]:
    return log.input.open().read().decode().splitlines()


@pytest.mark.parametrize(
    ("time", "begins"),
    [
        ("2026-03-04 10:15:00", "2026-03-04 10:15:00 | Fan 0x08 | "),
        ("2026-03-04T10:15:00-06:00", "2026-03-04T10:15:00-06:00 | Fan 0x08 | "),
        ("14195 s after the BMC's start", "1 | Pre-Init | 0000014195 | Fan 0x08 | "),
        ("", "1 | Pre-Init | 0000000000 | Fan 0x08 | "),
    ],
)
def test_an_entry_is_one_line_with_its_time(monkeypatch: pytest.MonkeyPatch, time: str, begins: str) -> None:
    entry = LogEntry("1", time, "Fan 0x08: Lower Critical\n(asserted, data 52 00 10)", "")
    (line,) = _lines(_read(monkeypatch, LogNews((entry,))))
    assert line == f"{begins}Lower Critical (asserted, data 52 00 10) | Asserted"


def test_an_entry_that_ends_something_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = LogEntry("1", "", "Fan 0x08: Lower Critical (deasserted, data 52 00 10)", "")
    (line,) = _lines(_read(monkeypatch, LogNews((entry,))))
    assert line.endswith("| Deasserted")


def test_the_next_reading_begins_where_this_one_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    log = _read(monkeypatch, LogNews(()))
    assert (log.mark, log.input.gap, log.input.continued) == (NOW, "", False)
    assert _read(monkeypatch, LogNews(()), since={"n1": NOW}).input.continued


def test_what_was_not_read_to_its_end_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    log = _read(monkeypatch, LogNews((), "what comes after it is not read", whole=False))
    assert (log.mark, log.input.gap) == (None, "what comes after it is not read")
    assert not log.input.unreadable
