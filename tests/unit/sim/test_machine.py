"""A machine before it is written, and what the first load brings out of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from nodeprep.node import kernel_log
from nodeprep.sim import hardware, simulated_nvml
from nodeprep.sim.faults import FAULTS
from nodeprep.sim.kernel_lines import KernelLine
from nodeprep.sim.machine import Machine, healthy_machine, write_machine
from nodeprep.sim.root import device_folder


@pytest.fixture
def machine() -> Machine:
    return healthy_machine("node01", gpu_count=2)


def load(root: Path) -> None:
    simulated_nvml.begin_load(str(root))
    simulated_nvml.end_load(str(root))


def test_two_machines_differ_and_one_is_always_the_same() -> None:
    assert healthy_machine("node01") == healthy_machine("node01")
    assert healthy_machine("node01").gpus != healthy_machine("node02").gpus


def test_lines_of_the_load_continue_the_kernel_log(machine: Machine, tmp_path: Path) -> None:
    said = [KernelLine(4, "first"), KernelLine(3, "second")]
    write_machine(tmp_path, machine.with_on_load({}, *said))
    before = kernel_log.read_records(str(tmp_path))
    load(tmp_path)
    after = kernel_log.read_records(str(tmp_path))
    new = after[len(before) :]
    assert [(record.priority, record.text) for record in new] == [(4, "first"), (3, "second")]
    numbers = [record.sequence for record in after]
    assert numbers == list(range(numbers[0], numbers[0] + len(after)))
    times = [record.monotonic_us for record in after]
    assert times == sorted(times)


def test_files_of_the_load_are_replaced_once(machine: Machine, tmp_path: Path) -> None:
    write_machine(tmp_path, machine.with_on_load({"sys/some/file": "loaded\n"}))
    assert not (tmp_path / "sys/some/file").exists()
    load(tmp_path)
    assert (tmp_path / "sys/some/file").read_text() == "loaded\n"


def test_an_aer_burst_is_counted_on_the_port_and_at_the_root(machine: Machine, tmp_path: Path) -> None:
    write_machine(tmp_path, FAULTS["aer_burst"].put(machine, 1).machine)
    port, root_port = machine.port_above(1), machine.description.gpus[1].hops[0].address
    counters = tmp_path / device_folder(machine.description, port) / "aer_dev_correctable"
    total = tmp_path / device_folder(machine.description, root_port) / "aer_rootport_total_err_cor"
    assert "BadTLP 0" in counters.read_text().splitlines()
    load(tmp_path)
    lines = dict(line.rsplit(" ", 1) for line in counters.read_text().splitlines())
    assert lines["BadTLP"] == "112"
    assert lines["TOTAL_ERR_COR"] == total.read_text().strip() == "149"
    texts = [record.text for record in kernel_log.read_records(str(tmp_path))]
    said = f"pcieport {root_port}: AER: Multiple Correctable error message received from {port}"
    reports = texts.count(said)
    assert reports > 0
    load(tmp_path)
    assert "BadTLP 224" in counters.read_text().splitlines(), "a second load adds to the counters"
    assert total.read_text() == "298\n"
    records = kernel_log.read_records(str(tmp_path))
    assert [record.text for record in records].count(said) == 2 * reports
    assert [record.sequence for record in records] == list(range(len(records)))


def test_a_gpu_lost_under_load_stays_lost(machine: Machine, tmp_path: Path) -> None:
    write_machine(tmp_path, FAULTS["xid79_under_load"].put(machine, 1).machine)
    config = tmp_path / device_folder(machine.description, machine.gpu_address(1)) / "config"
    assert config.read_bytes()[:2] == b"\xde\x10"
    load(tmp_path)
    assert config.read_bytes() == b"\xff" * 4096
    texts = [record.text for record in kernel_log.read_records(str(tmp_path))]
    assert any(": 79, GPU has fallen off the bus." in text for text in texts)


def test_a_gpu_fault_needs_a_driver_to_show_it(machine: Machine) -> None:
    bare = FAULTS["no_driver"].put(machine, 0).machine
    assert bare.gpus is None
    with pytest.raises(ValueError, match="without driver"):
        bare.with_gpu_fault(0, hardware.missing())
