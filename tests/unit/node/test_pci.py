import json
import shutil
from pathlib import Path

import pytest

from nodeprep.node import pci
from nodeprep.sim.root import build_root, device_folder, hgx_node

REAL = json.loads((Path(__file__).parent / "data/h200_passthrough_vm.json").read_text())
NODE = hgx_node(gpu_count=2)
GPU, ROOT_PORT, SWITCH_PORT = "0000:1b:00.0", "0000:15:01.0", "0000:17:02.0"


def observed(tmp_path, node=NODE, **options):
    return pci.collect(str(build_root(tmp_path / "root", node)), **options)


def device_in(found, address):
    return next(device for device in found["devices"]["value"] if device["address"] == address)


def test_every_hop_from_the_root_port_down(tmp_path):
    found = observed(tmp_path)
    assert found["gpu_paths"]["value"] == [
        {"gpu": GPU, "hops": [ROOT_PORT, "0000:16:00.0", SWITCH_PORT, GPU]},
        {"gpu": "0000:43:00.0", "hops": ["0000:3d:01.0", "0000:3e:00.0", "0000:3f:02.0", "0000:43:00.0"]},
    ]
    assert len(found["devices"]["value"]) == 8
    port_types = [
        device_in(found, hop)["port_type"]["value"] for hop in found["gpu_paths"]["value"][0]["hops"]
    ]
    assert port_types == ["root_port", "upstream_port", "downstream_port", "endpoint"]


def test_a_gpu_straight_on_a_root_port(tmp_path):
    found = observed(tmp_path, hgx_node(gpu_count=1, with_switch=False))
    assert found["gpu_paths"]["value"][0]["hops"] == [ROOT_PORT, GPU]


def test_what_one_hop_differs_in_shows_on_that_hop_only(tmp_path):
    node = NODE.with_device(
        SWITCH_PORT, sta_width_lanes=8, aspm_enabled=("L1",), correctable={"BadTLP": 41, "RxErr": 2}
    ).with_device(ROOT_PORT, rootport_totals=(43, 0, 1))
    found = observed(tmp_path, node)
    port, above, below = (device_in(found, at) for at in (SWITCH_PORT, ROOT_PORT, GPU))
    assert port["link"]["sta_width_lanes"]["value"] == 8
    assert port["link"]["aspm_enabled"]["value"] == ["L1"]
    assert (port["aer"]["correctable"]["value"]["BadTLP"], port["aer"]["correctable"]["value"]["RxErr"]) == (
        41,
        2,
    )
    assert above["aer"]["rootport_correctable"]["value"] == 43
    assert above["aer"]["rootport_fatal"]["value"] == 1
    assert below["link"]["sta_width_lanes"]["value"] == 16
    assert below["aer"]["rootport_fatal"]["state"] == "not_supported"
    assert sum(below["aer"]["correctable"]["value"].values()) == 0


def test_a_gpu_that_fell_off_the_bus_stays_on_the_list_with_errors(tmp_path):
    found = observed(tmp_path, NODE.with_device(GPU, gone=True))
    gpu = device_in(found, GPU)
    assert len(found["gpu_paths"]["value"]) == 2
    assert {gpu["link"][name]["state"] for name in gpu["link"]} == {"error"}
    assert "no longer answers" in gpu["port_type"]["detail"]


def test_without_root_speed_and_width_come_from_sysfs_and_aspm_needs_root(tmp_path):
    found = observed(tmp_path, NODE.with_devices(config_bytes=64, sta_speed_gts=2.5))
    link = device_in(found, GPU)["link"]
    assert link["sta_speed_gts"] == {"state": "ok", "value": 2.5}
    assert link["cap_width_lanes"] == {"state": "ok", "value": 16}
    assert link["aspm_enabled"]["state"] == "error"
    assert link["aspm_enabled"]["detail"].startswith("needs root")
    assert device_in(found, GPU)["port_type"]["detail"].startswith("needs root")


