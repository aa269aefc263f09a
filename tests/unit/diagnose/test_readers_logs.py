"""Each log format: found by its content, and its lines freed of what it wraps around them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from reading import gaps, lines, reader_of

BANNER = "[    0.000000] Linux version 6.16.0\n"
NVRM = "NVRM: Xid (PCI:0000:81:00): 79, GPU has fallen off the bus."

FORMS = [
    ("dmesg", f"[  966.503025] {NVRM}", None, 966.503025),
    ("dmesg", f"<3>[  966.503025] {NVRM}", None, 966.503025),
    ("dmesg", f"[  966.503025] [    T140] {NVRM}", None, 966.503025),
    ("dmesg", f"[  966.503025][ T1952] {NVRM}", None, 966.503025),
    ("dmesg", f"[  966.503025][   C12] {NVRM}", None, 966.503025),
    ("dmesg", f"kern  :err   : [  966.503025] {NVRM}", None, 966.503025),
    ("grep_output", f"kern.log.1:17:[  966.503025] {NVRM}", None, 966.503025),
    ("dmesg_ctime", f"[Tue Dec  3 16:29:18 2024] {NVRM}", "2024-12-03T16:29:18+00:00", None),
    ("dmesg_iso", f"2024-12-03T16:29:18,123456+02:00 {NVRM}", "2024-12-03T14:29:18.123456+00:00", None),
    ("kmsg", f"3,1234,98765432,-;{NVRM}", None, 98.765432),
    ("kmsg", f"1234,98765432,3;{NVRM}", None, 98.765432),
    (
        "syslog",
        f"Nov 22 18:29:55 host kernel: [  966.503025] {NVRM}",
        "1904-11-22T18:29:55+00:00",
        966.503025,
    ),
    ("syslog", f"Nov  2 18:29:55 host kernel: {NVRM}", "1904-11-02T18:29:55+00:00", None),
    ("syslog", f"Nov 22 18:29:55.250000 host kernel: {NVRM}", "1904-11-22T18:29:55.250000+00:00", None),
    ("syslog_iso", f"2026-01-02T03:04:05+0100 host kernel: {NVRM}", "2026-01-02T02:04:05+00:00", None),
    (
        "syslog_iso",
        f"2026-01-02T03:04:05.5-05:30 host kernel: {NVRM}",
        "2026-01-02T08:34:05.500000+00:00",
        None,
    ),
    ("syslog_iso", f"Fri 2026-01-02 03:04:05 UTC host kernel: {NVRM}", "2026-01-02T03:04:05+00:00", None),
    ("syslog_iso", f"1767323045.000001 host kernel: {NVRM}", "2026-01-02T03:04:05.000001+00:00", None),
    ("journal_monotonic", f"[  966.503025] host kernel: {NVRM}", None, 966.503025),
    (
        "klog",
        f"E1009 06:41:17.205731       1 health.go:152] {NVRM}",
        "1904-10-09T06:41:17.205731+00:00",
        None,
    ),
    ("container_log", f"2026-01-02T03:04:05.5Z stdout F {NVRM}", "2026-01-02T03:04:05.500000+00:00", None),
    ("iso_log", f"2026-01-02 03:04:05,250 - root - ERROR - {NVRM}", "2026-01-02T03:04:05.250000+00:00", None),
    ("logfmt", f'time="2026-01-02T03:04:05Z" level=error msg="{NVRM}"', "2026-01-02T03:04:05+00:00", None),
    ("vllm_log", f"ERROR 06-03 10:14:22 worker_base.py:148] {NVRM}", "1904-06-03T10:14:22+00:00", None),
    (
        "vllm_log",
        f"(EngineCore pid=5) ERROR 06-03 10:14:22 [core.py:12] {NVRM}",
        "1904-06-03T10:14:22+00:00",
        None,
    ),
    ("tensorrt_log", f"[11/12/2024-14:22:31] [E] [TRT] {NVRM}", "2024-11-12T14:22:31+00:00", None),
    (
        "fabric_manager_log",
        f"[Jan 02 2024 03:04:05] [ERROR] [tid 7] {NVRM}",
        "2024-01-02T03:04:05+00:00",
        None,
    ),
    ("nccl_log", f"node07:40958:40999 [0] NCCL WARN {NVRM}", None, None),
]


@pytest.mark.parametrize(("name", "line", "time", "uptime_s"), FORMS, ids=[each[1][:30] for each in FORMS])
def test_a_form_is_found_and_unwrapped(
    name: str, line: str, time: str | None, uptime_s: float | None
) -> None:
    assert reader_of(line).id == name
    (read,) = lines(name, line)
    assert read.text.rstrip('"').endswith(NVRM)
    assert read.raw == line
    assert (read.time.astimezone(UTC).isoformat() if read.time else None) == time
    assert read.uptime_s == uptime_s


def test_relative_times_add_up() -> None:
    text = "[May19 19:57] one\n[  +0.000127] two\n[ +61.500000] three\n"
    assert reader_of(text).id == "dmesg_relative"
    read = lines("dmesg_relative", text)
    assert [line.text for line in read] == ["one", "two", "three"]
    assert read[2].time == datetime(1904, 5, 19, 19, 58, 1, 500127, tzinfo=UTC)


@pytest.mark.parametrize("layout", ['{\n   "dmesg": [\n      {%s},{%s}\n   ]\n}', '{"dmesg":[{%s},{%s}]}'])
def test_dmesg_json(layout: str) -> None:
    entries = (
        f'"pri":3,"time":966.503025,"msg":"{NVRM}"',
        '"pri":6,"time":  970.000001,"msg":"a \\"quoted\\" word"',
    )
    text = layout % entries
    assert reader_of(text).id == "dmesg_json"
    read = lines("dmesg_json", text)
    assert [(line.text, line.uptime_s) for line in read] == [
        (NVRM, 966.503025),
        ('a "quoted" word', 970.000001),
    ]


def test_journal_json_with_a_message_of_numbers() -> None:
    numbers = list(NVRM.encode() + b"\xff")
    envelope = '"__REALTIME_TIMESTAMP":"1783672891076379","_TRANSPORT":"kernel","_HOSTNAME":"n1"'
    text = f'{{{envelope},"MESSAGE":{numbers}}}'
    assert reader_of(text).id == "journal_json"
    (read,) = lines("journal_json", "\x1e" + text)
    assert (read.text, read.host, read.kernel) == (NVRM + "\ufffd", "n1", True)
    assert read.time is not None
    assert read.time.year == 2026


def test_journal_export_with_a_binary_field() -> None:
    text = (
        "__CURSOR=s=1\n__REALTIME_TIMESTAMP=1783672891076379\n_TRANSPORT=kernel\n"
        f"MESSAGE\n12345678{NVRM}\n\n__CURSOR=s=2\n_TRANSPORT=kernel\nMESSAGE=second\n"
    )
    assert reader_of(text).id == "journal_export"
    read = lines("journal_export", text)
    assert [line.text for line in read] == [NVRM, "second"]


def test_journal_json_pretty() -> None:
    text = (
        '{\n\t"_TRANSPORT" : "kernel",\n\t"__REALTIME_TIMESTAMP" : "1783672891076379",\n'
        f'\t"MESSAGE" : "{NVRM}"\n}}\n'
    )
    assert reader_of(text).id == "journal_export"
    (read,) = lines("journal_export", text)
    assert (read.text, read.number, read.kernel) == (NVRM, 4, True)


def test_json_lines_carry_every_word_of_the_object() -> None:
    detail = f'"detail":{{"entry":"MESSAGE={NVRM}"}}'
    text = f'{{"level":"warn","ts":"2025-11-19T09:12:46Z","msg":"bad",{detail}}}'
    assert reader_of(text).id == "json_lines"
    (read,) = lines("json_lines", text)
    assert read.text == f"bad entry=MESSAGE={NVRM}"
    assert read.time == datetime(2025, 11, 19, 9, 12, 46, tzinfo=UTC)


def test_a_line_without_a_time_has_that_of_the_one_before() -> None:
    read = lines(
        "dmesg",
        "[ 1843.308145] NVRM: The NVIDIA GPU 0000:b3:00.0\n               NVRM: (PCI ID: 10de:26b5)\n",
    )
    assert [line.uptime_s for line in read] == [1843.308145, 1843.308145]


def test_colours_control_characters_and_broken_utf8_are_gone() -> None:
    (read,) = lines("dmesg", "\x1b[32m[    1.000000]\x1b[0m a\x01b\r")
    assert read.text == "a\ufffdb"


def test_an_uptime_that_goes_back_is_another_boot() -> None:
    read = lines("syslog", "".join(
        f"Nov 22 18:29:5{second} host kernel: [{uptime:12.6f}] "
        "x\n" for second, uptime in enumerate((900, 901, 2, 3))
    ))  # fmt: skip
    assert [line.boot for line in read] == ["log/0", "log/0", "log/1", "log/1"]


@pytest.mark.parametrize(
    ("name", "text", "gap"),
    [
        ("dmesg", "[   38.000000] x", "it begins 38 s after it"),
        ("dmesg_ctime", "[Tue Dec  3 16:29:18 2024] x", "first messages after the boot are missing"),
        ("kmsg", "6,0,0,-;Linux version 6.8\n6,5,100,-;x", "4 records are missing before sequence 5"),
        ("syslog_iso", "2026-01-02T03:04:05Z h systemd-journald[1]: Missed 45 kernel messages", "missed 45"),
        ("syslog", "-- No entries --", "no entries"),
        ("dmesg", "[    0.000000] Linux version 6.16\n[    9.0] x\n[    9.100000] aer_ratelimit: 30 "
            "callbacks suppressed", "left out 30"),
    ],
)  # fmt: skip
def test_a_loss_is_a_gap(name: str, text: str, gap: str) -> None:
    assert any(gap in each for each in gaps(name, text)), gaps(name, text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("dmesg", "[    0.000000] Linux version 6.8.0\n[   14.720113] x"),
        ("syslog", "Nov 22 18:29:55 host CRON[12]: (root) CMD (x)"),
        ("dmesg", "[    0.000000] Linux version 6.8.0\n[   14.720113] net_ratelimit: 9 callbacks suppressed"),
    ],
)
def test_a_whole_log_has_no_gap(name: str, text: str) -> None:
    assert gaps(name, text) == []
