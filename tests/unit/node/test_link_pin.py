"""Pinning links from the host, on hardware that obeys and on hardware that does not."""

from __future__ import annotations

import errno
import os
import struct
from pathlib import Path
from typing import Any

import pytest
from link_pin_root import (
    FIRST,
    FIRST_PORT,
    ROOT_PORT,
    SECOND,
    SECOND_PORT,
    UPSTREAM,
    Dropping,
    Hanging,
    Ignoring,
    LinkDown,
    Narrow,
    Stubborn,
    as_json,
    config_bytes,
    hardware,
    node_with,
    targets,
)

from nodeprep.node import apply as settings
from nodeprep.node import durable, link_pin, link_pin_bus, link_pin_restore, link_pin_unit, observe
from nodeprep.node.__main__ import EXIT_APPLY_FAILED, EXIT_OK, main
from nodeprep.node.link_pin_bus import LNKCTL2, Bus, SimulatedBus
from nodeprep.node.pci import DEVICES

__all__ = ["hardware"]

AS_BEFORE = {FIRST_PORT: (5, 5, 5), SECOND_PORT: (5, 5, 5)}
PINNED = {FIRST_PORT: (4, 4, 4), SECOND_PORT: (4, 4, 4)}


@pytest.fixture
def node(tmp_path: Path) -> str:
    """No driver has the GPUs."""
    return node_with(tmp_path)


@pytest.fixture
def driven(tmp_path: Path) -> str:
    """The driver has the GPUs, and no process but the persistence daemon has one open."""
    root = node_with(tmp_path, driver="nvidia")
    opened_by(root, 700, "nvidia-persiste")
    return root


def opened_by(root: str, pid: int, name: str, file: str = "/dev/nvidia0") -> None:
    durable.put(root, f"/proc/{pid}/comm", name + "\n")
    Path(f"{root}/proc/{pid}/fd").mkdir()
    Path(f"{root}/proc/{pid}/fd/3").symlink_to(file)


def pin(root: str, gen: int = 4, **more: Any) -> dict[str, Any]:
    return link_pin.apply(root, gen=gen, **more)


def nothing_left(root: str) -> bool:
    paths = (link_pin_unit.CONFIG, link_pin_unit.UNIT_FILE, link_pin_unit.ENABLED_LINK, link_pin_restore.PATH)
    return not any(os.path.lexists(root + path) for path in paths)


def test_pins_reads_back_and_lasts(node: str) -> None:
    result = pin(node)
    assert (result["failed"], result["changed"], result["msg"]) == (False, True, "")
    assert targets(node) == PINNED
    assert (result["persisted"], result["pending_reboot"]) == (True, False)
    first = result["links"][0]
    assert (first["gpu"], first["port"], first["in_effect"]) == (FIRST, FIRST_PORT, True)
    assert (first["before_target_gen"], first["before_gen"], first["gen"]) == (5, 5, 4)
    assert result["diff"]["before"].splitlines()[:2] == [
        f"{FIRST_PORT} target Gen5",
        f"{SECOND_PORT} target Gen5",
    ]
    assert observe.collect(node)["driver"]["pcie_link_unit"] == {
        "state": "ok",
        "value": {"enabled": True, "gen": 4, "ports": [FIRST_PORT, SECOND_PORT]},
    }
    again = pin(node)
    assert (again["changed"], again["failed"], again["diff"]) == (False, False, {"before": "", "after": ""})


def test_only_the_registers_of_these_ports_change(node: str) -> None:
    before = {at: config_bytes(node, at) for at in (FIRST_PORT, FIRST, UPSTREAM, ROOT_PORT)}
    pin(node)
    assert [config_bytes(node, at) for at in (UPSTREAM, ROOT_PORT)] == [before[UPSTREAM], before[ROOT_PORT]]
    changed = [n for n, byte in enumerate(config_bytes(node, FIRST_PORT)) if byte != before[FIRST_PORT][n]]
    offset = link_pin_bus.LinkSpace(before[FIRST_PORT]).pcie_offset()
    assert changed == [offset + link_pin_bus.LNKSTA, offset + LNKCTL2]


