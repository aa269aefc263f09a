"""What is seen of a trial boot, and what is left of one that did not come through."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from trial_node import GPU, NIC, NOT_OWNED, OLD, RELEASE, Node

from nodeprep.node import trial_judge, trial_state, trial_system
from nodeprep.node.kernel_cmdline import Edit
from nodeprep.node.reading import NotSupported


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def off_the_bus(node: Node) -> None:
    """sysfs keeps the device; its configuration space reads all 0xff."""
    node.write_bytes(f"/sys/bus/pci/devices/{GPU}/config", b"\xff\xff\xff\xff")


def gone(path: str) -> Callable[[Node], None]:
    def effect(node: Node) -> None:
        shutil.rmtree(node.root + path)

    return effect


def written(path: str, text: str) -> Callable[[Node], None]:
    return lambda node: node.write(path, text)


def bound(address: str, driver: str) -> Callable[[Node], None]:
    return lambda node: node.bind(address, driver)


def says(*lines: str, **more: str) -> Callable[[Node], None]:
    return lambda node: node.kernel_says(*lines, **more)


BAD_TLP = f"pcieport {GPU}: AER: Uncorrected (Fatal) error received: {GPU}"

SPOILED: dict[str, tuple[Callable[[Node], None], str, str]] = {
    "fewer CPUs": (written("/sys/devices/system/cpu/online", "0-31\n"), "cpus", "32 online"),
    "CPUs unreadable": (gone("/sys/devices/system/cpu"), "cpus", "unreadable: "),
    "less memory": (written("/proc/meminfo", "MemTotal: 65000000 kB\n"), "memory_bytes", "63476 MiB"),
    "memory unreadable": (written("/proc/meminfo", ""), "memory_bytes", "unreadable: "),
    "a NIC lost": (gone("/sys/class/net/eth1"), "nics", "not there"),
    "all NICs lost": (gone("/sys/class/net"), "nics", "unreadable: "),
    "a GPU that reads all 0xff": (off_the_bus, "gpus", "not there"),
    "a GPU lost": (gone(f"/sys/bus/pci/devices/{GPU}"), "gpus", "not there"),
    "the bus lost": (gone("/sys/bus/pci"), "gpus", "unreadable: "),
    "a GPU without its driver": (bound(GPU, ""), "drivers", "no driver"),
    "a GPU with another driver": (bound(GPU, "nouveau"), "drivers", "nouveau"),
    "a NIC without its driver": (bound(NIC, ""), "drivers", "no driver"),
    "a disk lost": (gone("/sys/block/nvme1n1"), "disks", "not there"),
    "AER lost": (says(aer=NOT_OWNED), "aer", "owned by not the OS"),
    "AER unknown": (says(aer="something else"), "aer", "owned by unknown: "),
    "the root bridge lost": (gone("/sys/devices/pci0000:00"), "aer", "owned by the root bridge is not there"),
    "an oops": (says("BUG: unable to handle page fault"), "events", "BUG: unable to handle page fault"),
    "a lockup": (says("watchdog: BUG: soft lockup - CPU#1 stuck for 22s!"), "events", "watchdog: "),
    "a machine check": (says("mce: [Hardware Error]: Machine check events logged"), "events", "mce: "),
    "a hung task": (says("INFO: task init:1 blocked for more than 120 seconds."), "events", "INFO: task "),
    "a fatal PCIe error": (says(BAD_TLP), "events", BAD_TLP),
    "the kernel log unreadable": (written("/dev/kmsg", "rubbish\n"), "events", "unreadable: "),
    "the first lines dropped": (
        written("/dev/kmsg", "6,900,1,-;late\n"),
        "events",
        "unreadable: the early kernel log is overwritten",
    ),
    "lines dropped amid": (
        written("/dev/kmsg", "6,0,1,-;first\n6,9,1,-;late\n"),
        "events",
        "unreadable: 8 records of the kernel log were overwritten while it was read",
    ),
}


@pytest.mark.parametrize("name", SPOILED)
def test_what_was_lost_or_cannot_be_read_speaks_against_the_boot(node: Node, name: str) -> None:
    effect, what, now = SPOILED[name]
    node.effects["iommu=pt"] = effect
    node.try_out()
    judged = node.judge()
    assert (judged["verdict"], judged["failed"], judged["needs_reboot"]) == ("bad", False, True)
    found = [finding for finding in judged["findings"] if finding["what"] == what]
    assert any(str(finding["now"]).startswith(now) for finding in found), judged["findings"]
    assert what in judged["msg"]
    assert node.commit()["failed"]


HARMLESS: dict[str, tuple[Callable[[Node], None], str]] = {
    "a little less memory": (written("/proc/meminfo", f"MemTotal: {64 * 1024**2 - 500_000} kB\n"), ""),
    "a corrected error": (says(f"pcieport {GPU}: AER: Corrected error received: {GPU}"), ""),
    "a non-fatal error": (says(f"pcieport {GPU}: AER: Uncorrected (Non-Fatal) error received: {GPU}"), ""),
    "an argument the kernel does not know": (
        says('Unknown kernel command line parameters "iommu=pt", will be passed to user space.'),
        "the kernel does not know iommu=pt",
    ),
    "another kernel": (
        written("/proc/sys/kernel/osrelease", "6.1.0-99-amd64"),
        f"the kernel is 6.1.0-99-amd64; the boot entry named {RELEASE}",
    ),
    "a loader's own word": (
        lambda node: node.write("/proc/cmdline", f"{node.boots[-1]} vt.handoff=7"),
        "in /proc/cmdline, and not in the boot entry: vt.handoff=7",
    ),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_only_worth_a_note(node: Node, name: str) -> None:
    effect, note = HARMLESS[name]
    node.effects["iommu=pt"] = effect
    node.try_out()
    judged = node.judge()
    assert judged["findings"] == []
    assert judged["verdict"] == "good"
    assert judged["notes"] == ([note] if note else [])


def test_renamed_interfaces_and_disks_are_not_lost(node: Node) -> None:
    def swap(node: Node) -> None:
        for folder, one, other in (("sys/class/net", "eth0", "eth1"), ("sys/block", "nvme0n1", "nvme1n1")):
            place = Path(node.root, folder)
            (place / one).rename(place / "between")
            (place / other).rename(place / one)
            (place / "between").rename(place / other)

    node.effects["iommu=pt"] = swap
    node.try_out()
    judged = node.judge()
    assert judged["verdict"] == "good"
    assert judged["notes"] == ["interface eth0 is called eth1 now", "interface eth1 is called eth0 now"]


@pytest.mark.parametrize(("before", "now"), [("nouveau", "nvidia"), ("vfio-pci", ""), ("nouveau", "")])
def test_a_driver_that_is_no_use_for_work_may_go(node: Node, before: str, now: str) -> None:
    node.bind(GPU, before)
    node.effects["iommu=pt"] = bound(GPU, now)
    node.try_out()
    judged = node.judge()
    assert (judged["verdict"], judged["findings"]) == ("good", [])
    assert judged["notes"] == [f"{GPU} has the driver {now or 'none'}, and had {before} before"]


def test_a_device_without_a_driver_before_needs_none_now(node: Node) -> None:
    node.bind(GPU, "")
    node.effects["iommu=pt"] = bound(GPU, "")
    node.try_out()
    assert node.judge()["verdict"] == "good"


def test_a_virtual_function_may_come_and_go_with_its_driver(node: Node) -> None:
    node.folder(f"/sys/bus/pci/devices/{NIC}/physfn")
    node.effects["iommu=pt"] = bound(NIC, "")
    node.try_out()
    assert node.judge()["verdict"] == "good"


def test_a_witness_of_another_version_vouches_for_no_driver(node: Node) -> None:
    node.try_out()
    trial = trial_state.required(node.root)
    witness = {name: value for name, value in trial.witness.items() if name != "drivers"}
    trial_state.put(node.root, replace(trial, witness=witness))
    judged = node.judge()
    assert [finding["what"] for finding in judged["findings"]] == ["drivers"]
    assert "another version of nodeprep" in judged["findings"][0]["now"]


def test_trouble_that_the_node_had_before_is_not_the_trials(node: Node) -> None:
    line = "mce: [Hardware Error]: Machine check events logged"
    node.kernel_says(line)
    node.effects["iommu=pt"] = says(line)
    node.try_out()
    assert node.judge()["verdict"] == "good"


def test_a_loss_of_aer_passes_only_when_it_is_accepted(node: Node) -> None:
    node.effects["iommu=pt"] = says(aer=NOT_OWNED)
    node.try_out()
    assert node.judge()["verdict"] == "bad"
    judged = node.judge(accept_aer_loss=True)
    assert judged["verdict"] == "good"
    assert judged["notes"] == ["accepted: AER of root bridge 0000:00: the OS before, not the OS now"]
    assert not node.commit()["failed"]


def test_an_owner_that_was_unknown_before_has_to_be_the_os_now(node: Node) -> None:
    node.kernel_says(aer="nothing of the kind")
    node.effects["iommu=pt"] = says(aer=NOT_OWNED)
    node.try_out()
    assert [finding["what"] for finding in node.judge()["findings"]] == ["aer"]
    node.kernel_says()
    assert node.judge()["verdict"] == "good"


def test_firmware_that_owned_aer_may_go_on(node: Node) -> None:
    node.kernel_says(aer=NOT_OWNED)
    node.effects["iommu=pt"] = says(aer=NOT_OWNED)
    node.try_out()
    assert node.judge()["verdict"] == "good"


# ---- arguments and boot ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cmdline", "now"),
    [
        ("{} iommu=pt", "iommu=pt is not there exactly once and in effect"),
        ("{} iommu=off", "iommu=off should not be there"),
        ("{} quiet", "quiet should not be there"),
    ],
)
def test_arguments_have_to_run_as_asked_for(node: Node, cmdline: str, now: str) -> None:
    node.try_out()
    node.write("/proc/cmdline", cmdline.format(node.boots[-1]))
    judged = node.judge()
    assert {"what": "arguments", "before": "as asked for", "now": now} in judged["findings"]


def test_a_command_line_that_was_cut_off_is_noticed(node: Node) -> None:
    node.try_out()
    node.write("/proc/cmdline", node.boots[-1].replace("console=tty0", ""))
    [finding] = node.judge()["findings"]
    assert finding == {
        "what": "arguments",
        "before": "console=tty0 in the boot entry",
        "now": "not in /proc/cmdline",
    }


def test_an_init_that_is_not_there_is_noticed_though_another_one_started(node: Node) -> None:
    node.try_out(Edit(present=("init=/sbin/nothing",)))
    [finding] = node.judge()["findings"]
    assert finding == {"what": "init", "before": "/sbin/nothing asked for", "now": "there is no such file"}
    node.write("/sbin/nothing", "")
    assert node.judge()["verdict"] == "good"


def test_a_one_shot_that_the_boot_loader_did_not_clear_is_cleared_and_counts(node: Node) -> None:
    node.clears = False
    node.try_out()
    judged = node.judge()
    assert judged["verdict"] == "bad"
    assert [finding["what"] for finding in judged["findings"]] == ["one_shot"]
    assert not node.loader.armed()
    assert node.boot() == OLD


def test_before_the_reboot_there_is_nothing_to_judge(node: Node) -> None:
    assert node.judge()["failed"]
    node.stage()
    node.arm()
    judged = node.judge()
    assert (judged["verdict"], judged["rebooted"], judged["failed"]) == ("not_booted", False, False)
    assert node.loader.armed()
    assert node.apply() == "committed"


def test_a_staged_trial_that_was_never_armed_is_still_there_after_a_reboot(node: Node) -> None:
    node.stage()
    node.boot()
    assert node.judge()["verdict"] == "not_booted"
    assert node.stage(trial_id="trial-2")["trial_id"] == "trial-1"
    assert node.arm()["needs_reboot"]
    node.boot()
    assert node.judge()["verdict"] == "good"


def test_a_boot_that_came_back_on_the_old_arguments(node: Node) -> None:
    node.try_out()
    assert node.boot() == OLD
    judged = node.judge()
    assert (judged["verdict"], judged["rebooted"], judged["booted"]) == ("not_booted", True, False)
    assert "the node runs its old arguments" in judged["msg"]
    assert "there is no /var/log/journal" in judged["evidence"]["kernel_log_note"]
    abandoned = node.abandon()
    assert (abandoned["msg"], abandoned["needs_reboot"]) == ("the trial was rolled back", False)


def test_a_one_shot_that_the_boot_loader_ignored_is_taken_back(node: Node) -> None:
    node.stage()
    node.arm()
    # Booted over the network, say: nothing read the entry.
    node.write("/proc/sys/kernel/random/boot_id", "another\n")
    judged = node.judge()
    assert judged["verdict"] == "not_booted"
    assert [finding["what"] for finding in judged["findings"]] == ["boot", "one_shot"]
    assert not node.loader.armed()


def test_a_boot_that_cannot_be_told_from_another_is_bad(node: Node) -> None:
    node.try_out()
    Path(node.root, "proc/sys/kernel/random/boot_id").unlink()
    judged = node.judge()
    assert (judged["verdict"], judged["failed"]) == ("bad", True)
    assert "boot_id" in judged["findings"][0]["now"]


def test_what_is_late_is_waited_for(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            node.hardware()

    monkeypatch.setattr(trial_judge.time, "sleep", sleep)
    node.effects["iommu=pt"] = gone("/sys/class/net/eth1")
    node.try_out()
    assert node.judge(settle_s=60)["verdict"] == "good"
    assert len(waits) == 2


def test_a_driver_that_binds_late_is_waited_for(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial_judge.time, "sleep", lambda _seconds: node.bind(GPU, "nvidia"))
    node.effects["iommu=pt"] = bound(GPU, "")
    node.try_out()
    assert node.judge(settle_s=0)["verdict"] == "bad"
    assert node.judge(settle_s=60)["verdict"] == "good"


def test_what_never_comes_is_not_waited_for_longer_than_told(node: Node) -> None:
    node.effects["iommu=pt"] = gone("/sys/class/net/eth1")
    node.try_out()
    assert node.judge(settle_s=0.1)["verdict"] == "bad"


# ---- systemd and its journal -------------------------------------------------------------------------


class Programs:
    """Stands in for systemctl and journalctl of a real machine."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answers: dict[str, tuple[int, str]]) -> None:
        self.answers = answers
        monkeypatch.setattr(trial_system, "is_real", lambda _root: True)
        monkeypatch.setattr(subprocess, "run", self.run)

    def run(self, command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        words = " ".join(command)
        for start, (code, text) in self.answers.items():
            if words.startswith(start):
                return subprocess.CompletedProcess(command, code, text, "" if code == 0 else text)
        raise FileNotFoundError(2, "No such file or directory", command[0])


FAILED = "systemctl list-units --failed"
STATE = "systemctl is-system-running"


def test_units_that_failed_are_told_and_an_emergency_is_bad(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = "old.service loaded failed failed Old\n"
    programs = Programs(monkeypatch, {STATE: (1, "degraded\n"), FAILED: (0, old)})
    node.try_out()
    programs.answers[FAILED] = (0, old + "new.service loaded failed failed New\n")
    judged = node.judge()
    assert judged["verdict"] == "good"
    assert judged["notes"] == ["unit new.service failed, and had not before"]
    programs.answers[STATE] = (1, "maintenance\n")
    judged = node.judge()
    assert judged["findings"] == [{"what": "system_state", "before": "degraded", "now": "maintenance"}]
    programs.answers[FAILED] = (1, "Failed to connect to bus")
    assert "failed units are unknown: systemctl failed: Failed to connect to bus" in node.judge()["notes"]


def test_a_system_that_is_still_starting_is_waited_for(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = Programs(monkeypatch, {STATE: (0, "running\n"), FAILED: (0, "")})
    node.try_out()
    programs.answers[STATE] = (1, "starting\n")
    monkeypatch.setattr(
        trial_judge.time, "sleep", lambda _seconds: programs.answers.update({STATE: (0, "running\n")})
    )
    judged = node.judge(settle_s=60)
    assert (judged["verdict"], judged["notes"]) == ("good", [])


def test_the_trial_boots_last_words_are_found_a_few_boots_back(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.stage()
    node.arm()
    trial = node.boot()
    node.boot()
    node.boot()
    node.folder("/var/log/journal")
    node.write("/sys/fs/pstore/dmesg-erst-1", "")
    lines = "".join(f"line {at}\n" for at in range(100))
    journal = "journalctl --dmesg --boot="
    programs = Programs(
        monkeypatch,
        {
            f"{journal}-1": (0, f"Command line: {OLD}\n"),
            f"{journal}-2": (
                0,
                f"Command line: BOOT_IMAGE=/vmlinuz {trial}\n{lines}VFS: Unable to mount root\n",
            ),
        },
    )
    evidence = node.judge()["evidence"]
    assert evidence["kernel_log"][-1] == "VFS: Unable to mount root"
    assert len(evidence["kernel_log"]) == 60
    assert evidence["crash_files"] == ["/sys/fs/pstore/dmesg-erst-1"]
    programs.answers[f"{journal}-2"] = (0, f"Command line: {OLD}\n")
    programs.answers[f"{journal}-3"] = (0, f"Command line: {OLD}\n")
    evidence = node.judge()["evidence"]
    assert evidence["kernel_log"] == []
    assert evidence["kernel_log_note"] == "the trial boot ended before it could write to the journal"
    programs.answers[f"{journal}-1"] = (1, "no such boot")
    assert "no such boot" in node.judge()["evidence"]["kernel_log_note"]


def test_a_simulated_machine_has_no_systemd(node: Node) -> None:
    for ask in (trial_system.state, trial_system.failed_units, trial_system.kernel_lines):
        with pytest.raises(NotSupported):
            ask(node.root)