def test_without_root_and_without_sysfs_attributes_it_still_needs_root(tmp_path):
    node = NODE.with_devices(config_bytes=64)
    root = build_root(tmp_path / "root", node)
    (root / device_folder(node, GPU) / "current_link_speed").write_text("Unknown\n")
    link = device_in(pci.collect(str(root)), GPU)["link"]
    assert link["sta_speed_gts"]["state"] == "error"
    assert link["sta_speed_gts"]["detail"].startswith("needs root")


def test_a_real_passthrough_machine_has_a_single_hop(tmp_path):
    folder = tmp_path / "sys/devices/pci0000:00" / REAL["address"]
    folder.mkdir(parents=True)
    for name, content in REAL["files"].items():
        (folder / name).write_text(content + "\n")
    (folder / "config").write_bytes(bytes.fromhex(REAL["config_hex"]).ljust(4096, b"\0"))
    bus = tmp_path / "sys/bus/pci/devices"
    bus.mkdir(parents=True)
    (bus / REAL["address"]).symlink_to(f"../../../devices/pci0000:00/{REAL['address']}")
    found = pci.collect(str(tmp_path))
    (gpu,) = found["devices"]["value"]
    assert found["gpu_paths"]["value"] == [{"gpu": REAL["address"], "hops": [REAL["address"]]}]
    assert gpu["device_id"] == "2335"
    assert gpu["link"]["sta_speed_gts"]["value"] == 32.0
    assert gpu["aer"]["correctable"]["state"] == "not_supported"
    assert "built without PCIe AER" in gpu["aer"]["correctable"]["detail"]
    assert gpu["iommu_group"]["state"] == "not_supported"
    assert gpu["driver"] == {"state": "ok", "value": ""}


def test_the_last_host_bridge_of_a_path_counts(tmp_path):
    below = tmp_path / "sys/devices/pci0000:5d/0000:5d:05.5/pci10000:00/10000:00:02.0/10000:01:00.0"
    below.mkdir(parents=True)
    bus = tmp_path / "sys/bus/pci/devices"
    bus.mkdir(parents=True)
    (bus / "10000:01:00.0").symlink_to(below)
    assert pci.hops(str(tmp_path), "10000:01:00.0") == ["10000:00:02.0", "10000:01:00.0"]


def test_stand_in_devices_count_as_gpus_when_asked(tmp_path):
    node = NODE.with_device(GPU, vendor_id="8086", device_id="0d93", class_code="050210")
    assert [path["gpu"] for path in observed(tmp_path, node)["gpu_paths"]["value"]] == ["0000:43:00.0"]
    found = pci.collect(str(tmp_path / "root"), gpu_ids=["8086:0D93"])
    assert [path["gpu"] for path in found["gpu_paths"]["value"]] == [GPU, "0000:43:00.0"]


def test_other_nvidia_functions_are_no_gpus(tmp_path):
    found = observed(tmp_path, NODE.with_device(GPU, class_code="040300"))
    assert [path["gpu"] for path in found["gpu_paths"]["value"]] == ["0000:43:00.0"]


def test_a_device_that_cannot_be_identified_might_be_a_gpu(tmp_path):
    root = build_root(tmp_path / "root", NODE)
    (root / device_folder(NODE, GPU) / "vendor").unlink()
    found = pci.collect(str(root))
    assert found["gpu_paths"]["state"] == "error"
    assert found["devices"]["state"] == "error"


def test_no_pci_bus_is_an_error_and_no_gpu_is_an_empty_list(tmp_path):
    root = build_root(tmp_path / "root", hgx_node(gpu_count=0))
    assert pci.collect(str(root))["gpu_paths"] == {"state": "ok", "value": []}
    shutil.rmtree(root / "sys/bus")
    assert pci.collect(str(root))["gpu_paths"]["state"] == "error"


@pytest.mark.parametrize(
    ("text", "speed"), [("32.0 GT/s PCIe", 32.0), ("8 GT/s", 8.0), ("2.5 GT/s PCIe", 2.5)]
)
def test_speeds_of_all_kernels(text, speed):
    assert pci.parse_speed_gts(text) == speed


def test_an_unknown_speed_is_refused():
    with pytest.raises(ValueError, match="Unknown"):
        pci.parse_speed_gts("Unknown")
