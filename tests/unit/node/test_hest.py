import struct

import pytest

from nodeprep.node import hest
from nodeprep.node.reading import attempt


def table(*sources):
    return b"HEST".ljust(36, b"\0") + struct.pack("<I", len(sources)) + b"".join(sources)


def source(kind, size, flags=0):
    return struct.pack("<HHHBB", kind, 0, 0, flags, 1).ljust(size, b"\0")


def machine_check(kind, size, count_at, banks):
    data = bytearray(source(kind, size + 28 * banks))
    data[count_at] = banks
    return bytes(data)


BEFORE = (
    machine_check(0, 40, 32, 20),
    machine_check(1, 48, 44, 12),
    source(2, 20),
    source(9, 64, flags=0xFF),
    source(10, 92, flags=0xFF),
    machine_check(11, 48, 44, 3),
)


@pytest.mark.parametrize(("kind", "size"), [(6, 48), (7, 44), (8, 56)])
def test_pcie_sources_are_found_behind_all_others(kind, size):
    assert hest.parse(table(*BEFORE, source(kind, size, flags=1))) is True
    assert hest.parse(table(*BEFORE, source(kind, size, flags=2))) is False


def test_firmware_first_of_other_sources_says_nothing_about_pcie():
    assert hest.parse(table(*BEFORE)) is False


@pytest.mark.parametrize(
    "broken", [b"", b"HEST", table(source(77, 16), source(6, 48)), table(source(6, 48))[:-48]]
)
def test_a_damaged_or_unknown_table_is_an_error_not_false(broken):
    with pytest.raises(ValueError, match="HEST"):
        hest.parse(broken)


def test_a_machine_without_acpi(tmp_path):
    assert attempt(hest.firmware_first, str(tmp_path))["state"] == "not_supported"
