"""The NVML collector against the simulated driver library, underneath the real nvidia-ml-py."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from nvml_root import FIRST, SECOND, THIRD, gpu, root_with

from nodeprep.model import codec
from nodeprep.model.facts import Gpu, Nvml
from nodeprep.node import nvml, nvml_library
from nodeprep.sim import hardware
from nodeprep.sim.simulated_nvml import Library


def observe(root: str, deadline_s: float = 10.0) -> Nvml:
    return codec.from_builtins(nvml.collect(root, deadline_s), Nvml, source="test")


def only(found: Nvml) -> Gpu:
    (one,) = found.gpus.require("GPUs")
    return one


def test_everything_a_healthy_h100_says(tmp_path: Path) -> None:
    found = observe(root_with(tmp_path, gpu()))
    assert found.driver_version.value == "580.159.04"
    assert found.library_version.value == "13.580.159.04"
    assert found.cuda_version.value == "13.0"
    assert found.partial == ()
    one = only(found)
    assert (one.pci_address, one.index, one.name.value) == (FIRST, 0, "NVIDIA H100 80GB HBM3")
    assert one.uuid.value == hardware.SimulatedGpu(address=FIRST).uuid
    assert one.pci_device_id.value == "10de:2330"
    assert (one.architecture.value, one.virtualization.value) == ("hopper", "none")
    assert (one.gsp_enabled.value, one.gsp_version.value) == (True, "580.159.04")
    power = one.power
    watts = (power.limit_w, power.requested_w, power.enforced_w, power.default_w, power.min_w, power.max_w)
    assert [reading.value for reading in watts] == [700.0, 700.0, 700.0, 700.0, 200.0, 700.0]
    assert power.draw_w.require("draw") == pytest.approx(71, rel=0.05)
    assert one.temperature.slowdown_tlimit_c.value == -2
    assert one.temperature.margin_c.require("margin") == 87 - one.temperature.gpu_c.require("temperature")
    assert one.ecc.enabled.value is True
    assert one.ecc.sram_threshold_exceeded.value is False
    assert one.remap.histogram.require("histogram").max == 2560
    assert (one.recovery_action.value, one.clocks.event_reasons.value) == (0, 1)
    links = one.nvlinks.require("NVLinks")
    assert [link.index for link in links] == list(range(18))
    assert all(link.active.value and link.crc_errors.value == 0 for link in links)
    fabric = one.fabric.require("fabric")
    assert (fabric.state, fabric.status, fabric.health_mask) == ("completed", 0, 0x1AA)
    assert fabric.health_summary == 1


def _unread(value: object, path: str = "") -> dict[str, str]:
    """Every reading of a document that is not ok: path to state."""
    if isinstance(value, dict):
        if value.get("state") in ("error", "not_supported") and "detail" in value:
            return {path: value["state"]}
        return {at: s for key, item in value.items() for at, s in _unread(item, f"{path}.{key}").items()}
    if isinstance(value, list):
        return {at: s for item in value for at, s in _unread(item, path).items()}
    return {}


def test_an_a100_pcie_lacks_tlimit_fabric_and_nvlink(tmp_path: Path) -> None:
    document = nvml.collect(root_with(tmp_path, gpu(model="a100-pcie")), 10.0)
    lacking = {
        ".fabric",
        ".nvlinks",
        ".temperature.margin_c",
        *(f".temperature.{name}_tlimit_c" for name in ("slowdown", "shutdown", "gpu_max", "memory_max")),
    }
    assert _unread(document["gpus"]["value"][0]) == dict.fromkeys(lacking, "not_supported")


def test_an_h100_sxm_has_everything(tmp_path: Path) -> None:
    document = nvml.collect(root_with(tmp_path, gpu()), 10.0)
    assert _unread(document) == {}


@pytest.mark.parametrize(
    ("bus_id", "address"),
    [
        ("00000000:00:06.0", "0000:00:06.0"),
        ("0000ABCD:C1:00.0", "abcd:c1:00.0"),
        ("00010000:01:00.0", "10000:01:00.0"),
    ],
)
def test_addresses_are_normalised(bus_id: str, address: str) -> None:
    from nodeprep.node.nvml_calls import pci_address

    assert pci_address(bus_id) == address


def test_no_library_is_a_clear_error(tmp_path: Path) -> None:
    found = observe(str(tmp_path))
    for reading in (found.gpus, found.driver_version, found.library_version, found.cuda_version):
        assert reading.state == "error"
        assert reading.detail == (
            "nvmlInit: NVML Shared Library Not Found (NVML error 12): no NVIDIA driver installed?"
        )


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (9, "the NVIDIA kernel module is not loaded"),
        (18, "the driver was upgraded but not reloaded: reboot"),
        (999, "Unknown Error (NVML error 999)"),
    ],
)
def test_a_library_that_does_not_start(tmp_path: Path, code: int, words: str) -> None:
    found = observe(root_with(tmp_path, gpu(), faults=[hardware.call_error("nvmlInitWithFlags", code)]))
    assert found.gpus.state == "error"
    assert words in found.gpus.detail
    assert words in found.driver_version.detail


def test_a_driver_without_gpus_is_an_empty_list(tmp_path: Path) -> None:
    assert observe(root_with(tmp_path)).gpus.value == ()


def test_a_gpu_missing_from_nvml_is_just_not_listed(tmp_path: Path) -> None:
    found = observe(root_with(tmp_path, gpu(FIRST), gpu(SECOND, hardware.missing()), gpu(THIRD)))
    assert [one.pci_address for one in found.gpus.require("GPUs")] == [FIRST, THIRD]


def test_a_hang_names_call_and_gpu_and_keeps_what_was_complete(tmp_path: Path) -> None:
    root = root_with(tmp_path, gpu(FIRST), gpu(SECOND, hardware.hang("nvmlDeviceGetEccMode")), gpu(THIRD))
    started = time.monotonic()
    found = observe(root, 1.0)
    assert time.monotonic() - started < 20
    assert found.gpus.detail == f"NVML hung in nvmlDeviceGetEccMode on {SECOND} for 1 s; killed"
    assert [one.pci_address for one in found.partial] == [FIRST]
    assert found.driver_version.value == "580.159.04"


def test_a_library_that_hangs_at_init(tmp_path: Path) -> None:
    found = observe(root_with(tmp_path, gpu(), faults=[hardware.hang("nvmlInitWithFlags")]), 0.3)
    assert "NVML hung in nvmlInit for" in found.gpus.detail
    assert found.driver_version.state == "error"


def test_a_hung_child_is_gone_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    children: list[int] = []
    fork = os.fork

    def noted() -> int:
        children.append(fork())
        return children[-1]

    monkeypatch.setattr(os, "fork", noted)
    observe(root_with(tmp_path, gpu(FIRST, hardware.hang("nvmlDeviceGetName"))), 0.3)
    (child,) = children
    with pytest.raises(ChildProcessError):
        os.waitpid(child, os.WNOHANG)


def test_a_gpu_without_a_handle_does_not_hide_the_others(tmp_path: Path) -> None:
    lost = hardware.call_error("nvmlDeviceGetHandleByIndex_v2", 15)
    found = observe(root_with(tmp_path, gpu(FIRST), gpu(SECOND, lost), gpu(THIRD)))
    assert [one.pci_address for one in found.gpus.value or ()] == [FIRST, THIRD]
    assert len(found.lost) == 1
    assert found.lost[0].startswith("GPU index 1: nvmlDeviceGetHandleByIndex: GPU is lost (NVML error 15)")


def test_a_gpu_that_cannot_be_opened_for_another_reason_leaves_no_list(tmp_path: Path) -> None:
    refused = hardware.call_error("nvmlDeviceGetHandleByIndex_v2", 4)
    found = observe(root_with(tmp_path, gpu(FIRST), gpu(SECOND, refused), gpu(THIRD)))
    assert found.gpus.state == "error"
    assert "GPU index 1" in found.gpus.detail
    assert [one.pci_address for one in found.partial] == [FIRST, THIRD]
    assert found.lost == ()


def test_a_gpu_that_says_it_is_lost_is_named(tmp_path: Path) -> None:
    fault = hardware.call_error("nvmlDeviceGetPowerUsage", 15)
    found = observe(root_with(tmp_path, gpu(FIRST), gpu(SECOND, fault)))
    assert [words.split(": ")[0] for words in found.lost] == [f"GPU {SECOND}"]


def test_a_call_that_fails_is_an_error_of_its_fact_alone(tmp_path: Path) -> None:
    fault = hardware.call_error("nvmlDeviceGetPowerUsage", 15)
    one = only(observe(root_with(tmp_path, gpu(FIRST, fault))))
    assert one.power.draw_w.detail == (
        "nvmlDeviceGetPowerUsage: GPU is lost (NVML error 15): the GPU has fallen off the bus"
    )
    assert one.power.limit_w.value == 700.0


def test_a_field_that_fails_is_an_error_though_the_call_succeeds(tmp_path: Path) -> None:
    faults = (hardware.field_error(173, 999), hardware.field_error(230, 2), hardware.field_error(95, 2))
    one = only(observe(root_with(tmp_path, gpu(FIRST, *faults))))
    assert one.pcie_errors.correctable.detail == "NVML field 173: Unknown Error (NVML error 999)"
    assert one.recovery_action.state == "not_supported"
    # 95 is as old as any driver in use, so INVALID_ARGUMENT there is no lack of the driver.
    assert one.pcie_errors.replay_rollovers.state == "error"
    assert one.pcie_errors.fatal.value == 0


def test_what_an_older_driver_may_lack_and_what_not(tmp_path: Path) -> None:
    lacks = [
        "nvmlDeviceGetMarginTemperature",
        "nvmlDeviceGetTemperatureV",
        "nvmlDeviceGetCurrentClocksEventReasons",
        "nvmlDeviceGetGpuFabricInfoV",
        "nvmlDeviceGetSramEccErrorStatus",
        "nvmlDeviceGetEccMode",
    ]
    one = only(observe(root_with(tmp_path, gpu(), lacks=lacks)))
    assert one.temperature.margin_c.state == "not_supported"
    assert "absolute thresholds" in one.temperature.margin_c.detail
    assert one.temperature.gpu_c.require("temperature") > 0
    assert one.ecc.sram_threshold_exceeded.state == "not_supported"
    assert one.ecc.enabled.state == "error"
    assert "this driver has no such function" in one.ecc.enabled.detail
    assert one.clocks.event_reasons.value == 1
    assert one.fabric.state == "not_supported"


def test_a_mask_under_neither_name_is_an_error(tmp_path: Path) -> None:
    names = [f"nvmlDeviceGetCurrentClocks{word}Reasons" for word in ("Event", "Throttle")]
    one = only(observe(root_with(tmp_path, gpu(), lacks=names)))
    assert one.clocks.event_reasons.state == "error"


def test_an_older_fabric_structure_is_taken_when_the_newest_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = root_with(tmp_path, gpu())
    library = nvml_library.simulation(root)
    assert library is not None

    def only_v2(_gpu: object, out: object) -> None:
        structure = out._obj  # type: ignore[attr-defined]
        if structure.version != 0x2000024:
            raise library.Refused(25)
        structure.state, structure.status, structure.healthMask = 2, 27, 5

    monkeypatch.setitem(library.DEVICE_ENTRIES, "nvmlDeviceGetGpuFabricInfoV", only_v2)
    fabric = only(observe(root)).fabric.require("fabric")
    assert (fabric.state, fabric.status, fabric.health_mask) == ("in_progress", 27, 5)
    assert fabric.health_summary is None


def test_corrupted_inforom_is_a_value(tmp_path: Path) -> None:
    one = only(observe(root_with(tmp_path, gpu(inforom_valid=False))))
    assert one.inforom_valid.value is False


def test_one_nvlink_down(tmp_path: Path) -> None:
    one = only(observe(root_with(tmp_path, gpu(nvlink__inactive=[3]))))
    assert [link.index for link in one.nvlinks.require("links") if not link.active.value] == [3]


def test_a_crash_of_the_library_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = root_with(tmp_path, gpu())
    library = nvml_library.simulation(root)
    assert library is not None
    entry = "nvmlDeviceGetSerial"
    monkeypatch.setitem(library.DEVICE_ENTRIES, entry, lambda *_: os.kill(os.getpid(), signal.SIGSEGV))
    found = observe(root)
    assert found.gpus.detail == (
        f"the process that called NVML was ended by SIGSEGV in nvmlDeviceGetSerial on {FIRST}"
    )


def test_no_process_can_be_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refuse)
    found = observe(root_with(tmp_path, gpu()))
    assert "could not start a process for NVML" in found.gpus.detail


def test_switching_roots_switches_libraries(tmp_path: Path) -> None:
    one = nvml_library.load(root_with(tmp_path / "a", gpu(FIRST)))
    assert one.nvmlDeviceGetCount() == 1
    two = nvml_library.load(root_with(tmp_path / "b", gpu(FIRST), gpu(SECOND)))
    assert two.nvmlDeviceGetCount() == 2
    with pytest.raises(two.NVMLError):
        nvml_library.load(str(tmp_path / "c"))
    with pytest.raises(two.NVMLError):
        two.nvmlDeviceGetCount()


def test_real_binding_checks_what_the_library_returns(tmp_path: Path) -> None:
    library = Library(root_with(tmp_path, gpu()))
    assert library.nvmlDeviceGetCount_v2(ctypes.byref(ctypes.c_uint())) == 1  # uninitialised
    assert library.nvmlInitWithFlags(0) == 0
    count = ctypes.c_uint()
    assert library.nvmlDeviceGetCount_v2(ctypes.byref(count)) == 0
    assert count.value == 1


def test_it_works_from_inside_a_zip_file(tmp_path: Path) -> None:
    root = root_with(tmp_path / "root", gpu(FIRST), gpu(SECOND, hardware.hang("nvmlDeviceGetName")))
    package = Path(nvml.__file__).parent
    program = tmp_path / "node.pyz"
    with zipfile.ZipFile(program, "w") as archive:
        archive.writestr("nodeprep/__init__.py", "")
        for file in sorted(package.rglob("*.py")):
            archive.write(file, f"nodeprep/node/{file.relative_to(package)}")
        archive.writestr(
            "__main__.py", f"from nodeprep.node import nvml\nprint(nvml.collect({root!r}, 0.5))\n"
        )
    command = [sys.executable, "-I", "-S", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"NVML hung in nvmlDeviceGetName on {SECOND}" in done.stdout
    assert done.stderr == ""
