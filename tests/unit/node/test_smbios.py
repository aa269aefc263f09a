import struct

import pytest

from nodeprep.node import smbios
from nodeprep.node.reading import NotSupported, attempt

END = bytes((127, 4, 0, 0)) + b"\0\0"


@pytest.fixture
def table(tmp_path):
    def write(*structures):
        path = tmp_path / "sys/firmware/dmi/tables/DMI"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(structures) + END)
        return str(tmp_path)

    return write


def processor(*, threads=112, threads2=None, enabled=None, populated=True, strings=b"Xeon\0\0"):
    data = bytearray(0x32 if enabled is not None else 0x30)
    struct.pack_into("<BBH", data, 0, 4, len(data), 0x0400)
    data[0x18] = 0x41 if populated else 0
    data[0x25] = threads
    struct.pack_into("<H", data, 0x2E, threads if threads2 is None else threads2)
    if enabled is not None:
        struct.pack_into("<H", data, 0x30, enabled)
    return bytes(data) + strings


def module(size, extended_mib=0):
    data = bytearray(0x28)
    struct.pack_into("<BBH", data, 0, 17, len(data), 0x1100)
    struct.pack_into("<H", data, 0x0C, size)
    struct.pack_into("<I", data, 0x1C, extended_mib)
    return bytes(data) + b"\0\0"


def test_threads_of_populated_sockets_are_summed(table):
    root = table(processor(), processor(), processor(populated=False))
    assert smbios.processor_threads(root) == 224


def test_more_than_254_threads_use_the_wide_field(table):
    assert smbios.processor_threads(table(processor(threads=0xFF, threads2=384))) == 384


def test_threads_switched_off_in_the_bios_do_not_count(table):
    assert smbios.processor_threads(table(processor(threads=112, enabled=56))) == 56


def test_an_unknown_count_is_not_supported_rather_than_zero(table):
    with pytest.raises(NotSupported, match="no thread count"):
        smbios.processor_threads(table(processor(threads=0)))


def test_memory_sizes_in_all_three_units(table):
    root = table(module(0x7FFF, 65536), module(32768 - 2048), module(0x8000 | 512), module(0))
    assert smbios.installed_memory_bytes(root) == (64 << 30) + (30720 << 20) + (512 << 10)


def test_a_module_of_unknown_size_makes_the_sum_an_error(table):
    with pytest.raises(ValueError, match="unknown to firmware"):
        smbios.installed_memory_bytes(table(module(0xFFFF)))


def test_a_damaged_table_is_an_error(table):
    reading = attempt(smbios.processor_threads, table(bytes((4, 2, 0, 0))))
    assert reading["state"] == "error"
    assert "damaged structure at offset 0" in reading["detail"]


def test_no_table_is_not_supported(tmp_path):
    assert attempt(smbios.installed_memory_bytes, str(tmp_path))["state"] == "not_supported"
