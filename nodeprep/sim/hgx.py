"""The simulated server models: HGX boards with eight SXM GPUs, each behind a PCIe switch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from nodeprep.sim.description import (
    PORT_DRIVER,
    DeviceDescription,
    GpuDescription,
    NicDescription,
    NodeDescription,
)

# Buses of the GPUs of a DGX H100, in the order of the board.
H100_GPU_BUSES = (0x1B, 0x43, 0x52, 0x61, 0x9D, 0xC3, 0xD1, 0xDF)
H100_DEVICE_ID = "2330"
H200_DEVICE_ID = "2335"

_SWITCH_VENDOR, _SWITCH_DEVICE = "1000", "c030"  # Broadcom PEX890xx Gen5
_ROOT_VENDOR, _ROOT_DEVICE = "8086", "352a"  # Intel Sapphire Rapids root port
_BRIDGE_CLASS = "060400"
_GPU_CLASS = "030200"
_BUSES_BELOW_ROOT = 6


def hgx_node(
    *, gpu_count: int = 8, device_id: str = H100_DEVICE_ID, with_switch: bool = True, **changes: Any
) -> NodeDescription:
    """A server with SXM GPUs in the state the default policy asks for.

    `pcie_aspm=off` and `iommu=off` are in effect, ASPM is off at both ends of every hop, and the
    kernel owns AER through `pcie_ports=native`, since with `pcie_aspm=off` it did not ask firmware.

    Args:
        gpu_count: 1 to 8.
        device_id: PCI device id of the GPUs.
        with_switch: Put a PCIe switch between root port and GPU, as on HGX boards.
        **changes: Fields of NodeDescription.
    """
    buses = H100_GPU_BUSES[:gpu_count]
    gpus = tuple(
        gpu(bus, numa_node=0 if index < 4 else 1, device_id=device_id, with_switch=with_switch)
        for index, bus in enumerate(buses)
    )
    fields: dict[str, Any] = {"gpus": gpus, "nics": _nics(buses), **changes}
    return NodeDescription(**fields)


def gpu(
    bus: int, *, numa_node: int = 0, device_id: str = H100_DEVICE_ID, with_switch: bool = True
) -> GpuDescription:
    """One GPU on a bus, with the ports above it; the root bridge begins six buses before the GPU."""
    root_bus = bus - _BUSES_BELOW_ROOT
    root = DeviceDescription(
        address=f"0000:{root_bus:02x}:01.0",
        vendor_id=_ROOT_VENDOR,
        device_id=_ROOT_DEVICE,
        class_code=_BRIDGE_CLASS,
        port_type="root_port",
        driver=PORT_DRIVER,
        numa_node=numa_node,
    )
    switch = replace(root, vendor_id=_SWITCH_VENDOR, device_id=_SWITCH_DEVICE)
    upstream = replace(switch, address=f"0000:{root_bus + 1:02x}:00.0", port_type="upstream_port")
    downstream = replace(switch, address=f"0000:{root_bus + 2:02x}:02.0", port_type="downstream_port")
    endpoint = replace(
        root,
        address=f"0000:{bus:02x}:00.0",
        vendor_id="10de",
        device_id=device_id,
        class_code=_GPU_CLASS,
        port_type="endpoint",
        driver="nvidia",
    )
    return GpuDescription(hops=(root, upstream, downstream, endpoint) if with_switch else (root, endpoint))


def _nics(gpu_buses: tuple[int, ...]) -> tuple[NicDescription, ...]:
    management = NicDescription(
        name="eno1", mac="02:00:00:00:00:01", address="0000:02:00.0", driver="ixgbe", ports=("0000:00:1c.0",)
    )
    fabric = tuple(
        NicDescription(
            name=f"enp{bus - 3}s0np0",
            mac=f"02:00:00:00:01:{bus:02x}",
            address=f"0000:{bus - 3:02x}:00.0",
            driver="mlx5_core",
            ports=(f"0000:{bus - 6:02x}:01.0", f"0000:{bus - 5:02x}:00.0", f"0000:{bus - 4:02x}:01.0"),
        )
        for bus in gpu_buses
    )
    return (management, *fabric)
