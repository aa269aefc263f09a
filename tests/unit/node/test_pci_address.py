import pytest

from nodeprep.node.pci_address import addresses_in, normalise


@pytest.mark.parametrize(
    ("printed", "wanted"),
    [
        ("0000000B:00:00.0", "000b:00:00.0"),
        ("000b:00:00", "000b:00:00.0"),
        ("0000:9D:00.1", "0000:9d:00.1"),
        ("10000:01:00.0", "10000:01:00.0"),
    ],
)
def test_every_spelling_becomes_the_one_of_sysfs(printed, wanted):
    assert normalise(printed) == wanted


@pytest.mark.parametrize("text", ["", "01:00.0", "0000:01:00.8", "0000:01:00.0 "])
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError, match="not a PCI address"):
        normalise(text)


def test_addresses_of_a_path_are_in_order_and_leave_bridges_out():
    path = "/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0/virtio2/net/eth0"
    assert addresses_in(path) == ["0000:15:01.0", "0000:16:00.0"]
