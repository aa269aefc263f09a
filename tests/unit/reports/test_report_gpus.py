"""How each GPU of a node stands."""

from __future__ import annotations

from dataclasses import replace

from fixture_facts import pci_device
from fixture_run import address, facts, finding, healthy, node, port, results, run_view

from nodeprep.model.facts import GpuPath
from nodeprep.model.reading import Reading
from nodeprep.model.run import HostRecord, NodeView
from nodeprep.reports import _gpus


def states(view):
    return [mark.state for mark in _gpus.marks(view)]


def by_host(host):
    return next(view for view in run_view(gpus=8).nodes if view.record.host == host)


def test_a_healthy_node_has_only_passes_and_what_is_waived():
    assert states(healthy("gpu01", 0, 3)) == ["waived", "pass", "pass"]


def test_a_fault_of_the_port_above_marks_the_gpu_below():
    marks = _gpus.marks(by_host("gpu05"))
    assert [mark.label for mark in marks if mark.state == "fail"] == ["5b:00.0", "7d:00.0"]
    assert marks[6].why.startswith("aer_quiet_load: 1449 corrected errors")


def test_a_fault_of_a_shared_port_marks_every_gpu_below_it():
    view = node("gpu01", 0, 3, results(3, finding("aer_quiet_load", port(0), "FAIL", "errors")))
    shared = replace(
        view.facts_after,
        pci=replace(
            view.facts_after.pci,
            devices=Reading.ok((pci_device(port(0)), *(pci_device(address(gpu)) for gpu in range(3)))),
            gpu_paths=Reading.ok(
                tuple(
                    GpuPath(gpu=address(gpu), hops=(port(0 if gpu < 2 else gpu), address(gpu)))
                    for gpu in range(3)
                )
            ),
        ),
    )
    assert states(replace(view, facts_after=shared)) == ["fail", "fail", "pass"]
    assert _gpus.by_hop(shared)[port(0)] == (address(0), address(1))


def test_a_gpu_that_nvml_does_not_know_is_absent_not_passed():
    marks = _gpus.marks(by_host("gpu03"))
    assert [mark.state for mark in marks].count("absent") == 1
    assert (marks[5].state, marks[5].word) == ("absent", "on PCI, not in NVML")


def test_when_nvml_hangs_no_gpu_is_good():
    marks = _gpus.marks(by_host("gpu06"))
    assert {mark.state for mark in marks} == {"error"}
    assert all("nvmlDeviceGetTemperature" in mark.why for mark in marks)


def test_passes_elsewhere_do_not_hide_that_nvml_hung():
    view = replace(node("gpu01", 0, 2, results(2)), facts_after=facts("gpu01", 2, after=True, hung=True))
    assert states(view) == ["error", "error"]


def test_without_a_certificate_nothing_is_judged():
    view = NodeView(record=HostRecord(host="a", state="done"), facts_before=facts("a", 2, after=False))
    assert states(view) == ["unknown", "unknown"]


def test_nothing_known_is_no_gpu_at_all():
    assert _gpus.marks(NodeView(record=HostRecord(host="a"))) == ()
