"""The simulated driver library: load over time, state, faults; and the models it plays."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from nodeprep.node import nvml, nvml_library
from nodeprep.sim import hardware, simulated_nvml
from nodeprep.sim.hardware import SimulatedGpu

ADDRESS, OTHER = "0000:17:00.0", "0000:2a:00.0"


def install(root: Path, *faults: hardware.Fault, **more: Any) -> str:
    hardware.install(
        root, [SimulatedGpu(address=ADDRESS, faults=faults, **more), SimulatedGpu(address=OTHER)]
    )
    return str(root)


def state(root: str, address: str = ADDRESS) -> dict[str, Any]:
    found = nvml.collect(root, 10.0)
    by_address = {gpu["pci_address"]: gpu for gpu in found["gpus"]["value"]}
    return by_address[address]


def value(root: str, part: str, name: str) -> Any:
    return state(root)[part][name]["value"]


def age(root: str, seconds: float) -> None:
    """Lets a load have begun that long ago."""
    for marker in Path(root, simulated_nvml.LOAD).iterdir():
        marker.write_text(repr(time.time() - seconds))


@pytest.mark.parametrize("model", hardware.MODELS)
def test_every_model_answers_everything(tmp_path: Path, model: str) -> None:
    one = state(install(tmp_path, model=model))
    text = json.dumps(one)
    assert '"error"' not in text
    power = {name: found["value"] for name, found in one["power"].items()}
    assert power["min_w"] < power["default_w"] <= power["max_w"]
    assert power["draw_w"] < power["min_w"]


def test_load_and_rest(tmp_path: Path) -> None:
    root = install(tmp_path)
    simulated_nvml.begin_load(root, ADDRESS)
    age(root, 60)
    busy = state(root)
    assert busy["power"]["draw_w"]["value"] == pytest.approx(0.983 * 700, rel=0.03)
    assert busy["temperature"]["gpu_c"]["value"] == pytest.approx(64, abs=2)
    assert busy["temperature"]["memory_c"]["value"] == busy["temperature"]["gpu_c"]["value"] + 4
    assert busy["clocks"]["event_reasons"]["value"] == 4
    assert busy["compute_processes"]["value"] == 1
    assert state(root, OTHER)["clocks"]["event_reasons"]["value"] == 1
    simulated_nvml.end_load(root, ADDRESS)
    rest = state(root)
    assert rest["power"]["draw_w"]["value"] < 80
    assert rest["clocks"]["event_reasons"]["value"] == 1
    # It is still warm: cooling takes its time.
    assert 45 < rest["temperature"]["gpu_c"]["value"] <= 66


def test_several_loads_end_one_by_one(tmp_path: Path) -> None:
    root = install(tmp_path)
    code = (
        "import sys, time; from nodeprep.sim import simulated_nvml as s;"
        "s.begin_load(*sys.argv[1:]); print('on', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", code, root, ADDRESS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "on\n"
        simulated_nvml.begin_load(root)
        assert value(root, "clocks", "event_reasons") == 4
        simulated_nvml.end_load(root)
        assert value(root, "clocks", "event_reasons") == 4
        worker.kill()
    # A killed worker leaves its marker behind; the load ended with it.
    assert list(Path(root, simulated_nvml.LOAD).iterdir())
    assert value(root, "clocks", "event_reasons") == 1


def test_ending_a_load_that_never_began_is_nothing(tmp_path: Path) -> None:
    root = install(tmp_path)
    simulated_nvml.end_load(root)
    assert value(root, "clocks", "event_reasons") == 1


def test_overlay_is_laid_over_the_root_once_a_load(tmp_path: Path) -> None:
    root = install(tmp_path)
    overlay = tmp_path / simulated_nvml.OVERLAY
    counts = Path("sys/devices/pci0000:16/0000:16:01.0/aer_dev_correctable")
    for folder in (overlay / counts.parent, overlay / "dev", tmp_path / counts.parent, tmp_path / "dev"):
        folder.mkdir(parents=True)
    (tmp_path / counts).write_text("RxErr 3\nBadTLP 0\n")
    (tmp_path / "dev/kmsg").write_text("6,1,0,-;before\n")
    (overlay / counts).write_text("BadTLP 512\n")
    (overlay / "dev/kmsg").write_text("4,2,900,-;pcieport 0000:16:01.0: AER: Corrected error received\n")
    simulated_nvml.begin_load(root, ADDRESS)
    simulated_nvml.begin_load(root, OTHER)
    assert (tmp_path / counts).read_text() == "RxErr 3\nBadTLP 512\n"
    lines = (tmp_path / "dev/kmsg").read_text().splitlines()
    assert [line.partition(";")[0] for line in lines] == ["6,1,0,-", "4,2,900,-"]
    simulated_nvml.end_load(root, ADDRESS)
    simulated_nvml.end_load(root, OTHER)
    simulated_nvml.begin_load(root, ADDRESS)
    assert (tmp_path / counts).read_text() == "RxErr 3\nBadTLP 1024\n"
    lines = (tmp_path / "dev/kmsg").read_text().splitlines()
    assert [line.partition(";")[0] for line in lines] == ["6,1,0,-", "4,2,900,-", "4,3,901,-"]
    assert len(lines[2]) > 40


def test_faults_that_show_under_load_only(tmp_path: Path) -> None:
    faults = (
        hardware.trained_down(width_lanes=8, gen=3),
        hardware.throttled(0x40),
        hardware.call_error("nvmlDeviceGetEccMode", 15, under_load=True),
    )
    root = install(tmp_path, *faults)
    idle = state(root)
    assert (idle["link"]["gen"]["value"], idle["link"]["width_lanes"]["value"]) == (5, 16)
    assert idle["clocks"]["event_reasons"]["value"] == 1
    assert idle["ecc"]["enabled"]["value"] is True
    simulated_nvml.begin_load(root)
    age(root, 30)
    busy = state(root)
    simulated_nvml.end_load(root)
    assert (busy["link"]["gen"]["value"], busy["link"]["width_lanes"]["value"]) == (3, 8)
    assert busy["link"]["max_width_lanes"]["value"] == 16
    assert busy["clocks"]["event_reasons"]["value"] == 0x44
    assert busy["clocks"]["sm_mhz"]["value"] < 1100
    assert busy["power"]["draw_w"]["value"] < 450
    assert busy["ecc"]["enabled"]["state"] == "error"


def test_faults_that_always_show(tmp_path: Path) -> None:
    faults = (
        hardware.remapped(pending=True),
        hardware.uncorrected_ecc(3),
        hardware.recovery_action(2),
        hardware.capped(500),
    )
    one = state(install(tmp_path, *faults))
    assert one["remap"]["pending"]["value"] is True
    assert one["remap"]["failure"]["value"] is False
    assert one["ecc"]["volatile_uncorrected"]["value"] == 3
    assert one["recovery_action"]["value"] == 2
    assert (one["power"]["limit_w"]["value"], one["power"]["enforced_w"]["value"]) == (700.0, 500.0)


def test_a_counter_that_climbs_under_load(tmp_path: Path) -> None:
    root = install(tmp_path, hardware.rate("pcie_errors.replays", 10))
    assert value(root, "pcie_errors", "replays") == 0
    simulated_nvml.begin_load(root)
    age(root, 30)
    assert value(root, "pcie_errors", "replays") == pytest.approx(300, abs=30)
    simulated_nvml.end_load(root)
    after = value(root, "pcie_errors", "replays")
    assert after == pytest.approx(300, abs=50)
    assert value(root, "pcie_errors", "replays") == after


def test_a_hot_gpu_runs_out_of_margin(tmp_path: Path) -> None:
    root = install(tmp_path, hardware.hot(88))
    simulated_nvml.begin_load(root)
    age(root, 120)
    assert value(root, "temperature", "margin_c") <= 0
    simulated_nvml.end_load(root)


def test_flips_are_data_for_the_probe(tmp_path: Path) -> None:
    root = install(tmp_path, hardware.flip(block=7, bit=3, iteration=2))
    assert simulated_nvml.flips(root) == [{"address": ADDRESS, "block": 7, "bit": 3, "iteration": 2}]
    library = nvml_library.simulation(root)
    assert library is not None
    assert library.flips(root) == simulated_nvml.flips(root)


def test_driver_state_is_lost_with_a_reboot(tmp_path: Path) -> None:
    root = install(tmp_path)
    pynvml = nvml_library.load(root)
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    pynvml.nvmlDeviceSetPowerManagementLimit(handle, 650_000)
    assert value(root, "power", "limit_w") == 650.0
    with pytest.raises(pynvml.NVMLError_InvalidArgument):
        pynvml.nvmlDeviceSetPowerManagementLimit(handle, 701_000)
    (tmp_path / simulated_nvml.STATE).unlink()
    assert value(root, "power", "limit_w") == 700.0


def test_it_stands_alone_in_a_root(tmp_path: Path) -> None:
    root = install(tmp_path)
    library = tmp_path / nvml_library.SIMULATED_LIBRARY
    code = f"import runpy; print(len(runpy.run_path({str(library)!r})['Library']({root!r})._gpus))"
    env = {"PATH": os.environ["PATH"]}
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, env=env, check=True
    )
    assert done.stdout == "2\n"
    assert not list(tmp_path.rglob("__pycache__"))


def test_identity_is_stable_and_differs(tmp_path: Path) -> None:
    one, same = (SimulatedGpu(address=ADDRESS, seed="node1") for _ in range(2))
    other = SimulatedGpu(address=ADDRESS, seed="node2")
    assert (one.uuid, one.serial) == (same.uuid, same.serial)
    assert one.uuid != other.uuid
    assert one.serial != other.serial
    assert len(one.serial) == 13
    assert one.device_id == "10de:2330"


@pytest.mark.parametrize(
    "gpu",
    [
        SimulatedGpu(address=ADDRESS, model="h900"),
        SimulatedGpu(address=ADDRESS, values={"link.lanes": 8}),
        SimulatedGpu(address=ADDRESS, faults=(hardware.values({"temperature.core": 90}),)),
    ],
)
def test_what_does_not_exist_is_refused(tmp_path: Path, gpu: SimulatedGpu) -> None:
    with pytest.raises(ValueError, match=r"no simulated GPU model|has no value"):
        hardware.install(tmp_path, [gpu])
