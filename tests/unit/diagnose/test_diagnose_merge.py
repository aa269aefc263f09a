"""One event that several sources tell is counted once; what happened twice is counted twice."""

from __future__ import annotations

from reading import as_input

from nodeprep.diagnose.engine import read
from nodeprep.diagnose.merge import merge

XID = "NVRM: Xid (PCI:0000:81:00): 79, pid=1234, name=python, GPU has fallen off the bus."
MARK = "NVRM: loading NVIDIA UNIX x86_64 Kernel Module  560.35.03"


def count(**files: str) -> int:
    """How often Xid 79 happened."""
    inputs = [as_input(name, text.encode()) for name, text in files.items()]
    return sum(event.count for event in read(inputs)[0] if event.kind == "xid.79")


def test_ring_buffer_and_journal_of_one_boot() -> None:
    dmesg = f"[   10.000000] {MARK}\n[  966.503025] {XID}\n"
    journal = f"2026-01-02T03:04:05Z n kernel: {MARK}\n2026-01-02T03:20:02Z n kernel: {XID}\n"
    assert count(dmesg_txt=dmesg, journal_txt=journal) == 1


def test_two_copies_of_a_ring_buffer() -> None:
    dmesg = f"[  966.503025] {XID}\n"
    assert count(dmesg_txt=dmesg, copy_txt=dmesg) == 1


def test_an_agent_that_passes_the_message_on() -> None:
    journal = f"2026-01-02T03:20:02Z n kernel: {XID}\n"
    agent = f'{{"ts":"2026-01-02T03:20:03Z","msg":"seen","entry":"MESSAGE={XID}"}}\n'
    assert count(journal_txt=journal, agent_log=agent) == 1


def test_a_minute_apart_is_twice() -> None:
    one = f"2026-01-02T03:20:02Z n kernel: {XID}\n"
    other = f"2026-01-02T03:21:02Z n kernel: {XID}\n"
    assert count(one_txt=one, other_txt=other) == 2


def test_twice_in_one_source_is_twice() -> None:
    line = f"2026-01-02T03:20:02Z n kernel: {XID}\n"
    assert count(one_txt=line * 2) == 2


def test_two_hosts_are_two() -> None:
    one = f"2026-01-02T03:20:02Z n1 kernel: {XID}\n"
    assert count(one_txt=one, other_txt=one.replace(" n1 ", " n2 ")) == 2


def test_nothing_is_nothing() -> None:
    assert merge([]) == ()
