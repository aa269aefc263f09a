from dataclasses import replace

import pytest

from nodeprep.errors import UsageError
from nodeprep.node import kernel_log, observe, pci
from nodeprep.sim.description import GpuDescription
from nodeprep.sim.root import (
    aer_correctable_text,
    build_root,
    device_folder,
    hgx_node,
    kernel_log_records,
    kmsg_record,
)

SWITCH_PORT = "0000:17:02.0"


def test_the_default_node_is_what_the_default_policy_asks_for(tmp_path):
    facts = observe.collect(str(build_root(tmp_path / "root", hgx_node())))
    assert len(facts["pci"]["gpu_paths"]["value"]) == 8
    assert len(facts["pci"]["devices"]["value"]) == 32
    for device in facts["pci"]["devices"]["value"]:
        assert device["link"]["aspm_enabled"]["value"] == []
        assert set(device["aer"]["reporting"]["value"]) >= {"correctable", "non_fatal", "fatal"}
    arguments = facts["boot"]["cmdline"]["value"].split()
    assert {"pcie_aspm=off", "iommu=off", "pcie_ports=native"} <= set(arguments)
    assert facts["aer_ownership"]["ports_native"]["value"] is True
    assert facts["aer_ownership"]["firmware_first"]["value"] is False
    assert facts["iommu"]["units"]["value"] == []
    assert facts["cpu"]["online"] == facts["cpu"]["present"] == facts["cpu"]["dmi_threads"]


def test_links_are_relative_and_stay_inside(tmp_path):
    root = build_root(
        tmp_path / "root", hgx_node(gpu_count=2, iommu_units=("dmar0",), iommu_group_type="DMA")
    )
    links = [path for path in root.rglob("*") if path.is_symlink()]
    assert len(links) > 20
    for link in links:
        assert not link.readlink().is_absolute()
        assert link.resolve(strict=True).is_relative_to(root.resolve())


def test_a_root_can_be_moved(tmp_path):
    before = observe.collect(str(build_root(tmp_path / "root", hgx_node(gpu_count=1))))
    (tmp_path / "root").rename(tmp_path / "elsewhere")
    after = observe.collect(str(tmp_path / "elsewhere"))
    assert after["pci"] == before["pci"]
    assert after["nics"] == before["nics"]


def test_building_again_replaces_what_changed(tmp_path):
    node = hgx_node(gpu_count=1)
    build_root(tmp_path, node)
    build_root(tmp_path, node.with_device(SWITCH_PORT, sta_width_lanes=8))
    devices = pci.collect(str(tmp_path))["devices"]["value"]
    widths = {device["address"]: device["link"]["sta_width_lanes"]["value"] for device in devices}
    assert widths[SWITCH_PORT] == 8
    assert set(widths.values()) == {8, 16}


def test_gpus_can_share_a_switch(tmp_path):
    first, second = hgx_node(gpu_count=2).gpus
    shared = GpuDescription(hops=(*first.hops[:2], *second.hops[2:]))
    node = replace(hgx_node(gpu_count=2), gpus=(first, shared)).with_device(
        first.hops[1].address, sta_width_lanes=4
    )
    found = pci.collect(str(build_root(tmp_path, node)))
    assert [path["hops"][:2] for path in found["gpu_paths"]["value"]] == [
        ["0000:15:01.0", "0000:16:00.0"]
    ] * 2
    assert len(found["devices"]["value"]) == 6
    assert [gpu.hops[1].sta_width_lanes for gpu in node.gpus] == [4, 4]


def test_an_unknown_device_is_a_usage_error_that_lists_the_known_ones():
    with pytest.raises(UsageError, match="no simulated device") as caught:
        hgx_node(gpu_count=1).with_device("0000:ff:00.0", gone=True)
    assert SWITCH_PORT in caught.value.hint
    with pytest.raises(UsageError, match="no simulated device"):
        device_folder(hgx_node(gpu_count=1), "0000:ff:00.0")


def test_an_overlay_at_the_device_folder_is_what_node_code_reads(tmp_path):
    node = hgx_node(gpu_count=1)
    root = build_root(tmp_path, node)
    counters = root / device_folder(node, SWITCH_PORT) / "aer_dev_correctable"
    counters.write_text(aer_correctable_text({"BadTLP": 412, "Timeout": 7}))
    found = {device["address"]: device for device in pci.collect(str(root))["devices"]["value"]}
    assert found[SWITCH_PORT]["aer"]["correctable"]["value"]["BadTLP"] == 412
    assert counters.read_text().endswith("TOTAL_ERR_COR 419\n")


def test_arguments_can_be_swapped():
    node = hgx_node(gpu_count=1).with_cmdline(add=("iommu=pt",), remove=("iommu=off",))
    assert "iommu=off" not in node.cmdline
    assert node.cmdline.endswith(" iommu=pt")


def test_identities_differ_between_nodes_and_repeat_for_one():
    one, other = hgx_node(hostname="a"), hgx_node(hostname="b")
    assert one.derived_id("boot") == hgx_node(hostname="a").derived_id("boot")
    assert one.derived_id("boot") != other.derived_id("boot")
    assert one.derived_id("boot") != one.derived_id("product")


def test_the_log_counts_on_and_can_have_wrapped(tmp_path):
    node = hgx_node(gpu_count=1)
    records = kernel_log_records(node)
    root = build_root(tmp_path, node)
    with (root / "dev/kmsg").open("a") as log:
        log.write(kmsg_record(len(records), 1, 4, "more"))
    read = kernel_log.read_records(str(root))
    assert [record.sequence for record in read] == list(range(len(records) + 1))
    wrapped = kernel_log_records(replace(node, log_first_sequence=70_000, messages=((6, "late"),)))
    assert wrapped == ["6,70000,700000000,-;late\n"]


def test_a_virtual_machine_can_be_described(tmp_path):
    node = hgx_node(gpu_count=1)
    lone = GpuDescription(hops=node.gpus[0].hops[-1:])
    cpu = replace(node.cpu, hypervisor=True, dmi_threads=None)
    virtual = replace(node, gpus=(lone,), nics=(), cpu=cpu).with_devices(has_aer_counters=False)
    facts = observe.collect(str(build_root(tmp_path, virtual)))
    assert facts["cpu"]["hypervisor"]["value"] is True
    assert facts["cpu"]["dmi_threads"]["state"] == "not_supported"
    (device,) = facts["pci"]["devices"]["value"]
    assert device["aer"]["correctable"]["state"] == "not_supported"
