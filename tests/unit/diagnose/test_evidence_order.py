"""Clock, PCI tree, folding: what rules rest on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from nodeprep.diagnose.device import address, bus, domain, from_requester_id, same_slot
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.evidence import Evidence
from nodeprep.diagnose.line import Line
from nodeprep.diagnose.topology import Topology

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def event(kind: str = "xid.79", *, device: str = "", count: int = 1, **line: object) -> Event:
    whole = {"source": "log", "number": 1, "text": "", "raw": "", **line}
    return Event(kind=kind, lines=(Line(**whole),), device=device, count=count)  # type: ignore[arg-type]


def test_addresses() -> None:
    assert address("0000000B:00:00.0") == "000b:00:00.0"
    assert address("PCI:000b:00:00") == "000b:00:00.0"
    assert address("0b:00.1") == "0000:0b:00.1"
    assert address("10000:e1:00.0") == "10000:e1:00.0"
    assert address("nonsense") == ""
    assert (domain("10000:e1:00.0"), bus("10000:e1:00.0")) == ("10000", 0xE1)
    assert from_requester_id(0x0010) == "0000:00:02.0"
    assert from_requester_id(0x00E5) == "0000:00:1c.5"
    assert same_slot("0000:09:00.0", "0000:09:00.3")
    assert not same_slot("", "")


def test_uptimes_of_one_boot_compare_and_of_two_do_not() -> None:
    one, same, other = (event(uptime_s=s, boot=b) for s, b in ((10.0, "a"), (70.0, "a"), (71.0, "b")))
    clock = Evidence([one, same, other]).clock
    assert clock.seconds(one, same) == 60.0
    assert clock.seconds(one, other) is None


def test_a_line_with_both_times_ties_a_ring_buffer_to_a_journal() -> None:
    tie = event(uptime_s=100.0, boot="a", time=NOON)
    ring = event(uptime_s=130.0, boot="a", source="dmesg")
    journal = event(time=NOON + timedelta(seconds=90), source="journal")
    clock = Evidence([tie, ring, journal]).clock
    assert clock.seconds(ring, journal) == 60.0


def test_without_times_the_order_of_lines_counts() -> None:
    first, near, far, elsewhere = (
        event(number=n, source=s) for n, s in ((1, "a"), (20, "a"), (500, "a"), (2, "b"))
    )
    clock = Evidence([first, near, far, elsewhere]).clock
    assert clock.within(first, near, 1.0)
    assert not clock.within(near, first, 1.0)
    assert not clock.within(first, far, 1.0)
    assert not clock.within(first, elsewhere, 1.0)


def test_events_come_in_the_order_of_time() -> None:
    late = event(time=NOON + timedelta(hours=1), source="a")
    early = event(time=NOON, source="b")
    assert Evidence([late, early]).events == (early, late)


def test_the_host_of_a_log_without_hosts_is_the_only_one() -> None:
    named, bare = event(host="n1"), event(source="app")
    assert Evidence([named, bare]).hosts == ("n1",)
    assert Evidence([named, bare, event(host="n2")]).hosts == ("", "n1", "n2")


def test_what_is_explained_is_not_open() -> None:
    one, other = event(number=1), event(number=2)
    evidence = Evidence([one, other])
    evidence.explain([one])
    assert evidence.open("xid.") == [other]
    assert evidence.seen("xid.79") == [one, other]
    assert evidence.seen("xid.7") == []


def bridge(port: str, first: int, last: int) -> Event:
    line = Line(source="log", number=1, text="", raw="")
    return Event(kind="pci.bridge", lines=(line,), device=port, data={"first_bus": first, "last_bus": last})


def test_the_tree() -> None:
    tree = Topology(
        [
            bridge("0000:15:01.0", 0x16, 0x1A),
            bridge("0000:16:00.0", 0x17, 0x1A),
            bridge("0000:17:00.0", 0x18, 0x18),
            bridge("0000:17:01.0", 0x19, 0x19),
            bridge("0000:80:01.0", 0x81, 0x81),
        ]
    )
    assert tree.above("0000:18:00.0") == ("0000:17:00.0", "0000:16:00.0", "0000:15:01.0")
    assert tree.on_path("0000:16:00.0", "0000:18:00.0") is True
    assert tree.on_path("0000:17:01.0", "0000:18:00.0") is False
    assert tree.on_path("0000:16:00.0", "0000:c1:00.0") is None
    assert tree.shared(["0000:18:00.0", "0000:19:00.0"]) == "0000:16:00.0"
    assert tree.shared(["0000:18:00.0", "0000:81:00.0"]) == ""
    assert Topology([]).above("") == ()
