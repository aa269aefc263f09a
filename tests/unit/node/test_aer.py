import pytest

from nodeprep.node import aer
from nodeprep.node.config_space import ConfigSpace
from nodeprep.sim.config_bytes import config_bytes
from nodeprep.sim.hgx import gpu

ENDPOINT = gpu(0x1B).hops[-1]


def readable():
    return ConfigSpace(config_bytes(ENDPOINT))


def test_the_last_blank_divides_name_and_count():
    text = "Receiver Error 3\nRELAY_NUM Rollover 12\ndev_cor_errs_bit[9] 1\nTOTAL_ERR_COR 99\n"
    assert aer.parse_counters(text) == {
        "Receiver Error": 3,
        "RELAY_NUM Rollover": 12,
        "dev_cor_errs_bit[9]": 1,
    }


@pytest.mark.parametrize("text", ["", "RxErr", "RxErr many", "TOTAL_ERR_COR 0"])
def test_a_file_in_another_form_is_an_error_not_zero(text):
    with pytest.raises(ValueError, match="AER counter"):
        aer.parse_counters(text)


def test_missing_files_say_that_the_kernel_keeps_no_counters(tmp_path):
    found = aer.collect(str(tmp_path), "/sys/x", readable)
    assert found["correctable"]["state"] == "not_supported"
    assert "built without PCIe AER" in found["correctable"]["detail"]
    assert found["rootport_fatal"]["state"] == "not_supported"


def test_missing_files_of_a_device_without_the_capability(tmp_path):
    data = bytearray(config_bytes(ENDPOINT))
    data[0x100:0x104] = bytes(4)
    found = aer.collect(str(tmp_path), "/sys/x", lambda: ConfigSpace(bytes(data)))
    assert found["fatal"]["detail"] == "the device has no AER capability"


def test_unreadable_configuration_space_is_told_apart(tmp_path):
    def refused():
        raise PermissionError(13, "Permission denied", "/sys/x/config")

    found = aer.collect(str(tmp_path), "/sys/x", refused)
    assert "capability unknown" in found["correctable"]["detail"]
    assert found["reporting"] == {"state": "error", "detail": "needs root: /sys/x/config"}


def test_a_counter_file_full_of_nonsense_is_an_error(tmp_path):
    (tmp_path / "sys/x").mkdir(parents=True)
    (tmp_path / "sys/x/aer_dev_fatal").write_text("<error>\n")
    assert aer.collect(str(tmp_path), "/sys/x", readable)["fatal"]["state"] == "error"