def test_other_bits_of_the_target_register_stay(node: str) -> None:
    bus = SimulatedBus(node)
    bus.write(FIRST_PORT, LNKCTL2, 0x05A5)
    assert not pin(node)["failed"]
    assert bus.read(FIRST_PORT).control2() == 0x05A4


def test_check_mode_writes_nothing(node: str) -> None:
    result = pin(node, check_mode=True)
    assert (result["changed"], result["persisted"]) == (True, False)
    assert targets(node) == AS_BEFORE
    assert nothing_left(node)


def test_under_a_driver_only_the_unit_is_installed(driven: str) -> None:
    result = pin(driven)
    assert (result["failed"], result["changed"], result["pending_reboot"]) == (False, True, True)
    assert "pending reboot" in result["msg"]
    assert [link["in_effect"] for link in result["links"]] == [False, False]
    assert targets(driven) == AS_BEFORE
    again = pin(driven)
    assert (again["changed"], again["pending_reboot"]) == (False, True)


def test_live_pins_under_an_idle_driver(driven: str) -> None:
    result = pin(driven, live=True)
    assert (result["failed"], result["pending_reboot"]) == (False, False)
    assert targets(driven) == PINNED


@pytest.mark.parametrize("file", ["/dev/nvidia7", "/dev/vfio/12"])
def test_live_is_refused_while_a_process_has_a_gpu_open(driven: str, file: str) -> None:
    opened_by(driven, 4711, "python3", file)
    result = pin(driven, live=True)
    assert result["failed"]
    assert "in use by python3 (4711)" in result["msg"]
    assert targets(driven) == AS_BEFORE
    assert nothing_left(driven)


def test_an_idle_gpu_at_gen1_is_no_failure(tmp_path: Path) -> None:
    root = node_with(tmp_path, port_target_speed_gts=16.0, port_sta_speed_gts=2.5, sta_speed_gts=2.5)
    result = pin(root)
    assert not result["failed"]
    assert targets(root) == {FIRST_PORT: (4, 1, 1), SECOND_PORT: (4, 1, 1)}


@pytest.mark.parametrize(
    ("kind", "said", "hint"),
    [
        (
            Ignoring,
            "not effective: the port 0000:17:02.0 ignores its target speed: set to Gen4, it reads Gen5",
            "BIOS",
        ),
        (Stubborn, "not effective: the link of 0000:1b:00.0 runs at Gen5 after training, above Gen4", "BIOS"),
        (Hanging, "the link below 0000:3f:02.0 was still training", ""),
        (Narrow, "came back with 8 of 16 lanes", ""),
        (
            LinkDown,
            "0000:43:00.0 does not answer 0.05 s after its link was trained: 0000:3f:02.0 says that",
            "",
        ),
    ],
)
def test_what_hardware_does_wrong_fails(node: str, hardware: Any, kind: Any, said: str, hint: str) -> None:
    hardware(kind)
    result = pin(node)
    assert result["failed"]
    assert said in result["msg"]
    assert hint in result["hint"]
    assert not any(link["in_effect"] for link in result["links"])
    assert as_json(node, link_pin_unit.CONFIG) is None


@pytest.mark.parametrize("kind", [Ignoring, Narrow, LinkDown])
def test_a_failure_takes_back_all_links(node: str, hardware: Any, kind: Any) -> None:
    hardware(kind)
    result = pin(node)
    assert result["failed"]
    assert (result["changed"], result["left_behind"]) == (False, []), result["msg"]
    assert targets(node) == AS_BEFORE
    assert nothing_left(node)


