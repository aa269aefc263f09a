from nodeprep.node import boot


def test_arguments_after_a_double_dash_belong_to_init():
    assert boot.kernel_arguments("quiet pci=noaer -- pcie_ports=native") == ["quiet", "pci=noaer"]


def test_an_empty_boot_id_is_an_error(tmp_path):
    path = tmp_path / "proc/sys/kernel/random/boot_id"
    path.parent.mkdir(parents=True)
    path.write_text("\n")
    found = boot.collect(str(tmp_path))
    assert found["boot_id"]["state"] == "error"
    assert found["uptime_s"]["state"] == "error"
    assert boot.hostname(str(tmp_path)) == ""
