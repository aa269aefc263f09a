"""A rack ends without leaving a process behind, however its controller ends; and it starts warm."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nodeprep.sim.vm import Hardware, Rack, make_rack, processes
from nodeprep.sim.vm.cli import main

pytestmark = pytest.mark.metal_full


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    made = tmp_path_factory.mktemp("rack") / "r"
    yield made
    processes.stop(made)


def test_a_warm_start_is_a_booted_machine_in_seconds(folder: Path) -> None:
    words = ["up", "--folder", str(folder), "--warm"]
    assert main(words) == 0
    assert main(["down", "--folder", str(folder), "--remove"]) == 0
    assert not folder.exists()
    assert main(words) == 0
    vm = Rack(folder).vm("node1")
    assert vm.layout.woken_mark.exists()
    warm = vm.boot_id()
    # Its clock is right, and the GPU stand-ins, whose state QEMU does not save, report errors.
    assert abs(float(vm.ssh("date +%s")) - time.time()) < 10
    vm.inject_aer("gpu0", "BadTLP")
    time.sleep(2)
    assert "BadTLP 1" in vm.ssh("cat /sys/bus/pci/devices/0000:01:00.0/aer_dev_correctable")
    # Only the first start is warm.
    vm.power("reset")
    assert vm.wait_ssh(not_boot_id=warm) != warm


def test_a_killed_controller_leaves_a_rack_that_can_be_taken_down(folder: Path) -> None:
    controller = _controller(folder)
    _wait_for_qemu(folder)
    controller.kill()
    controller.wait()
    left = processes.find(folder)
    assert left
    assert main(["down", "--folder", str(folder)]) == 0
    assert processes.find(folder) == []
    assert [pid for pid in left if _runs(pid)] == []


def test_ctrl_c_leaves_nothing_running(folder: Path) -> None:
    controller = _controller(folder)
    _wait_for_qemu(folder)
    controller.send_signal(signal.SIGINT)
    assert controller.wait(timeout=30) == 130
    assert processes.find(folder) == []


def test_an_unplugged_machine_takes_its_bmc_with_it_and_no_other(folder: Path) -> None:
    rack = make_rack(folder, [Hardware(), Hardware()], print)
    rack.start(print, power=False)
    rack.vm("node1").stop()
    assert processes.find(folder, "node1") == []
    assert not rack.vm("node2").is_on()


def _runs(pid: int) -> bool:
    """An ended process that nobody has waited for yet does not count."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def _controller(folder: Path) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "nodeprep.sim.vm", "up", "--folder", str(folder)]
    return subprocess.Popen(words, cwd=Path(__file__).parents[2], env=dict(os.environ))


def _wait_for_qemu(folder: Path) -> None:
    deadline = time.monotonic() + 300
    while not (folder / "node1/qmp").exists():
        assert time.monotonic() < deadline, "QEMU was not started"
        time.sleep(0.1)
