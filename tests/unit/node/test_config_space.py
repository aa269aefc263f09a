import json
from dataclasses import replace
from pathlib import Path

import pytest

from nodeprep.node.config_space import ConfigSpace
from nodeprep.node.reading import NotSupported
from nodeprep.sim.config_bytes import config_bytes
from nodeprep.sim.hgx import gpu

REAL = json.loads((Path(__file__).parent / "data/h200_passthrough_vm.json").read_text())
ROOT_PORT, UPSTREAM, DOWNSTREAM, ENDPOINT = gpu(0x1B).hops


def space(device, **changes):
    return ConfigSpace(config_bytes(replace(device, **changes)))


def test_a_real_h200():
    config = ConfigSpace(bytes.fromhex(REAL["config_hex"]).ljust(4096, b"\0"))
    assert config.port_type() == "endpoint"
    assert (config.cap_speed_gts(), config.cap_width_lanes()) == (32.0, 16)
    assert (config.sta_speed_gts(), config.sta_width_lanes()) == (32.0, 16)
    assert config.target_speed_gts() == 32.0
    assert config.aspm_supported() == ["L1"]
    assert config.aspm_enabled() == []
    assert config.reporting() == ["fatal"]
    assert config.aer_offset() == 0x1B8


@pytest.mark.parametrize(
    ("device", "name"),
    [
        (ROOT_PORT, "root_port"),
        (UPSTREAM, "upstream_port"),
        (DOWNSTREAM, "downstream_port"),
        (ENDPOINT, "endpoint"),
    ],
)
def test_port_types(device, name):
    assert space(device).port_type() == name


def test_status_is_not_mistaken_for_capability():
    config = space(ENDPOINT, sta_speed_gts=2.5, sta_width_lanes=8, target_speed_gts=16.0)
    assert (config.cap_speed_gts(), config.cap_width_lanes()) == (32.0, 16)
    assert (config.sta_speed_gts(), config.sta_width_lanes()) == (2.5, 8)
    assert config.target_speed_gts() == 16.0


@pytest.mark.parametrize("states", [(), ("L0s",), ("L1",), ("L0s", "L1")])
def test_aspm_at_this_end(states):
    assert tuple(space(ROOT_PORT, aspm_enabled=states).aspm_enabled()) == states


def test_error_reporting_enables():
    config = space(ROOT_PORT, reporting=("fatal",), root_reporting=("correctable", "non_fatal"))
    assert config.reporting() == ["fatal"]
    assert config.rootport_reporting() == ["correctable", "non_fatal"]
    with pytest.raises(NotSupported, match="not a root port"):
        space(ENDPOINT).rootport_reporting()


def test_a_device_that_fell_off_the_bus_is_an_error_everywhere():
    config = space(ENDPOINT, gone=True)
    for read in (
        config.port_type,
        config.sta_width_lanes,
        config.aspm_enabled,
        config.reporting,
        config.aer_offset,
    ):
        with pytest.raises(ValueError, match="no longer answers"):
            read()


def test_without_root_the_registers_need_root():
    config = space(ENDPOINT, config_bytes=64)
    for read in (config.port_type, config.aspm_enabled, config.aer_offset):
        with pytest.raises(PermissionError, match="only 64 bytes"):
            read()


def test_without_mmconfig_there_is_no_aer_to_see():
    config = space(ROOT_PORT, config_bytes=256)
    assert config.port_type() == "root_port"
    with pytest.raises(NotSupported, match="no MMCONFIG"):
        config.aer_offset()


def test_a_conventional_function_has_no_link():
    data = bytearray(256)
    data[0:4] = b"\x86\x80\x57\x0d"
    with pytest.raises(NotSupported, match="no PCI Express capability"):
        ConfigSpace(bytes(data)).sta_speed_gts()


def test_a_link_status_without_speed_is_an_error_not_zero():
    data = bytearray(config_bytes(ENDPOINT))
    data[0x60 + 0x12] &= 0xF0
    with pytest.raises(ValueError, match="is the link down"):
        ConfigSpace(bytes(data)).sta_speed_gts()


def test_capability_version_1_has_no_target_speed():
    data = bytearray(config_bytes(ENDPOINT))
    data[0x62] = data[0x62] & 0xF0 | 1
    with pytest.raises(NotSupported, match="version 1"):
        ConfigSpace(bytes(data)).target_speed_gts()


def test_a_circular_capability_list_ends():
    data = bytearray(config_bytes(ENDPOINT))
    data[0x40:0x42] = b"\x01\x40"
    with pytest.raises(ValueError, match="circles"):
        ConfigSpace(bytes(data)).port_type()


def test_an_integrated_endpoint_has_no_link():
    data = bytearray(config_bytes(ENDPOINT))
    data[0x62] = data[0x62] & 0x0F | 0x90
    config = ConfigSpace(bytes(data))
    assert config.port_type() == "rc_endpoint"
    with pytest.raises(NotSupported, match="no link"):
        config.sta_width_lanes()
