import subprocess
from dataclasses import replace

import pytest

from nodeprep.node import driver
from nodeprep.node.reading import ok
from nodeprep.sim.description import DriverDescription
from nodeprep.sim.root import build_root, hgx_node


def collected(tmp_path, **changes):
    node = hgx_node(gpu_count=1, driver=replace(DriverDescription(), **changes))
    return driver.collect(str(build_root(tmp_path, node)))


@pytest.mark.parametrize("is_open", [True, False])
def test_open_and_closed_module(tmp_path, is_open):
    found = collected(tmp_path, version="535.129.03", open_module=is_open)
    assert found["nvidia_version"] == ok("535.129.03")
    assert found["nvidia_open"] == ok(is_open)


def test_no_module_loaded(tmp_path):
    found = collected(tmp_path, version=None)
    assert found["nvidia_version"]["state"] == "not_supported"
    assert found["nvidia_open"]["state"] == "not_supported"
    assert found["nvidia_disk_version"]["state"] == "ok"


def test_a_module_that_gives_no_proc_file_still_has_a_version(tmp_path):
    root = build_root(tmp_path, hgx_node(gpu_count=1))
    (root / "proc/driver/nvidia/version").unlink()
    found = driver.collect(str(root))
    assert found["nvidia_version"]["value"] == DriverDescription().version
    assert found["nvidia_open"]["state"] == "error"


def test_an_upgrade_on_disk_shows(tmp_path):
    found = collected(tmp_path, disk_version="590.44.01")
    assert found["nvidia_disk_version"] == ok("590.44.01")


def test_nothing_on_disk(tmp_path):
    assert collected(tmp_path, disk_version=None)["nvidia_disk_version"]["state"] == "not_supported"


def test_a_compressed_module_without_modinfo_is_an_error(tmp_path):
    node = hgx_node(gpu_count=1, driver=DriverDescription(disk_version=None))
    root = build_root(tmp_path, node)
    folder = root / "lib/modules" / node.kernel_release / "updates"
    folder.mkdir(parents=True)
    (folder / "nvidia.ko.zst").write_bytes(b"\x28\xb5\x2f\xfd")
    assert "compressed" in driver.collect(str(root))["nvidia_disk_version"]["detail"]


@pytest.mark.parametrize(
    ("answer", "state", "words"),
    [
        (subprocess.CompletedProcess([], 0, "580.95.05\n", ""), "ok", "580.95.05"),
        (
            subprocess.CompletedProcess([], 1, "", "modinfo: ERROR: Module nvidia not found."),
            "not_supported",
            "no nvidia module file",
        ),
        (subprocess.CompletedProcess([], 1, "", "modinfo: ERROR: bad magic"), "error", "bad magic"),
        (subprocess.CompletedProcess([], 0, "", ""), "error", "no version"),
        (subprocess.TimeoutExpired("modinfo", 10), "error", "did not answer"),
    ],
)
def test_answers_of_modinfo(monkeypatch, tmp_path, answer, state, words):
    def run(*arguments, **options):
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(driver, "_modinfo", lambda root: "/sbin/modinfo")
    monkeypatch.setattr(subprocess, "run", run)
    reading = driver.collect(str(tmp_path))["nvidia_disk_version"]
    assert reading["state"] == state
    assert words in reading.get("value", reading.get("detail"))


@pytest.mark.parametrize("loaded", [True, False])
def test_nouveau(tmp_path, loaded):
    assert collected(tmp_path, nouveau=loaded)["nouveau_loaded"] == ok(loaded)


def test_an_unreadable_module_list_is_an_error(tmp_path):
    assert driver.collect(str(tmp_path))["nouveau_loaded"]["state"] == "error"


def test_the_daemon_of_ubuntu_runs_without_persistence(tmp_path):
    found = collected(tmp_path, persistenced=("/usr/bin/nvidia-persistenced", "--no-persistence-mode"))
    assert found["persistenced_running"] == ok(True)
    assert found["persistenced_no_persistence_mode"] == ok(True)


def test_a_daemon_with_persistence(tmp_path):
    found = collected(tmp_path)
    assert found["persistenced_running"] == ok(True)
    assert found["persistenced_no_persistence_mode"] == ok(False)


def test_no_daemon(tmp_path):
    found = collected(tmp_path, persistenced=None)
    assert found["persistenced_running"] == ok(False)
    assert found["persistenced_no_persistence_mode"]["state"] == "not_supported"


def test_hidden_processes_are_not_absent_ones(tmp_path, monkeypatch):
    root = build_root(tmp_path, hgx_node(gpu_count=1))
    (root / "proc/1/cmdline").unlink()
    (root / "proc/1").rmdir()
    monkeypatch.setattr(driver, "is_real", lambda root: True)
    monkeypatch.setattr(driver, "_modinfo", lambda root: None)
    found = driver.collect(str(root))
    assert found["persistenced_running"]["state"] == "error"
    assert "hides" in found["persistenced_running"]["detail"]
    assert found["persistenced_no_persistence_mode"]["state"] == "error"
