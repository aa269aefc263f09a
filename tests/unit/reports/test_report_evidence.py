"""Counters per hop, kernel log, links."""

from __future__ import annotations

from dataclasses import replace

from fixture_facts import aer, pci_device
from fixture_run import EVENT_XSS, event, facts, healthy, node, port, results, run_view

from nodeprep.model.facts import KernelLog, LogCursor
from nodeprep.model.reading import Reading
from nodeprep.model.run import HostRecord, NodeView
from nodeprep.reports import _evidence


def with_devices(view, before, after):
    def put(document, devices):
        return replace(document, pci=replace(document.pci, devices=Reading.ok(tuple(devices))))

    return replace(
        view, facts_before=put(view.facts_before, before), facts_after=put(view.facts_after, after)
    )


def one_port(before, after):
    device = pci_device(port(0))
    view = with_devices(
        node("gpu01", 0, 1, results(1)), [replace(device, aer=before)], [replace(device, aer=after)]
    )
    return _evidence.hops(view)


def test_a_burst_shows_on_its_hop_by_type_and_only_there():
    view = next(view for view in run_view().nodes if view.record.host == "gpu05")
    hops = _evidence.hops(view)
    (row,) = hops.eventful
    assert (row.address, row.role) == ("7c:01.0", "root port above 7d:00.0")
    assert row.changes == (
        "corrected RxErr +1412",
        "corrected BadDLLP +37",
        "below root port, corrected +1449",
    )
    assert len(hops.quiet) == 15
    assert not hops.note


def test_old_errors_are_not_new_ones():
    hops = one_port(aer({"RxErr": 70}, root=True), aer({"RxErr": 70}, root=True))
    assert hops.eventful == ()


def test_a_counter_that_fell_was_reset_and_is_said():
    (row,) = one_port(aer({"RxErr": 70}, root=True), aer({"RxErr": 3}, root=True)).eventful
    assert row.changes[0] == "corrected RxErr: fell from 70 to 3: the counter was reset"


def test_an_unreadable_counter_is_not_quiet():
    lost = replace(aer(root=True), correctable=Reading.error("EIO"), fatal=Reading.error("EIO"))
    (row,) = one_port(aer(root=True), lost).eventful
    assert row.unreadable == ("corrected, fatal unreadable: EIO",)


def test_a_count_without_one_before_is_not_called_a_rise():
    blind = replace(aer(root=True), correctable=Reading.error("EIO"))
    (row,) = one_port(blind, aer({"RxErr": 5}, root=True)).eventful
    assert "corrected RxErr: 5 (no count before)" in row.changes


def test_a_device_that_came_later_is_said():
    view = with_devices(node("gpu01", 0, 1, results(1)), [], [pci_device(port(0))])
    (row,) = _evidence.hops(view).eventful
    assert row.unreadable == ("was not there at the first look",)


def test_one_look_compares_nothing():
    view = NodeView(record=HostRecord(host="a"), facts_before=facts("a", 1, after=False))
    hops = _evidence.hops(view)
    assert hops.note == "looked at once only: counters could not be compared"
    assert hops.eventful == ()


def test_who_owns_aer_is_told_for_every_bridge():
    document = facts("a", 2, after=False)
    bridges = document.aer_ownership.root_bridges.value
    mixed = replace(
        document.aer_ownership,
        root_bridges=Reading.ok((bridges[0], replace(bridges[1], controls=Reading.ok(("PME",))))),
        firmware_first=Reading.error("HEST: permission denied"),
    )
    told = _evidence.ownership(replace(document, aer_ownership=mixed))
    assert told[:2] == ("granted by _OSC (0000:16)", "not granted by _OSC (0000:27)")
    assert told[-1] == "firmware-first: unreadable: HEST: permission denied"


def test_kernel_log_lines_are_diagnosed():
    lost = event(3, "xid", "NVRM: Xid (PCI:0000:17:00): 79, GPU has fallen off the bus.", xid=79)
    view = node("gpu01", 0, 1, results(1), events=(lost,))
    (incident,) = _evidence.events(view).incidents
    assert (incident.severity, incident.layer) == ("critical", "firmware_pcie")
    assert incident.device.endswith("17:00.0")
    assert incident.todo.startswith("take the node out of service")


def test_kernel_log_lines_have_their_time_since_the_first_look():
    view = node("gpu01", 0, 1, results(1), events=(event(3, "xid", EVENT_XSS, xid=79),))
    (row,) = _evidence.events(view).rows
    assert (row.after_s, row.xid, row.grave, row.text) == ("+5.100 s", "79", True, EVENT_XSS)


def test_a_log_that_could_not_be_read_is_not_an_empty_log():
    view = healthy("gpu01", 0, 1)
    log = KernelLog(
        since=LogCursor(boot_id="1", sequence=Reading.error("x"), monotonic_us=Reading.error("x")),
        events=Reading.error("/dev/kmsg: EPERM"),
        lost_records=Reading.error("the node rebooted"),
    )
    events = _evidence.events(replace(view, facts_after=replace(view.facts_after, kernel_log=log)))
    assert not events.read
    assert events.notes == (
        "kernel log unreadable: /dev/kmsg: EPERM",
        "lost records unreadable: the node rebooted",
    )


def test_a_gap_in_the_log_and_lines_left_out_are_said():
    many = tuple(event(index, "aer", "AER: Corrected") for index in range(_evidence.MAX_EVENTS + 7))
    view = node("gpu01", 0, 1, results(1), events=many)
    log = replace(view.facts_after.kernel_log, lost_records=Reading.ok(12))
    events = _evidence.events(replace(view, facts_after=replace(view.facts_after, kernel_log=log)))
    assert len(events.rows) == _evidence.MAX_EVENTS
    assert events.notes == (
        "12 records were overwritten before they could be read",
        "7 more lines in the facts after the load",
    )


def test_what_differs_comes_before_what_is_as_wanted():
    changes = _evidence.changes(healthy("gpu01", 0, 1).plan)
    assert [change.status for change in changes] == ["refused", "change", "ok"]


def test_links_are_relative_and_only_to_what_there_is():
    view = healthy("gpu01", 0, 1)
    assert [link.href for link in _evidence.files(view, verb="certify")] == [
        "certificates/gpu01.json",
        "facts/gpu01.before.json",
        "facts/gpu01.after.json",
        "plan/gpu01.json",
        "probe/gpu01/result.json",
        "evidence/gpu01.tar.gz",
    ]
    odd = NodeView(record=HostRecord(host="javascript:a/../b?"), facts_before=facts("x", 1, after=False))
    assert [link.href for link in _evidence.files(odd, verb="inspect")] == [
        "facts/javascript%3Aa%2F..%2Fb%3F.now.json"
    ]