def test_a_lost_gpu_is_told_and_the_restore_point_stays(node: str, hardware: Any) -> None:
    hardware(Dropping)
    result = pin(node)
    assert result["failed"]
    assert f"{SECOND} does not answer" in result["msg"]
    assert result["changed"]
    assert any(SECOND_PORT in words for words in result["left_behind"])
    assert f"{FIRST_PORT} target Gen5" in result["rolled_back"]
    assert sorted(link_pin_restore.load(node)) == [FIRST_PORT, SECOND_PORT]
    assert as_json(node, link_pin_unit.CONFIG) is None
    lost = result["links"][1]
    assert "0xff" in lost["problem"]
    assert not lost["in_effect"]


def test_a_full_disk_takes_back_what_was_done(node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_root: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "the link")

    monkeypatch.setattr(link_pin_unit, "enable", refuse)
    result = pin(node)
    assert "No space left" in result["msg"]
    assert targets(node) == AS_BEFORE
    assert nothing_left(node)


def test_time_that_is_over_takes_back_what_was_done(node: str) -> None:
    result = pin(node, deadline_s=0.0)
    assert "were over before all links were trained" in result["msg"]
    assert targets(node) == AS_BEFORE
    assert nothing_left(node)


def test_a_locked_down_kernel_is_named_before_anything_is_written(node: str) -> None:
    durable.put(node, link_pin_bus.LOCKDOWN, "none [integrity] confidentiality\n")
    result = pin(node)
    assert "kernel lockdown is in force (integrity)" in result["msg"]
    assert "secure boot" in result["hint"]
    assert nothing_left(node)


@pytest.mark.parametrize(("number", "hint"), [(errno.EPERM, "kernel lockdown"), (errno.EACCES, "root")])
def test_a_refused_write_says_why(node: str, monkeypatch: pytest.MonkeyPatch, number: int, hint: str) -> None:
    def refuse(*_: Any) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "pwrite", refuse)
    result = pin(node)
    assert result["failed"]
    assert FIRST_PORT in result["msg"]
    assert hint in result["hint"]
    assert nothing_left(node)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"cap_speed_gts": 8.0, "sta_speed_gts": 8.0}, "can do Gen1, Gen2, Gen3 together, not Gen4"),
        ({"port_target_speed_gts": 8.0, "port_sta_speed_gts": 8.0}, "is held at Gen3, and not by nodeprep"),
        ({"port_port_type": "upstream_port"}, "is no port whose link can be trained: upstream_port"),
        ({"gone": True}, "no longer answers"),
        ({"config_bytes": 64}, "needs root"),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    root = node_with(tmp_path, **changes)
    result = pin(root)
    assert (result["failed"], result["changed"]) == (True, False)
    assert said in result["msg"]
    assert nothing_left(root)


@pytest.mark.parametrize("gen", [0, 7, True])
def test_what_is_no_generation(node: str, gen: int) -> None:
    assert "is no PCIe generation" in pin(node, gen)["msg"]


def test_a_port_out_of_sight_and_a_gpu_that_is_not_there(node: str) -> None:
    assert "there is no 0000:99:00.0" in pin(node, gpus=["0000:99:00.0"])["msg"]
    assert "out of sight" in pin(node, gpus=[ROOT_PORT])["msg"]


def test_named_gpus_only_and_those_pinned_before_stay(node: str) -> None:
    pin(node, gpus=[FIRST.upper()])
    assert targets(node) == {FIRST_PORT: (4, 4, 4), SECOND_PORT: (5, 5, 5)}
    pin(node, 3, gpus=[SECOND])
    assert targets(node) == {FIRST_PORT: (3, 3, 3), SECOND_PORT: (3, 3, 3)}


def test_a_pin_of_ours_can_be_raised_but_not_above_what_was_there(tmp_path: Path) -> None:
    root = node_with(tmp_path, port_target_speed_gts=16.0, port_sta_speed_gts=16.0, sta_speed_gts=16.0)
    assert not pin(root, 3)["failed"]
    assert not pin(root, 4)["failed"]
    assert targets(root) == PINNED
    assert "and not by nodeprep" in pin(root, 5)["msg"]


