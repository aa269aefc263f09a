"""Inputs: found, unpacked, parted into sections; what is missing from them is said."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tarfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
import zstandard
from reading import WRITTEN, as_input, told

from nodeprep.diagnose.engine import diagnose
from nodeprep.diagnose.inputs import find_inputs
from nodeprep.diagnose.inputs_bytes import ByteSource
from nodeprep.diagnose.inputs_lines import MAX_LINE_BYTES, LineSource
from nodeprep.diagnose.prefilter import Prefilter
from nodeprep.errors import UsageError
from nodeprep.model.diagnosis import Diagnosis, DiagnosisInput

BANNER = "[    0.000000] Linux version 6.8.0-79-generic\n"
XID = "[ 1000.000000] NVRM: Xid (PCI:0000:81:00): 79, GPU has fallen off the bus.\n"
PACKERS = (bytes, gzip.compress, lzma.compress, bz2.compress, zstandard.ZstdCompressor().compress)


def only(found: Diagnosis) -> DiagnosisInput:
    (entry,) = found.inputs
    return entry


@pytest.mark.parametrize(
    "pack",
    PACKERS,
    ids=["plain", "gz", "xz", "bz2", "zst"],
)
def test_compression_is_found_by_content(pack: Callable[[bytes], bytes]) -> None:
    found = told(log=pack((BANNER + XID).encode()))
    assert only(found).lines == 2
    assert only(found).gaps == ()
    assert [incident.xids for incident in found.incidents] == [(79,)]


@pytest.mark.parametrize(
    "pack", [gzip.compress, lzma.compress, bz2.compress, zstandard.ZstdCompressor().compress]
)
def test_compressed_data_that_end_early_are_a_gap(pack: Callable[[bytes], bytes]) -> None:
    data = pack((BANNER + "".join(f"[{n:5d}.000000] line {n * 7919}\n" for n in range(5000))).encode())
    found = told(log=data[: len(data) // 2])
    assert any("cut off" in gap or "broken" in gap for gap in only(found).gaps)


def test_what_a_cut_off_archive_still_holds_is_diagnosed() -> None:
    data = gzip.compress(
        (BANNER + XID + "".join(f"[{n:5d}.0] line {n * 7919}\n" for n in range(5000))).encode()
    )
    found = told(log=data[: len(data) // 2])
    assert [incident.xids for incident in found.incidents] == [(79,)]
    assert found.healthy is False
    assert not found.healthy


def test_utf16_of_windows_terminals_is_read() -> None:
    assert told(log=(BANNER + XID).encode("utf-16")).incidents[0].xids == (79,)


def test_a_folder_is_read_by_name_and_an_archive_like_a_folder(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "two.log").write_text("x\n")
    (tmp_path / "a.log").write_text("x\n")
    with tarfile.open(tmp_path / "c.tar.gz", "w:gz") as archive:
        entry = tarfile.TarInfo("logs/kern.log")
        entry.size = len(XID)
        archive.addfile(entry, io.BytesIO(XID.encode()))
    inputs = find_inputs([str(tmp_path)])
    assert [each.name for each in inputs] == ["a.log", "b/two.log", "c.tar.gz/logs/kern.log"]
    assert diagnose(inputs).incidents[0].xids == (79,)


def test_an_archive_that_is_none_is_a_gap(tmp_path: Path) -> None:
    (tmp_path / "x.tar.gz").write_bytes(b"no archive")
    found = diagnose(find_inputs([str(tmp_path / "x.tar.gz")]))
    assert "no whole archive" in only(found).gaps[0]


def test_what_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"gone\.log"):
        find_inputs([str(tmp_path / "gone.log")])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_a_gap(tmp_path: Path) -> None:
    (tmp_path / "kern.log").write_text(XID)
    (tmp_path / "kern.log").chmod(0)
    assert only(diagnose(find_inputs([str(tmp_path)]))).gaps == ("not read: permission denied",)


def test_an_empty_file_is_a_gap() -> None:
    assert only(told(log=b"")).gaps == ("it is empty",)


def test_text_that_nobody_knows_is_no_health() -> None:
    found = told(notes_txt="the node seems fine\n")
    assert not found.healthy
    assert "nothing in it was recognised" in only(found).gaps[0]


def test_a_file_missing_between_rotated_ones_is_a_gap() -> None:
    line = "Nov 22 18:29:55 host kernel: [  966.503025] x\n"
    named = {"kern.log": line, "kern.log.1": line, "kern.log.4.gz": line}
    found = diagnose([as_input(name, text.encode()) for name, text in named.items()])
    by_name = {each.source: each.gaps for each in found.inputs}
    assert by_name["kern.log"] == ()
    assert by_name["kern.log.1"][0] == "kern.log.2 to .3 is missing between it and kern.log.4.gz"
    assert "first messages after the boot" in by_name["kern.log.4.gz"][0]


def test_a_ticket_is_parted_into_its_commands() -> None:
    ticket = (
        "Hello, our node is broken.\n\nroot@node07:~# uname -r\n6.8.0\n"
        f"root@node07:~# dmesg\n{BANNER}{XID}"
        "root@node07:~# cat /proc/cmdline\nBOOT_IMAGE=/vmlinuz root=/dev/sda1 ro\n"
    )
    found = told(ticket_txt=ticket)
    formats = {each.source: each.format for each in found.inputs}
    assert formats["ticket.txt"] == "mixed"
    assert formats["ticket.txt#dmesg"] == "dmesg"
    assert formats["ticket.txt#cat /proc/cmdline"] == "kernel_cmdline"
    evidence = found.incidents[0].evidence[0]
    assert (evidence.source, evidence.line) == ("ticket.txt#dmesg", 7)


def test_a_log_pasted_into_prose_without_any_mark_is_found() -> None:
    found = told(mail="We see this:\n" + BANNER + XID + "Please help.\n")
    assert found.incidents[0].xids == (79,)


def test_a_bug_report_is_read_section_by_section() -> None:
    rule = "_" * 44
    report = (
        f"{rule}\n\nStart of NVIDIA bug report log file.  Please include this file\n\n"
        f"{rule}\n\n*** /proc/cmdline\n*** ls: -r--r--r-- 1 root root 0\nBOOT_IMAGE=/vmlinuz "
        "root=/dev/sda1 ro\n\n"
        f"{rule}\n\n/usr/bin/dmesg\n\n{BANNER}{XID}\n"
        f"{rule}\n\nEnd of NVIDIA bug report log file.\n"
    )
    found = told(report_log=gzip.compress(report.encode()))
    assert found.inputs[0].format == "nvidia_bug_report"
    assert found.inputs[0].gaps == ()
    assert found.incidents[0].evidence[0].source == "report.log#/usr/bin/dmesg"
    cut = told(report_log=report[: report.rindex("End of")])
    assert any("bug report is cut off" in gap for gap in cut.inputs[0].gaps)


def test_a_year_comes_from_the_other_inputs_before_it_comes_from_the_file() -> None:
    line = "Nov 22 18:29:55 host kernel: NVRM: Xid (PCI:0000:81:00): 79, GPU has fallen off the bus.\n"
    alone = told(kern_log=line)
    assert alone.inputs[0].first == "2026-11-22T18:29:55+00:00"
    assert "its dates have no year; taken from the time of the file" in alone.inputs[0].notes
    both = told(kern_log=line, app_log="2023-11-23 10:00:00,000 INFO x\n")
    assert both.inputs[0].first == "2023-11-22T18:29:55+00:00"


def test_without_a_year_december_is_not_in_the_future() -> None:
    text = b"Dec 24 18:29:55 host kernel: NVRM: Xid (PCI:0000:81:00): 45, Ch 1\n"
    found = diagnose([as_input("kern.log", text, datetime(2026, 1, 3, tzinfo=UTC))])
    assert found.inputs[0].first == "2025-12-24T18:29:55+00:00"


def test_a_command_date_dates_what_follows_it() -> None:
    text = (
        "$ date -Is\n2026-08-18T03:00:02+00:00\n$ nvidia-smi -i 0 -pl 300\n"
        "Power limit for GPU 00000000:01:00.0 was set to 300.00 W from 450.00 W.\n"
    )
    assert told(set_log=text).inputs[0].last == "2026-08-18T03:00:02+00:00"


def source_of(data: bytes, *needles: bytes) -> LineSource:
    source = LineSource(
        ByteSource(as_input("log", data, WRITTEN)), Prefilter(needles or (b"NEVER",)), lambda: None
    )
    source.everything = not needles
    return source


def test_the_prefilter_keeps_numbers_and_the_line_before() -> None:
    data = b"".join(b"line %d\n" % n if n % 1000 else b"line %d NVRM\n" % n for n in range(1, 200_001))
    found = list(source_of(data, b"NVRM"))
    assert [line.number for line in found[:4]] == [999, 1000, 1999, 2000]
    assert all(line.data == b"line %d" % line.number for line in found if line.number % 1000)
    assert found[-1].number == 200_000


def test_the_last_line_is_given_for_its_time() -> None:
    found = list(source_of(b"a NVRM\n" + b"x\n" * 5000 + b"end\n", b"NVRM"))
    assert [(line.number, line.data) for line in found] == [(1, b"a NVRM"), (5002, b"end")]


@pytest.mark.parametrize("needles", [(), (b"NVRM",)])
def test_a_line_that_is_too_long_is_cut_and_said(needles: tuple[bytes, ...]) -> None:
    source = source_of(b"NVRM " + b"x" * (3 * MAX_LINE_BYTES) + b"\nNVRM next", *needles)
    found = list(source)
    assert [(line.number, len(line.data)) for line in found] == [(1, MAX_LINE_BYTES), (2, 9)]
    assert source.notes == [
        "its last line has no end",
        f"1 lines longer than {MAX_LINE_BYTES} bytes were cut",
    ]


def test_what_no_reader_knows_beside_a_healthy_log_is_a_gap(tmp_path: Path) -> None:
    (tmp_path / "kern.log").write_text("[    1.000000] Linux version 6.8.0\n[    2.000000] usb 1-1: reset\n")
    (tmp_path / "page.html").write_text("<html><body>Sign in</body></html>\n")
    (tmp_path / "settings.json").write_text('{"foo": [1, 2, 3]}\n')
    found = diagnose(find_inputs([str(tmp_path)]))
    assert not found.healthy
    assert [each.source for each in found.inputs if each.gaps] == ["page.html", "settings.json"]


def test_a_link_to_a_log_that_is_gone_is_a_gap(tmp_path: Path) -> None:
    (tmp_path / "kern.log").write_text("[    1.000000] Linux version 6.8.0\n")
    (tmp_path / "kern.log.1").symlink_to(tmp_path / "gone")
    found = diagnose(find_inputs([str(tmp_path)]))
    assert not found.healthy
    (gone,) = [each for each in found.inputs if each.source == "kern.log.1"]
    assert gone.gaps


def test_an_event_log_without_entries_is_read(tmp_path: Path) -> None:
    (tmp_path / "sel.txt").write_text("SEL has no entries\n")
    (each,) = diagnose(find_inputs([str(tmp_path)])).inputs
    assert (each.format, each.gaps) == ("ipmi_sel", ())


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/null"])
def test_a_device_is_refused(device: str) -> None:
    with pytest.raises(UsageError, match="is a device"):
        find_inputs([device])
