"""An apply that fails leaves the node as it found it, wherever it fails; what cannot go back is named."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_systemctl import Systemctl
from nvml_root import FIRST, SECOND, gpu, root_with

from nodeprep.node import durable, gpu_power, gpu_power_nvml, power_restore, power_rollback, power_unit
from nodeprep.sim import hardware

SET_LIMIT, SET_MODE = "nvmlDeviceSetPowerManagementLimit", "nvmlDeviceSetPersistenceMode"
FILES = (power_unit.CONFIG, power_unit.UNIT_FILE, power_unit.DROP_IN, power_restore.PATH)
PACKAGED = "[Service]\nExecStart=/usr/bin/nvidia-persistenced --no-persistence-mode\n"


def prepare(root: str, *gpus: hardware.SimulatedGpu) -> str:
    """Two GPUs, the second without persistence, systemd, and a daemon that needs the drop-in."""
    root_with(Path(root), *(gpus or (gpu(FIRST), gpu(SECOND, persistence=False))))
    for folder in ("run/systemd/system", "sys/bus/pci/devices"):
        Path(root, folder).mkdir(parents=True, exist_ok=True)
    durable.put(root, power_unit.NODE_PYZ, "program")
    durable.put(root, "/lib/systemd/system/" + power_unit.PERSISTENCED, PACKAGED)
    return root


def change(root: str, **more: Any) -> dict[str, Any]:
    return gpu_power.apply(root, limit="650W", persistence=True, deadline_s=20, **more)


def whole(root: str) -> dict[str, Any]:
    """Everything an apply touches."""
    shown = gpu_power.show(root)
    assert not shown["failed"], shown["msg"]
    files = {path: durable.content(root, path) for path in FILES}
    modes = {
        path: stat.S_IMODE(Path(root + path).stat().st_mode)
        for path, text in files.items()
        if text is not None
    }
    return {
        "gpus": {one["address"]: (one["limit_w"], one["persistence"]) for one in shown["gpus"]},
        "files": files,
        "modes": modes,
        "enabled": os.path.lexists(root + power_unit.ENABLED_LINK),
    }


def fresh(root: str) -> None:
    """nodeprep was never here."""


def configured(root: str) -> None:
    """An earlier apply, on GPUs of which somebody has set one to something else since."""
    done = gpu_power.apply(root, limit="500W", persistence=None, deadline_s=20)
    assert done["persisted"] is True, done
    other = hardware.SimulatedGpu(address=FIRST)
    by_hand = gpu_power_nvml.Change(FIRST, other.uuid, "limit", 500_000, 450_000)
    assert gpu_power_nvml.write(root, [by_hand], 10).problem == ""


Fault = Callable[[str, Systemctl, pytest.MonkeyPatch], None]


def reinstall(*gpus: hardware.SimulatedGpu) -> Fault:
    def put(root: str, _systemctl: Systemctl, _monkeypatch: pytest.MonkeyPatch) -> None:
        hardware.install(Path(root), gpus)

    return put


def refuse(verb: str, words: str) -> Fault:
    """systemd refuses something, once: the way back is open."""

    def put(_root: str, systemctl: Systemctl, monkeypatch: pytest.MonkeyPatch) -> None:
        systemctl.refuses[verb] = words
        start = power_rollback.roll_back

        def mended(*arguments: Any, **more: Any) -> power_rollback.Undone:
            systemctl.refuses.clear()
            return start(*arguments, **more)

        monkeypatch.setattr(gpu_power, "roll_back", mended)

    return put


def full_disk_at(place: str) -> Fault:
    def put(_root: str, _systemctl: Systemctl, monkeypatch: pytest.MonkeyPatch) -> None:
        real = durable.put

        def full(root: str, path: str, text: str | None, mode: int = 0o644) -> None:
            if path == place and text is not None:
                raise OSError(28, "No space left on device")
            real(root, path, text, mode)

        monkeypatch.setattr(durable, "put", full)

    return put


def lost_at_confirmation(_root: str, _systemctl: Systemctl, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    real = gpu_power.read

    def read(root: str, deadline_s: float) -> gpu_power_nvml.Snapshot:
        calls.append(1)
        found = real(root, deadline_s)
        return gpu_power_nvml.Snapshot(found.gpus[:1], "") if len(calls) == 2 else found

    monkeypatch.setattr(gpu_power, "read", read)


def no_mode() -> hardware.SimulatedGpu:
    return gpu(SECOND, hardware.call_error(SET_MODE, 4), persistence=False)


POINTS: dict[str, tuple[Fault, str]] = {
    "restore point": (full_disk_at(power_restore.PATH), "No space left on device"),
    "configuration": (full_disk_at(power_unit.CONFIG), "No space left on device"),
    "unit file": (full_disk_at(power_unit.UNIT_FILE), "No space left on device"),
    "drop-in": (full_disk_at(power_unit.DROP_IN), "No space left on device"),
    "systemd reads its files": (refuse("daemon-reload", "Connection timed out"), "Connection timed out"),
    "the daemon restarts": (refuse("try-restart", "Job failed"), "systemctl try-restart nvidia-persistenced"),
    "persistence": (reinstall(gpu(FIRST), no_mode()), f"persistence of {SECOND} on: {SET_MODE}"),
    "limit": (
        reinstall(gpu(FIRST), gpu(SECOND, hardware.call_error(SET_LIMIT, 4), persistence=False)),
        "root rights are needed",
    ),
    "limit that hangs": (
        reinstall(gpu(FIRST), gpu(SECOND, hardware.hang(SET_LIMIT), persistence=False)),
        f"NVML hung in {SET_LIMIT} on {SECOND}",
    ),
    "cap from outside": (
        reinstall(gpu(FIRST, hardware.capped(480)), gpu(SECOND, persistence=False)),
        f"{FIRST}: 650 W are requested and 480 W enforced: capped out of band",
    ),
    "a GPU gone at confirmation": (lost_at_confirmation, f"{SECOND} no longer answers"),
    "enabling": (refuse("enable", "Access denied"), "would not survive a reboot: systemctl enable"),
    "starting": (refuse("restart", "Job failed"), "would not survive a reboot: systemctl restart"),
}


# What an earlier apply has written already is not written again.
NEVER_AGAIN = ("restore point", "unit file", "persistence")
CASES = [
    *(pytest.param(fresh, *POINTS[name], id=f"{name}, fresh") for name in POINTS),
    *(
        pytest.param(configured, *POINTS[name], id=f"{name}, configured")
        for name in POINTS
        if name not in NEVER_AGAIN
    ),
]


@pytest.mark.parametrize(("earlier", "put_fault", "words"), CASES)
def test_everything_goes_back_wherever_it_fails(
    earlier: Callable[[str], None],
    put_fault: Fault,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    root = prepare(str(tmp_path), gpu(FIRST), gpu(SECOND, persistence=earlier is configured))
    systemctl = Systemctl(monkeypatch, root)
    earlier(root)
    before, unit = whole(root), systemctl.unit
    put_fault(root, systemctl, monkeypatch)
    deadline_s = 1.0 if "hung" in words else 20.0
    result = gpu_power.apply(root, limit="650W", persistence=True, deadline_s=deadline_s)
    assert (result["failed"], result["changed"], result["left_behind"]) == (True, False, []), result["msg"]
    assert words in result["msg"]
    assert result["persisted"] is False
    assert words in result["persisted_reason"]
    assert result["diff"] == {"before": "", "after": ""}
    assert (whole(root), systemctl.unit) == (before, unit)
    assert (", ".join(result["rolled_back"]) or "nothing was changed") in result["msg"]


def test_what_was_rolled_back_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = prepare(str(tmp_path))
    systemctl = Systemctl(monkeypatch, root)
    refuse("restart", "Job failed")(root, systemctl, monkeypatch)
    assert change(root)["rolled_back"] == [
        f"{power_unit.UNIT} not enabled",
        f"{power_unit.CONFIG} absent",
        f"{power_unit.UNIT_FILE} absent",
        f"{power_unit.DROP_IN} absent",
        f"{FIRST} power limit 700 W",
        f"{SECOND} power limit 700 W",
        f"{SECOND} persistence off",
    ]
    assert systemctl.calls[-6:] == [
        ["stop", power_unit.UNIT],
        ["is-failed", "--quiet", power_unit.UNIT],
        ["reset-failed", power_unit.UNIT],
        ["disable", power_unit.UNIT],
        ["daemon-reload"],
        ["try-restart", power_unit.PERSISTENCED],
    ]


def test_a_unit_that_ran_runs_again_with_its_old_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = prepare(str(tmp_path), gpu(FIRST), gpu(SECOND))
    systemctl = Systemctl(monkeypatch, root)
    configured(root)
    refuse("restart", "Job failed")(root, systemctl, monkeypatch)
    systemctl.calls.clear()
    result = change(root)
    assert "power limit 450 W" in result["msg"]
    assert systemctl.unit == "active"
    after_the_failure = systemctl.calls[systemctl.calls.index(["restart", power_unit.UNIT]) + 1 :]
    assert after_the_failure == [
        ["daemon-reload"],
        ["try-restart", power_unit.PERSISTENCED],
        ["restart", power_unit.UNIT],
    ]


def test_a_unit_that_had_failed_before_is_left_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = prepare(str(tmp_path), gpu(FIRST), gpu(SECOND))
    systemctl = Systemctl(monkeypatch, root)
    configured(root)
    systemctl.unit = "failed"
    refuse("restart", "Job failed")(root, systemctl, monkeypatch)
    assert change(root)["left_behind"] == []
    assert systemctl.unit == "failed"
    assert os.path.lexists(root + power_unit.ENABLED_LINK)


def test_a_simulated_root_goes_back_as_well(tmp_path: Path) -> None:
    root = prepare(str(tmp_path), gpu(FIRST, hardware.capped(500)), gpu(SECOND))
    before = whole(root)
    result = change(root)
    assert (result["failed"], result["changed"], result["persisted"]) == (True, False, False)
    assert "BMC" in result["hint"]
    # What was seen while the new limit stood is the evidence.
    assert [one["in_effect"] for one in result["gpus"]] == [False, True]
    assert [one["enforced_w"] for one in result["gpus"]] == [500.0, 650.0]
    assert whole(root) == before


def test_a_link_that_cannot_be_made_in_a_simulated_root(tmp_path: Path) -> None:
    root = prepare(str(tmp_path))
    durable.put(root, str(Path(power_unit.ENABLED_LINK).parent), "a file where a folder should be")
    before = whole(root)
    result = change(root)
    assert (result["failed"], result["changed"]) == (True, False)
    assert "would not survive a reboot" in result["msg"]
    assert whole(root) == before


# ---- when the way back is blocked too -----------------------------------------------------------------


def test_a_limit_that_does_not_go_back_is_named_and_the_restore_point_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = prepare(str(tmp_path), gpu(FIRST), gpu(SECOND, hardware.call_error(SET_LIMIT, 4)))
    real = gpu_power_nvml._set

    def one_way(calls: Any, wanted: gpu_power_nvml.Change, value: int) -> None:
        if value == 700_000:
            raise RuntimeError("no way back")
        real(calls, wanted, value)

    monkeypatch.setattr(gpu_power_nvml, "_set", one_way)
    result = change(root)
    assert (result["failed"], result["changed"], result["persisted"]) == (True, True, False)
    (left,) = result["left_behind"]
    assert left.startswith(f"{FIRST} power limit 650 W (power limit of {FIRST} from 650 W to 700 W")
    assert "no way back" in left
    assert f"could not be rolled back: {left}" in result["msg"]
    assert f"{power_unit.CONFIG} absent" in result["rolled_back"]
    assert whole(root)["gpus"] == {FIRST: (650.0, True), SECOND: (700.0, True)}
    assert power_restore.load(root)
    assert result["diff"]["after"]


def test_a_limit_that_is_set_back_and_does_not_stay_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = prepare(str(tmp_path), gpu(FIRST, hardware.capped(500)), gpu(SECOND))
    real = gpu_power_nvml._set

    def deaf(calls: Any, wanted: gpu_power_nvml.Change, value: int) -> None:
        if value != 700_000:
            real(calls, wanted, value)

    monkeypatch.setattr(gpu_power_nvml, "_set", deaf)
    assert change(root)["left_behind"] == [
        f"{FIRST} power limit 650 W (it was set and did not stay)",
        f"{SECOND} power limit 650 W (it was set and did not stay)",
    ]


def test_a_gpu_that_is_gone_for_good_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = prepare(str(tmp_path), gpu(FIRST), gpu(SECOND))
    real = gpu_power.write

    def last_words(*arguments: Any, **more: Any) -> gpu_power_nvml.Written:
        written = real(*arguments, **more)
        hardware.install(Path(root), [gpu(FIRST), gpu(SECOND, hardware.missing())])
        return written

    monkeypatch.setattr(gpu_power, "write", last_words)
    result = change(root)
    assert (result["failed"], result["changed"]) == (True, True)
    assert result["left_behind"] == [
        f"{SECOND}, whose limit and persistence cannot be read now (NVML does not list it)"
    ]
    assert f"{FIRST} power limit 700 W" in result["rolled_back"]


def test_a_file_that_cannot_be_put_back_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = prepare(str(tmp_path), gpu(FIRST), gpu(SECOND))
    configured(root)
    real = durable.put

    def worn_out(root: str, path: str, text: str | None, mode: int = 0o644) -> None:
        if path == power_unit.CONFIG and "500W" in (text or ""):
            raise OSError(30, "Read-only file system")
        real(root, path, text, mode)

    monkeypatch.setattr(durable, "put", worn_out)
    hardware.install(Path(root), [gpu(FIRST, hardware.capped(480)), gpu(SECOND)])
    result = change(root)
    assert result["left_behind"] == [f"{power_unit.CONFIG} ([Errno 30] Read-only file system)"]
    assert (result["changed"], result["persisted"]) == (True, False)
    assert whole(root)["gpus"] == {FIRST: (450.0, True), SECOND: (500.0, True)}


def test_a_systemd_that_refuses_everything_is_quoted_and_the_rest_goes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = prepare(str(tmp_path))
    verbs = ("restart", "stop", "disable", "daemon_reload", "try_restart")
    systemctl = Systemctl(monkeypatch, root)
    before = whole(root)
    start = power_unit.enable

    def enable(root: str) -> None:
        systemctl.refuses.update({verb.replace("_", "-"): "Connection refused" for verb in verbs})
        start(root)

    monkeypatch.setattr(power_unit, "enable", enable)
    result = change(root)
    assert result["left_behind"] == [
        f"systemctl {words}: Connection refused"
        for words in (f"stop {power_unit.UNIT}", "daemon-reload", f"try-restart {power_unit.PERSISTENCED}")
    ]
    after = whole(root)
    assert (after["gpus"], after["enabled"]) == (before["gpus"], False)
    assert [durable.content(root, path) for path in FILES[:3]] == [None, None, None]


def test_a_link_that_cannot_be_taken_away_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = prepare(str(tmp_path))
    systemctl = Systemctl(monkeypatch, root, restart="Job failed", disable="Access denied")
    real = durable.put

    def stuck(root: str, path: str, text: str | None, mode: int = 0o644) -> None:
        if path == power_unit.ENABLED_LINK:
            raise OSError(30, "Read-only file system")
        real(root, path, text, mode)

    monkeypatch.setattr(durable, "put", stuck)
    left = change(root)["left_behind"]
    assert left == [
        f"systemctl disable {power_unit.UNIT}: Access denied",
        f"{power_unit.ENABLED_LINK} ([Errno 30] Read-only file system)",
    ]
    assert systemctl.unit == "inactive"


def test_persistence_goes_on_before_limits_and_off_after_them(tmp_path: Path) -> None:
    root = prepare(str(tmp_path), gpu(FIRST), gpu(SECOND))
    was = gpu_power_nvml.read(root, 10).gpus
    limit = [gpu_power_nvml.Change(one.address, one.uuid, "limit", 700_000, 500_000) for one in was]
    assert gpu_power_nvml.write(root, limit, 10).problem == ""
    mixed = power_restore.entries_of(gpu_power_nvml.read(root, 10).gpus)
    # Persistence off and a new limit: the limit does not stay, and both have to go back.
    result = gpu_power.apply(root, limit="600W", persistence=False, deadline_s=20)
    assert "was set to 600 W and reads 700 W" in result["msg"]
    assert result["left_behind"] == []
    assert power_restore.entries_of(gpu_power_nvml.read(root, 10).gpus) == mixed
    mixed[was[0].uuid]["persistence"] = False
    mixed[was[0].uuid]["limit_mw"] = 700_000
    kinds = [one.what for one in power_restore.changes_back(mixed, gpu_power_nvml.read(root, 10).gpus)]
    assert kinds == ["limit", "persistence"]