def test_without_systemd_or_program_it_is_refused(node: str) -> None:
    assert "no program was named" in pin(node, node_pyz=None)["msg"]
    assert "there is no /x.pyz" in pin(node, node_pyz="/x.pyz")["msg"]
    assert not pin(node, node_pyz="/x.pyz", check_mode=True)["failed"]
    Path(node, "run/systemd/system").rmdir()
    assert "would be lost at the next boot: systemd does not run" in pin(node)["msg"]
    assert nothing_left(node)


def test_absent_gives_back_what_was_there_before_the_first_pin(node: str) -> None:
    pin(node)
    pin(node, 3)
    told = link_pin.forget(node, check_mode=True)
    assert told["changed"]
    assert targets(node)[FIRST_PORT] == (3, 3, 3)
    undone = link_pin.forget(node)
    assert (undone["failed"], undone["changed"], undone["msg"]) == (False, True, "")
    assert undone["diff"]["after"].splitlines()[:2] == [
        f"{FIRST_PORT} target Gen5",
        f"{SECOND_PORT} target Gen5",
    ]
    assert targets(node) == AS_BEFORE
    assert nothing_left(node)
    assert not link_pin.forget(node)["changed"]


def test_absent_under_a_driver_trains_nothing(driven: str) -> None:
    pin(driven, live=True)
    undone = link_pin.forget(driven)
    assert not undone["failed"]
    assert f"the link of {FIRST} goes back up when it next trains: nvidia has it" in undone["msg"]
    assert targets(driven)[FIRST_PORT] == (5, 4, 4)


def test_absent_says_when_a_port_is_gone(node: str) -> None:
    pin(node)
    Path(f"{node}{DEVICES}/{SECOND_PORT}").unlink()
    undone = link_pin.forget(node)
    assert f"{SECOND_PORT} is no longer there to be restored" in undone["msg"]
    assert nothing_left(node)


def test_absent_keeps_the_restore_point_of_what_it_could_not_restore(node: str, hardware: Any) -> None:
    pin(node)
    hardware(Ignoring)
    undone = link_pin.forget(node)
    assert undone["failed"]
    assert "ignores its target speed" in undone["msg"]
    assert sorted(link_pin_restore.load(node)) == [FIRST_PORT, SECOND_PORT]


@pytest.mark.parametrize("path", [link_pin_restore.PATH, link_pin_unit.CONFIG])
@pytest.mark.parametrize("text", ["{", "[]", '{"schema": "other/1"}'])
def test_damaged_files(node: str, path: str, text: str) -> None:
    durable.put(node, path, text)
    result = pin(node)
    # The configuration is nodeprep's own and is written anew; the way back must not be lost.
    assert result["failed"] is (path == link_pin_restore.PATH)
    assert ("is damaged" in result["msg"]) is result["failed"]
    durable.put(node, path, text)
    assert main(["link-pin", "--apply", "--root", node]) == EXIT_APPLY_FAILED


def reboot(root: str, driver: str = "") -> None:
    """Ports and links as firmware leaves them."""
    bus = SimulatedBus(root)
    for port in (FIRST_PORT, SECOND_PORT):
        bus.write(port, LNKCTL2, 5)
        bus.write(port, link_pin_bus.LNKCTL, link_pin_bus.RETRAIN)
    for gpu in (FIRST, SECOND):
        link = Path(f"{root}{DEVICES}/{gpu}/driver")
        if link.is_symlink() and not driver:
            link.unlink()


def test_the_unit_pins_after_a_reboot(driven: str, capsys: pytest.CaptureFixture[str]) -> None:
    pin(driven)
    reboot(driven)
    assert main(["link-pin", "--apply", "--root", driven]) == EXIT_OK
    assert f"{FIRST} below {FIRST_PORT}: at most Gen4, runs at Gen4" in capsys.readouterr().out
    assert targets(driven) == PINNED
    assert not pin(driven)["changed"]


