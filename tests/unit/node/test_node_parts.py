"""Memory, DMI identity, network and IOMMU."""

from dataclasses import replace

import pytest

from nodeprep.node import dmi, iommu, memory, net
from nodeprep.node.reading import ok
from nodeprep.sim.description import GIB, MemoryDescription
from nodeprep.sim.root import build_root, hgx_node


def test_memory_of_the_kernel_and_of_firmware(tmp_path):
    size = MemoryDescription(total_bytes=1000 * GIB, modules=16, module_bytes=64 * GIB)
    root = str(build_root(tmp_path, hgx_node(gpu_count=1, memory=size)))
    assert memory.collect(root) == {"total_bytes": ok(1000 * GIB), "dmi_installed_bytes": ok(1024 * GIB)}


def test_meminfo_without_a_total_is_an_error(tmp_path):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemFree: 12 kB\n")
    assert memory.collect(str(tmp_path))["total_bytes"]["state"] == "error"


def test_identity_strings(tmp_path):
    found = dmi.collect(str(build_root(tmp_path, hgx_node(hostname="n7", gpu_count=1))))
    assert found["product_serial"] == ok("SIM-n7")
    assert {reading["state"] for reading in found.values()} == {"ok"}


def test_a_string_firmware_left_out_and_a_machine_without_dmi(tmp_path):
    root = build_root(tmp_path, hgx_node(gpu_count=1))
    (root / "sys/class/dmi/id/board_serial").unlink()
    assert dmi.collect(str(root))["board_serial"]["state"] == "not_supported"
    assert dmi.collect(str(tmp_path / "empty"))["sys_vendor"]["detail"] == "the machine has no DMI identity"


def test_interfaces_with_a_device(tmp_path):
    nics = net.collect(str(build_root(tmp_path, hgx_node(gpu_count=1))))
    assert [nic["name"] for nic in nics] == ["eno1", "enp24s0np0"]
    assert nics[1]["pci_address"] == ok("0000:18:00.0")
    assert nics[1]["driver"] == ok("mlx5_core")
    assert nics[1]["mac"] == ok("02:00:00:00:01:1b")


def test_a_virtio_interface_and_one_that_is_not_on_pci(tmp_path):
    for path in ("pci0000:00/0000:00:03.0/virtio2", "platform/eth-soc"):
        (tmp_path / "sys/devices" / path).mkdir(parents=True)
    for name, path in (("eth0", "pci0000:00/0000:00:03.0/virtio2"), ("soc0", "platform/eth-soc")):
        folder = tmp_path / "sys/class/net" / name
        folder.mkdir(parents=True)
        (folder / "device").symlink_to(f"../../../devices/{path}")
    first, second = net.collect(str(tmp_path))
    assert first["pci_address"] == ok("0000:00:03.0")
    assert first["driver"]["state"] == "not_supported"
    assert first["mac"]["state"] == "error"
    assert second["pci_address"]["state"] == "not_supported"


def test_an_iommu_that_is_off(tmp_path):
    found = iommu.collect(str(build_root(tmp_path, hgx_node(gpu_count=1))))
    assert found == {"units": ok([]), "groups": ok(0), "group_types": ok({})}


@pytest.mark.parametrize("kind", ["identity", "DMA-FQ"])
def test_an_iommu_that_is_on(tmp_path, kind):
    node = replace(hgx_node(gpu_count=2), iommu_units=("dmar0", "dmar1"), iommu_group_type=kind)
    found = iommu.collect(str(build_root(tmp_path, node)))
    assert found == {"units": ok(["dmar0", "dmar1"]), "groups": ok(8), "group_types": ok({kind: 8})}


def test_a_kernel_without_iommu_support(tmp_path):
    for folder in ("sys/class", "sys/kernel"):
        (tmp_path / folder).mkdir(parents=True)
    assert {reading["state"] for reading in iommu.collect(str(tmp_path)).values()} == {"not_supported"}


def test_without_sysfs_nothing_is_known(tmp_path):
    assert {reading["state"] for reading in iommu.collect(str(tmp_path)).values()} == {"error"}


def test_a_kernel_that_does_not_tell_group_types(tmp_path):
    node = replace(hgx_node(gpu_count=1), iommu_units=("dmar0",), iommu_group_type="DMA")
    root = build_root(tmp_path, node)
    (root / "sys/kernel/iommu_groups/2/type").unlink()
    found = iommu.collect(str(root))
    assert found["groups"] == ok(4)
    assert found["group_types"]["state"] == "not_supported"
