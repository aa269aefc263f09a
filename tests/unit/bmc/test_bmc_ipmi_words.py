"""Answers of BMCs that the simulator cannot give: faults, overwritten logs, malformed answers."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from nodeprep.bmc import BmcRefused, BmcUnreachable, LogMark
from nodeprep.bmc.ipmi import power, sel
from nodeprep.bmc.ipmi.identity import identity
from nodeprep.bmc.ipmi.sel_words import record_words
from nodeprep.model.codec import decode, encode

NO_RECORD, INVALID = 0xCB, 0xC1


class Scripted:
    """Answers by (netfn, command); a number is a completion code."""

    def __init__(self, answers: dict[tuple[int, int], bytes | int]) -> None:
        self.answers = answers
        self.once: list[Sequence[int]] = []

    def command(self, netfn: int, command: int, data: Sequence[int] = ()) -> bytes:
        answer = self.answers.get((netfn, command), INVALID)
        if isinstance(answer, int):
            raise BmcRefused("refused", code=answer)
        return answer

    def command_once(self, netfn: int, command: int, data: Sequence[int] = ()) -> bool:
        self.once.append(data)
        return True


class Log(Scripted):
    """An event log of records by identity."""

    def __init__(self, records: dict[int, bytes], *, erased_at: int = 0, flags: int = 0) -> None:
        super().__init__({})
        self.records = records
        self.erased_at = erased_at
        self.flags = flags

    def command(self, netfn: int, command: int, data: Sequence[int] = ()) -> bytes:
        if command == 0x40:
            return bytes(9) + self.erased_at.to_bytes(4, "little") + bytes([self.flags])
        identities = list(self.records)
        wanted = data[2] | data[3] << 8
        if wanted in (0, 0xFFFF) and identities:
            wanted = identities[0 if wanted == 0 else -1]
        if wanted not in self.records:
            raise BmcRefused("no such record", code=NO_RECORD)
        following = identities[identities.index(wanted) + 1 :] or [0xFFFF]
        return following[0].to_bytes(2, "little") + self.records[wanted]


def record(identity: int, *, seconds: int = 1_700_000_000, data: bytes = b"\xaa\x03\x00") -> bytes:
    head = identity.to_bytes(2, "little") + b"\x02" + seconds.to_bytes(4, "little")
    return head + b"\x20\x00\x04\x13\x02\x6f" + data


def test_power_faults_and_why_the_host_last_started() -> None:
    session = Scripted({(0, 1): bytes([0b01001, 0b10001, 0]), (0, 7): bytes([0x04, 0])})
    state = power.chassis_status(session)
    assert str(state) == (
        "on; power fault; last power event: mains failed, by IPMI command; last start: watchdog expired"
    )


def test_a_bmc_that_does_not_know_why_the_host_started() -> None:
    assert str(power.chassis_status(Scripted({(0, 1): bytes(3)}))) == "off"


@pytest.mark.parametrize(("action", "byte"), [("off", 0), ("on", 1), ("cycle", 2), ("reset", 3)])
def test_power_commands(action: power.PowerAction, byte: int) -> None:
    session = Scripted({(0, 1): bytes([1, 0, 0])})
    assert power.control(session, action)
    assert session.once == [[byte]]


def test_answers_that_are_too_short_are_no_answers() -> None:
    for ask, key in (
        (power.chassis_status, (0, 1)),
        (identity, (6, 1)),
        (sel.mark, (0x0A, 0x40)),
    ):
        with pytest.raises(BmcUnreachable, match="of 1 bytes is none"):
            ask(Scripted({key: b"\x01"}))


def test_a_bmc_without_a_guid() -> None:
    found = identity(Scripted({(6, 1): bytes.fromhex("2001 04 56 02 bf 7c2a00 1a09")}))
    assert (found.maker, found.product, found.firmware, found.guid) == (10876, 0x091A, "4.56", "")


def test_a_log_with_gaps_in_its_identities_is_read_from_the_mark_on() -> None:
    log = Log({1: record(1), 4: record(4)})
    mark = decode(encode(sel.mark(log)), LogMark, source="x")
    log.records |= {9: record(9), 12: record(12)}
    news = sel.since(log, mark)
    assert [(entry.record, entry.time) for entry in news.entries] == [
        ("9", "2023-11-14 22:13:20"),
        ("12", "2023-11-14 22:13:20"),
    ]
    assert news.note == ""


def test_a_log_that_overwrote_the_marked_record() -> None:
    log = Log({1: record(1), 2: record(2)})
    mark = sel.mark(log)
    log.records = {3: record(3), 4: record(4)}
    news = sel.since(log, mark)
    assert [entry.record for entry in news.entries] == ["3", "4"]
    assert news.note == "the log has overwritten its entries since the mark; the oldest ones are lost"


def test_a_new_record_under_the_marked_identity_is_not_taken_for_the_old_one() -> None:
    log = Log({1: record(1)}, erased_at=7)
    mark = sel.mark(log)
    log.records, log.erased_at = {1: record(1, seconds=1_700_000_099), 2: record(2)}, 8
    news = sel.since(log, mark)
    assert [entry.record for entry in news.entries] == ["1", "2"]
    assert news.note.startswith("the log was cleared after the mark")


def test_an_empty_log_that_was_cleared_again_may_have_lost_entries() -> None:
    log = Log({})
    mark = sel.mark(log)
    log.erased_at = 8
    assert sel.since(log, mark).note == "the log was cleared after the mark"


def test_single_entries_erased_after_the_mark_are_told() -> None:
    log = Log({1: record(1)})
    mark = sel.mark(log)
    log.erased_at = 8
    assert sel.since(log, mark).note == "entries were erased after the mark"


def test_a_log_that_is_cleared_while_it_is_read() -> None:
    class Cleared(Log):
        def command(self, netfn: int, command: int, data: Sequence[int] = ()) -> bytes:
            answer = super().command(netfn, command, data)
            if command == 0x43:
                self.records = {}
            return answer

    news = sel.since(Cleared({1: record(1), 2: record(2)}), LogMark("", "", 0))
    assert [entry.record for entry in news.entries] == ["1"]
    assert news.note == "the log was cleared while it was read"


def test_a_log_that_goes_in_a_circle_ends() -> None:
    class Circle(Log):
        def command(self, netfn: int, command: int, data: Sequence[int] = ()) -> bytes:
            answer = super().command(netfn, command, data)
            return answer if command == 0x40 else b"\x01\x00" + answer[2:]

    news = sel.since(Circle({1: record(1)}), LogMark("", "", 0))
    assert len(news.entries) == 1
    assert news.note == "the BMC's log does not end; what follows is not read"


def test_a_long_log_is_bounded_and_says_so() -> None:
    log = Log({number: record(number) for number in range(1, 8)})
    news = sel.since(log, LogMark("", "", 0), most_entries=5)
    assert len(news.entries) == 5
    assert news.note == "only the first 5 entries are read"
    assert not news.whole


def test_a_bmc_that_is_lost_while_its_log_is_read_leaves_what_it_said() -> None:
    class Lost(Log):
        def command(self, netfn: int, command: int, data: Sequence[int] = ()) -> bytes:
            if command == 0x43 and data[2] == 3:
                raise BmcUnreachable("no answer in time")
            return super().command(netfn, command, data)

    news = sel.since(Lost({number: record(number) for number in range(1, 8)}), LogMark("", "", 0))
    assert [entry.record for entry in news.entries] == ["1", "2"]
    assert news.note == "what comes after its first 2 entries is not read: no answer in time"
    assert not news.whole


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (record(1), "Critical interrupt 0x02: Bus fatal error (asserted, data aa 03 00)"),
        (
            bytes.fromhex("0100 02 00000000 2000 04 23 01 6f c1 ff ff"),
            "Watchdog 0x01: Watchdog hard reset (asserted, data c1 ff ff)",
        ),
        (
            bytes.fromhex("0100 f0 20 01") + b"VFS: Unable",
            "Linux kernel panic: VFS: Unable",
        ),
        (
            bytes.fromhex("0100 c0 00000000 a20200 010203040506"),
            "record of type 0xc0: 00 00 00 00 a2 02 00 01 02 03 04 05 06",
        ),
        (
            bytes.fromhex("0100 02 00000000 2000 04 c5 01 70 c1 ff ff"),
            "sensor type 0xc5 0x01: event type 0x70 offset 1 (asserted, data c1 ff ff)",
        ),
    ],
)
def test_records_in_words(raw: bytes, words: str) -> None:
    assert len(raw) == 16
    assert record_words(raw) == words


def test_a_record_without_a_clock() -> None:
    log = Log({1: record(1, seconds=679), 2: record(2, seconds=0xFFFFFFFF)})
    times = [entry.time for entry in sel.since(log, LogMark("", "", 0)).entries]
    assert times == ["679 s after the BMC's start", ""]