def test_at_boot_a_driver_that_was_first_is_told(driven: str, capsys: pytest.CaptureFixture[str]) -> None:
    pin(driven)
    assert main(["link-pin", "--apply", "--root", driven]) == EXIT_APPLY_FAILED
    said = capsys.readouterr().err
    assert f"the link of {FIRST} stays at Gen5: nvidia had it first" in said
    assert "initramfs" in said


def test_at_boot_a_driver_on_a_slow_link_needs_no_training(tmp_path: Path) -> None:
    root = node_with(tmp_path, driver="nvidia", port_sta_speed_gts=2.5, sta_speed_gts=2.5)
    pin(root)
    assert not link_pin.reapply(root)["failed"]
    assert targets(root) == {FIRST_PORT: (4, 1, 1), SECOND_PORT: (4, 1, 1)}


@pytest.mark.parametrize("change", ["gone", "other model", "dead"])
def test_at_boot_a_port_that_is_not_what_it_was_fails_and_the_others_are_pinned(
    node: str, change: str
) -> None:
    pin(node)
    reboot(node)
    file = Path(f"{node}{DEVICES}/{FIRST_PORT}/config")
    data = bytearray(file.read_bytes())
    if change == "gone":
        Path(f"{node}{DEVICES}/{FIRST_PORT}").unlink()
    elif change == "dead":
        file.write_bytes(b"\xff" * len(data))
    else:
        struct.pack_into("<H", data, 2, 0x1234)
        file.write_bytes(bytes(data))
    result = link_pin.reapply(node)
    assert result["failed"]
    said = "is another port now: 1000:1234" if change == "other model" else "is gone"
    assert f"{FIRST_PORT}, pinned to Gen4, {said}" in result["msg"]
    bus = SimulatedBus(node)
    assert bus.read(SECOND_PORT).target_gen() == 4
    if change == "other model":
        assert bus.read(FIRST_PORT).target_gen() == 5


def test_at_boot_a_missing_gpu_fails_but_its_port_is_pinned(node: str) -> None:
    pin(node)
    reboot(node)
    Path(f"{node}{DEVICES}/{FIRST}").unlink()
    result = link_pin.reapply(node)
    assert f"its GPU {FIRST} is not there" in result["msg"]
    assert SimulatedBus(node).read(FIRST_PORT).target_gen() == 4


def test_at_boot_firmware_that_holds_a_port_lower_is_left_alone(node: str) -> None:
    pin(node)
    durable.put(node, link_pin_restore.PATH, None)
    SimulatedBus(node).write(FIRST_PORT, LNKCTL2, 2)
    assert "is held at Gen2" in link_pin.reapply(node)["msg"]
    assert SimulatedBus(node).read(FIRST_PORT).target_gen() == 2


def test_at_boot_without_configuration(node: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["link-pin", "--apply", "--root", node]) == EXIT_APPLY_FAILED
    assert "there is no /etc/nodeprep/pcie_link.json" in capsys.readouterr().err


def test_show_changes_nothing(node: str, capsys: pytest.CaptureFixture[str]) -> None:
    before = config_bytes(node, FIRST_PORT)
    assert main(["link-pin", "--show", "--root", node]) == EXIT_OK
    assert '"target_gen": 5' in capsys.readouterr().out
    assert config_bytes(node, FIRST_PORT) == before


def test_a_real_machine_gets_the_real_bus() -> None:
    assert type(link_pin_bus.open_bus("/")) is Bus
    assert link_pin.show("/")["changed"] is False


def test_through_the_door_of_all_settings(node: str) -> None:
    done = settings.apply(node, {"pcie_link": {"gen": 4}})
    assert (done["failed"], done["changed"]) == (False, True)
    assert targets(node) == PINNED
    assert settings.apply(node, {"pcie_link": {}})["msg"] == "pcie_link: no generation was given"
    assert settings.apply(node, {"pcie_link": {"state": "absent"}})["changed"]
    assert targets(node) == AS_BEFORE
