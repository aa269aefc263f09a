"""Setting power limits and persistence, against the simulated driver library."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from nvml_root import FIRST, SECOND, gpu, root_with

from nodeprep.node import apply as settings
from nodeprep.node import durable, gpu_power, gpu_power_nvml, power_restore, power_unit
from nodeprep.sim import hardware

PYZ = power_unit.NODE_PYZ
SET_LIMIT = "nvmlDeviceSetPowerManagementLimit"


def set_power(
    root: str, limit: str | None = "93%", persistence: bool | None = True, **more: Any
) -> dict[str, Any]:
    return gpu_power.apply(root, limit=limit, persistence=persistence, deadline_s=20, **more)


def limits(root: str) -> dict[str, tuple[float, bool]]:
    """What a new client of the driver reads: address to limit and persistence."""
    found = gpu_power.show(root)
    assert not found["failed"], found["msg"]
    return {one["address"]: (one["limit_w"], one["persistence"]) for one in found["gpus"]}


def with_systemd(root: str) -> str:
    Path(root, "run/systemd/system").mkdir(parents=True)
    Path(root, "sys/bus/pci/devices").mkdir(parents=True)
    program = Path(root, PYZ.lstrip("/"))
    program.parent.mkdir(parents=True)
    program.write_bytes(b"program")
    return root


@pytest.fixture
def node(tmp_path: Path) -> str:
    """Two GPUs of different default limits, the second without persistence."""
    return root_with(tmp_path, gpu(FIRST), gpu(SECOND, model="h100-pcie", persistence=False))


@pytest.mark.parametrize(
    ("text", "default_mw", "milliwatts"),
    [
        ("93%", 700_000, 651_000),
        ("93%", 300_000, 279_000),
        ("93 %", 350_000, 326_000),  # 325.5 W
        ("650W", 700_000, 650_000),
        ("650.5 w", 700_000, 650_500),
        ("100%", 700_000, 700_000),
    ],
)
def test_limits_as_written(text: str, default_mw: int, milliwatts: int) -> None:
    assert gpu_power.Limit.parse(text).milliwatts(default_mw) == milliwatts


@pytest.mark.parametrize("text", ["", "93", "W", "-5%", "0W", "650kW", "1e3W", "nan%"])
def test_what_is_no_limit(node: str, text: str) -> None:
    result = set_power(node, text)
    assert result["failed"]
    assert "is no limit" in result["msg"]
    assert result["hint"]


def test_sets_every_gpu_in_its_own_watts_and_reads_back(node: str) -> None:
    result = set_power(node)
    assert (result["changed"], result["failed"], result["msg"]) == (True, False, "")
    assert limits(node) == {FIRST: (651.0, True), SECOND: (326.0, True)}
    first, second = result["gpus"]
    assert (first["before_w"], first["wanted_w"], first["limit_w"]) == (700.0, 651.0, 651.0)
    assert (first["requested_w"], first["enforced_w"], first["in_effect"]) == (651.0, 651.0, True)
    assert (second["default_w"], second["min_w"], second["max_w"]) == (350.0, 200.0, 350.0)
    assert result["diff"]["before"].splitlines() == [
        f"{FIRST} power limit 700 W",
        f"{SECOND} persistence off",
        f"{SECOND} power limit 350 W",
    ]
    assert result["diff"]["after"].splitlines()[1] == f"{SECOND} persistence on"


def test_a_second_run_changes_nothing(node: str) -> None:
    set_power(node)
    again = set_power(node)
    assert (again["changed"], again["failed"], again["diff"]) == (False, False, {"before": "", "after": ""})
    assert all(one["in_effect"] for one in again["gpus"])


def test_check_mode_writes_nothing(node: str) -> None:
    with_systemd(node)
    before = sorted(path for path in Path(node).rglob("*"))
    result = set_power(node, check_mode=True)
    assert result["changed"]
    assert "651 W" in result["diff"]["after"]
    assert power_unit.UNIT_FILE in result["diff"]["after"]
    assert sorted(path for path in Path(node).rglob("*")) == before
    assert limits(node) == {FIRST: (700.0, True), SECOND: (350.0, False)}


def test_only_persistence(node: str) -> None:
    result = set_power(node, None)
    assert result["changed"]
    assert limits(node) == {FIRST: (700.0, True), SECOND: (350.0, True)}


def test_outside_the_constraints_of_one_gpu_nothing_is_written(node: str) -> None:
    result = set_power(node, "600W")
    assert (result["failed"], result["changed"]) == (True, False)
    assert f"{SECOND} takes 200 W to 350 W, not 600 W" in result["msg"]
    assert limits(node) == {FIRST: (700.0, True), SECOND: (350.0, False)}
    assert not power_restore.load(node)


def test_all_gpus_outside_are_named(node: str) -> None:
    message = set_power(node, "10%")["msg"]
    assert f"{FIRST} takes 200 W to 700 W, not 70 W" in message
    assert f"{SECOND} takes 200 W to 350 W, not 35 W" in message


def test_a_gpu_that_cannot_be_limited(tmp_path: Path) -> None:
    fault = hardware.call_error("nvmlDeviceGetPowerManagementLimitConstraints", 3)
    result = set_power(root_with(tmp_path, gpu(FIRST, fault)))
    assert result["failed"]
    assert f"{FIRST}: its lowest is unknown" in result["msg"]


def test_one_gpu_that_cannot_be_opened_stops_all(tmp_path: Path) -> None:
    lost = hardware.call_error("nvmlDeviceGetHandleByIndex_v2", 15)
    root = root_with(tmp_path, gpu(FIRST), gpu(SECOND, lost))
    result = set_power(root)
    assert (result["failed"], result["changed"]) == (True, False)
    assert "GPU index 1" in result["msg"]
    assert "GPU is lost" in result["msg"]


def test_no_driver_and_no_gpu(tmp_path: Path) -> None:
    assert "no NVIDIA driver installed?" in set_power(str(tmp_path))["msg"]
    assert set_power(root_with(tmp_path))["msg"] == "NVML lists no GPU"


def test_a_series_of_writes_ends_at_the_first_failure_unless_told_to_go_on(tmp_path: Path) -> None:
    root = root_with(tmp_path, gpu(FIRST, hardware.call_error(SET_LIMIT, 4)), gpu(SECOND))
    changes = [
        gpu_power_nvml.Change(one.address, one.uuid, "limit", 700_000, 600_000)
        for one in (hardware.SimulatedGpu(address=address) for address in (FIRST, SECOND))
    ]
    stopped = gpu_power_nvml.write(root, changes, 10)
    assert stopped.done == []
    assert f"power limit of {FIRST} from 700 W to 600 W" in stopped.problem
    assert limits(root)[SECOND] == (700.0, True)
    went_on = gpu_power_nvml.write(root, changes, 10, go_on=True)
    assert (went_on.done, went_on.problem) == (changes[1:], stopped.problem)
    assert limits(root)[SECOND] == (600.0, True)


def test_a_limit_without_persistence_does_not_last_and_says_why(tmp_path: Path) -> None:
    root = root_with(tmp_path, gpu(FIRST, persistence=False))
    result = set_power(root, "600W", None)
    assert result["failed"]
    assert "was set to 600 W and reads 700 W" in result["msg"]
    assert "persistence" in result["hint"]


def test_without_systemd_it_says_that_nothing_survives_a_reboot(node: str) -> None:
    result = set_power(node)
    assert (result["failed"], result["persisted"]) == (False, False)
    assert result["persisted_reason"] == "systemd does not run here"


def test_without_the_program_it_says_that_nothing_survives_a_reboot(node: str) -> None:
    Path(node, "run/systemd/system").mkdir(parents=True)
    result = set_power(node)
    assert (result["failed"], result["persisted"]) == (False, False)
    assert PYZ in result["persisted_reason"]


def test_unit_and_configuration_survive_a_reboot(node: str) -> None:
    with_systemd(node)
    result = set_power(node)
    assert (result["failed"], result["persisted"], result["persisted_reason"]) == (False, True, "")
    unit = durable.content(node, power_unit.UNIT_FILE) or ""
    assert "After=nvidia-persistenced.service" in unit
    assert "Wants=nvidia-persistenced.service" in unit
    assert "RemainAfterExit=yes" in unit
    assert f"{PYZ} gpu-power --apply" in unit
    assert Path(node + power_unit.ENABLED_LINK).exists()
    assert set_power(node)["changed"] is False

    (Path(node) / "run/nodeprep-nvml.json").unlink()  # a reboot: the driver has forgotten
    assert limits(node) == {FIRST: (700.0, True), SECOND: (350.0, False)}
    boot = gpu_power.reapply(node, wait_s=1)
    assert (boot["failed"], boot["msg"]) == (False, "")
    assert limits(node) == {FIRST: (651.0, True), SECOND: (326.0, True)}
    assert gpu_power.reapply(node, wait_s=1)["changed"] is False


def test_setting_one_thing_keeps_the_other_over_a_reboot(node: str) -> None:
    with_systemd(node)
    set_power(node, "93%", True)
    set_power(node, None, True)
    assert power_unit.configured(node) == {"limit": "93%", "persistence": True}
    set_power(node, "80%", None)
    assert power_unit.configured(node) == {"limit": "80%", "persistence": True}
    assert limits(node)[FIRST] == (560.0, True)


def test_none_takes_the_limit_out_of_the_unit_and_leaves_the_present_one(node: str) -> None:
    with_systemd(node)
    set_power(node, "80%", True)
    before = limits(node)
    result = set_power(node, "none", True)
    assert (result["changed"], result["failed"], result["persisted"]) == (True, False, True)
    assert limits(node) == before
    assert power_unit.observe(node) == {"enabled": True, "limit": "", "persistence": True}
    assert set_power(node, "none", True)["changed"] is False

    (Path(node) / "run/nodeprep-nvml.json").unlink()
    assert gpu_power.reapply(node, wait_s=0)["failed"] is False
    assert limits(node) == {FIRST: (700.0, True), SECOND: (350.0, True)}


def test_none_alone_on_a_unit_that_set_a_limit_alone(node: str) -> None:
    with_systemd(node)
    hardware.install(Path(node), [gpu(FIRST)])
    set_power(node, "80%", None)
    result = set_power(node, "none", None)
    assert (result["failed"], result["persisted"]) == (False, True)
    assert power_unit.observe(node) == {"enabled": True, "limit": "", "persistence": None}
    boot = gpu_power.reapply(node, wait_s=0)
    assert (boot["failed"], boot["changed"]) == (False, False)


def test_none_where_nodeprep_has_set_nothing_makes_no_unit(node: str) -> None:
    with_systemd(node)
    result = set_power(node, "none", None)
    assert (result["changed"], result["failed"], result["persisted"]) == (False, False, False)
    assert result["persisted_reason"] == "nothing was asked for"
    assert durable.content(node, power_unit.UNIT_FILE) is None


@pytest.mark.parametrize(("limit", "persistence"), [("93%", None), (None, True)])
def test_a_damaged_configuration_stops_a_write_that_would_keep_some_of_it(
    node: str, limit: str | None, persistence: bool | None
) -> None:
    durable.put(node, power_unit.CONFIG, "[]")
    result = set_power(node, limit, persistence)
    assert (result["failed"], result["changed"]) == (True, False)
    assert f"{power_unit.CONFIG} is damaged" in result["msg"]
    assert "written anew" in result["hint"]
    assert durable.content(node, power_unit.CONFIG) == "[]"
    assert gpu_power.reapply(node, wait_s=0)["msg"].startswith(power_unit.CONFIG)


def test_a_damaged_configuration_is_written_anew_when_all_of_it_is_asked_for(node: str) -> None:
    with_systemd(node)
    durable.put(node, power_unit.CONFIG, '{"limit": ')
    assert not power_unit.observe(node)["enabled"]
    result = set_power(node)
    assert (result["failed"], result["persisted"]) == (False, True), result["msg"]
    assert power_unit.configured(node) == {"limit": "93%", "persistence": True}


def test_boot_without_configuration_fails(node: str) -> None:
    result = gpu_power.reapply(node, wait_s=0)
    assert result["failed"]
    assert power_unit.CONFIG in result["msg"]


def test_boot_sets_the_gpus_that_answer_and_fails_for_the_others(node: str) -> None:
    with_systemd(node)
    set_power(node)
    (Path(node) / "run/nodeprep-nvml.json").unlink()
    for address in (FIRST, SECOND):
        device = Path(node, "sys/bus/pci/devices", address)
        device.mkdir(parents=True)
        (device / "vendor").write_text("0x10de\n")
        (device / "device").write_text("0x2330\n")
        (device / "class").write_text("0x030200\n")
    hardware.install(Path(node), [gpu(FIRST), gpu(SECOND, hardware.missing())])
    result = gpu_power.reapply(node, wait_s=0.2)
    assert result["failed"]
    assert "only 1 of 2 GPUs on the PCI bus answer" in result["msg"]
    assert limits(node) == {FIRST: (651.0, True)}


def test_boot_sets_the_others_when_one_gpu_refuses(node: str) -> None:
    with_systemd(node)
    set_power(node)
    (Path(node) / "run/nodeprep-nvml.json").unlink()
    refuses = hardware.call_error(SET_LIMIT, 999)
    hardware.install(Path(node), [gpu(FIRST, refuses), gpu(SECOND, model="h100-pcie")])
    result = gpu_power.reapply(node, wait_s=0)
    assert (result["failed"], result["changed"]) == (True, True)
    assert f"power limit of {FIRST} from 700 W to 651 W" in result["msg"]
    assert [one["in_effect"] for one in result["gpus"]] == [False, True]
    assert limits(node)[SECOND] == (326.0, True)


def test_boot_without_a_readable_bus_sets_and_fails(node: str) -> None:
    with_systemd(node)
    set_power(node)
    (Path(node) / "run/nodeprep-nvml.json").unlink()
    Path(node, "sys/bus/pci/devices").rmdir()
    result = gpu_power.reapply(node, wait_s=0)
    assert result["failed"]
    assert "the PCI bus cannot be read" in result["msg"]
    assert limits(node)[FIRST] == (651.0, True)


def test_restore_point_keeps_the_first_state(node: str) -> None:
    set_power(node, "93%")
    set_power(node, "80%")
    entries = power_restore.load(node)
    assert {entry["limit_mw"] for entry in entries.values()} == {700_000, 350_000}
    mode = Path(node, power_restore.PATH.lstrip("/")).stat().st_mode & 0o777
    assert mode == 0o600


def test_a_damaged_restore_point_stops_the_write(node: str) -> None:
    durable.put(node, power_restore.PATH, "{")
    result = set_power(node)
    assert (result["failed"], result["changed"]) == (True, False)
    assert limits(node)[FIRST] == (700.0, True)


def test_a_full_disk_stops_before_any_setting(node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    result = set_power(node)
    assert (result["failed"], result["changed"]) == (True, False)
    assert "No space left on device" in result["msg"]
    assert limits(node)[FIRST] == (700.0, True)
    assert not list(Path(node).rglob("*.nodeprep-*"))


def test_forget_puts_everything_back(node: str) -> None:
    with_systemd(node)
    set_power(node)
    checked = gpu_power.forget(node, check_mode=True)
    assert checked["changed"]
    assert limits(node)[FIRST] == (651.0, True)
    result = gpu_power.forget(node)
    assert (result["changed"], result["failed"], result["msg"]) == (True, False, "")
    assert limits(node) == {FIRST: (700.0, True), SECOND: (350.0, False)}
    for path in (power_unit.UNIT_FILE, power_unit.CONFIG, power_restore.PATH):
        assert durable.content(node, path) is None
    assert not os.path.lexists(node + power_unit.ENABLED_LINK)
    assert gpu_power.forget(node)["changed"] is False


def test_forget_keeps_the_restore_point_while_a_gpu_is_away(node: str) -> None:
    set_power(node)
    hardware.install(Path(node), [gpu(FIRST), gpu(SECOND, hardware.missing(), model="h100-pcie")])
    result = gpu_power.forget(node)
    assert result["failed"]
    assert SECOND in result["msg"]
    assert limits(node)[FIRST] == (700.0, True)
    assert power_restore.load(node)


def test_apply_dispatches_and_refuses_what_it_does_not_know(node: str) -> None:
    done = settings.apply(node, {"gpu_power": {"limit": "93%", "persistence": True}})
    assert (done["changed"], done["failed"]) == (True, False)
    assert done["results"]["gpu_power"]["gpus"][0]["enforced_w"] == 651.0
    assert len(done["diff"]) == 1
    undone = settings.apply(node, {"gpu_power": {"state": "absent"}})
    assert undone["changed"]
    assert limits(node)[FIRST] == (700.0, True)
    unknown = settings.apply(node, {"fan_speed": {}, "gpu_power": {"limit": "93%"}})
    assert (unknown["failed"], unknown["changed"]) == (True, False)
    assert "fan_speed" in unknown["msg"]
    typo = settings.apply(node, {"gpu_power": {"limits": "93%"}})
    assert typo["failed"]
    assert "limits" in typo["msg"]


def test_the_program_at_boot(node: str, capsys: pytest.CaptureFixture[str]) -> None:
    from nodeprep.node.__main__ import main

    assert main(["gpu-power", "--apply", "--root", node, "--wait-s", "0"]) == 11
    assert power_unit.CONFIG in capsys.readouterr().err
    with_systemd(node)
    set_power(node)
    assert main(["gpu-power", "--apply", "--root", node, "--wait-s", "0"]) == 0
    assert f"{FIRST}: enforced limit 651 W, persistence on" in capsys.readouterr().out
    assert main(["gpu-power", "--show", "--root", node]) == 0
    assert json.loads(capsys.readouterr().out)["gpus"][1]["limit_w"] == 326.0
