import errno
import json
import os
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest

from nodeprep.node import kernel_log
from nodeprep.node.kernel_log import Record, cursor, parse_record, read_records, since_cursor
from nodeprep.node.reading import attempt, error, ok

REAL = json.loads((Path(__file__).parent / "data/h200_passthrough_vm.json").read_text())
BOOT = ok("boot-a")
XID = "NVRM: Xid (PCI:0000:17:00): 79, GPU has fallen off the bus."


def log(*texts, first=0):
    return ok([Record(first + n, (first + n) * 1000, 6, text) for n, text in enumerate(texts)])


def cursor_at(sequence, boot="boot-a"):
    return {"boot_id": boot, "sequence": ok(sequence), "monotonic_us": ok(sequence * 1000)}


def write_kmsg(tmp_path, *lines):
    path = tmp_path / "dev/kmsg"
    path.parent.mkdir()
    path.write_text("".join(line + "\n" for line in lines))
    return str(tmp_path)


def test_records_of_a_real_machine(tmp_path):
    records = read_records(write_kmsg(tmp_path, *REAL["kmsg"]))
    assert [record.sequence for record in records] == [197, 198, 199, 200, 201, 354, 355]
    assert records[2].text == "acpi PNP0A08:00: PCIe port services disabled; not requesting _OSC control"
    assert records[2].monotonic_us == 190233


def test_priority_facility_flags_and_escapes_of_a_record():
    raw = rb"30,7,1500,-,caller=T140;NVRM: The GPU\x0aNVRM: caf\xc3\xa9 fell" + b"\n SUBSYSTEM=pci\n"
    assert parse_record(raw) == Record(7, 1500, 6, "NVRM: The GPU\nNVRM: café fell")


@pytest.mark.parametrize("raw", [b"", b"NVRM: Xid", b"6,x,2,-;text", b"6,1;text"])
def test_anything_else_is_refused(raw):
    with pytest.raises(ValueError, match="not a kernel log record"):
        parse_record(raw)


def test_the_cursor_is_the_last_record():
    assert cursor(BOOT, log("a", "b", first=40)) == {
        "boot_id": "boot-a",
        "sequence": ok(41),
        "monotonic_us": ok(41000),
    }


def test_a_cursor_of_an_unreadable_log_says_why():
    found = cursor(error("no boot id"), error("needs root: /dev/kmsg"))
    assert found["boot_id"] == ""
    assert found["sequence"] == error("needs root: /dev/kmsg")
    assert cursor(BOOT, ok([]))["sequence"] == error("the kernel log is empty")


def test_without_a_cursor_all_of_this_boot_is_looked_at():
    found = since_cursor(None, BOOT, log("x", XID))
    assert [event["xid"] for event in found["events"]["value"]] == [79]
    assert found["events"]["value"][0]["device"] == "0000:17:00.0"
    assert found["lost_records"] == ok(0)


def test_only_what_came_after_the_cursor():
    found = since_cursor(cursor_at(1), BOOT, log(XID, "x", "y", XID))
    assert [event["sequence"] for event in found["events"]["value"]] == [3]
    assert found["lost_records"] == ok(0)
    assert found["since"] == cursor_at(1)


def test_nothing_new_is_no_event_and_no_loss():
    found = since_cursor(cursor_at(2), BOOT, log("a", "b", "c"))
    assert found["events"] == ok([])
    assert found["lost_records"] == ok(0)


def test_records_overwritten_since_the_cursor_are_counted():
    found = since_cursor(cursor_at(10), BOOT, log("a", "b", first=15))
    assert found["lost_records"] == ok(4)


def test_records_overwritten_since_boot_and_gaps_are_counted():
    records = ok([Record(3, 0, 6, "a"), Record(6, 0, 6, "b")])
    assert since_cursor(None, BOOT, records)["lost_records"] == ok(5)


def test_a_reboot_shows_all_of_the_new_boot_and_is_an_error():
    found = since_cursor(cursor_at(9000, boot="boot-z"), BOOT, log("x", XID))
    assert len(found["events"]["value"]) == 1
    assert found["lost_records"]["state"] == "error"
    assert "rebooted" in found["lost_records"]["detail"]


@pytest.mark.parametrize(
    ("since", "boot", "words"),
    [
        (cursor_at(9), BOOT, "ends before the cursor"),
        (
            {"boot_id": "boot-a", "sequence": error("refused"), "monotonic_us": ok(1)},
            BOOT,
            "no position: refused",
        ),
        (cursor_at(1), error("gone"), "boot id is unreadable"),
    ],
)
def test_a_cursor_that_cannot_be_used_is_an_error_and_shows_everything(since, boot, words):
    found = since_cursor(since, boot, log("x", XID, "y"))
    assert words in found["lost_records"]["detail"]
    assert len(found["events"]["value"]) == 1


def test_an_unreadable_log_is_never_an_empty_one():
    found = since_cursor(None, BOOT, error("needs root: /dev/kmsg"))
    assert found["events"] == error("needs root: /dev/kmsg")
    assert found["lost_records"] == error("needs root: /dev/kmsg")


def test_a_missing_device_is_an_error(tmp_path):
    assert attempt(read_records, str(tmp_path))["state"] == "error"


def device(monkeypatch, *answers):
    """A /dev/kmsg that answers one read after the other; returns the descriptors that were closed."""
    pending = list(answers)
    opened = []
    closed = []

    def open_device(path, flags):
        opened.append(flags)
        return 99

    def read(descriptor, size):
        assert opened == [os.O_RDONLY | os.O_NONBLOCK]
        answer = pending.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    # Only this module's view of os: the test runner itself needs the real one.
    fake = SimpleNamespace(
        open=open_device,
        read=read,
        close=closed.append,
        stat=lambda path: SimpleNamespace(st_mode=stat.S_IFCHR),
        path=os.path,
        O_RDONLY=os.O_RDONLY,
        O_NONBLOCK=os.O_NONBLOCK,
    )
    monkeypatch.setattr(kernel_log, "os", fake)
    return closed


def test_the_device_is_read_until_it_would_block_and_over_overwritten_records(monkeypatch):
    closed = device(
        monkeypatch,
        b"6,1,10,-;one\n SUBSYSTEM=pci\n",
        OSError(errno.EPIPE, "Broken pipe"),
        b"6,9,90,-;nine\n",
        OSError(errno.EAGAIN, "Resource temporarily unavailable"),
    )
    assert [record.sequence for record in read_records("/")] == [1, 9]
    assert closed == [99]


def test_another_error_of_the_device_is_not_swallowed(monkeypatch):
    device(monkeypatch, OSError(errno.EIO, "Input/output error"))
    with pytest.raises(OSError, match="Input/output"):
        read_records("/")


def test_a_log_that_grows_without_end_is_given_up(monkeypatch):
    device(monkeypatch, *[b"6,1,10,-;flood\n"] * 3)
    clock = iter((0.0, 1.0, 99.0))
    monkeypatch.setattr(kernel_log, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with pytest.raises(TimeoutError, match="grew faster"):
        read_records("/")
