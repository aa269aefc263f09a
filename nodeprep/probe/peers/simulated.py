"""A simulated GPU among its peers: data that is really moved and compared, times that are modelled.

What is slow, changed or hanging follows from the root's simulated driver, as do the rates: from the
NVLinks that are up, or else from the PCIe link as it is trained.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from ...node import reading
from ...node.nvml_simulation import simulation
from ..problem import ProbeError
from . import groups
from .device import Device

# Of each NVLink's 25 GB/s a direction. Source: NVIDIA/nccl#1264 (H100 SXM: 371 to 377 GB/s over 18 links) and
# sjeaugey in NVIDIA/nccl-tests#212 (370 GB/s of bus bandwidth).
_PEER_PART, _BUS_PART, _BOTH_WAYS = 0.83, 0.82, 1.95
_LINK_GBPS = 25.0
# Copies between GPUs through the host, of the PCIe link's own rate. Source: NVIDIA/nccl#1264, 37 of 55 GB/s.
_STAGED_PART = 0.67
_COPY_BYTES = 1 << 14


class SimulatedDevice(Device):
    """One simulated GPU of a simulated root.

    Raises:
        ProbeError: The root is real, or has no simulated driver.
    """

    def __init__(self, spec: Dict[str, Any], tell: Callable[..., None]) -> None:
        super().__init__(spec, tell)
        root = str(spec["root"])
        library = simulation(root)
        if library is None:
            raise ProbeError("%s has no simulated driver library" % root)
        self._root = os.path.realpath(root)
        with open(os.path.join(self._root, library.DATA)) as file:
            entries = {gpu["address"]: gpu for gpu in json.load(file)["gpus"]}
        self._gpus = [library.Gpu(self._root, entries[address]) for address in self.addresses]
        self._faults = {
            (fault["address"], fault["fault"], fault.get("peer", "")): fault
            for fault in library.peer_faults(self._root)
        }
        self._hangs = self._hangs or (self._mine, "peer_hang", "") in self._faults
        self._shared = groups.find(self._root, self.addresses)
        self._ring: Any = None

    @property
    def _mine(self) -> str:
        return self.addresses[self.number]

    def about(self) -> Dict[str, Any]:
        """Every simulated GPU reaches every other one, if both have NVLinks."""
        access = {
            address: reading.ok(bool(self._links(self.number) and self._links(other)))
            for other, address in enumerate(self.addresses)
            if other != self.number
        }
        return {"versions": {"python": platform.python_version()}, "access": access}

    def host_copies(self, direction: str, seconds: float, at: float, beside: List[str]) -> Dict[str, Any]:
        """One small copy; the rate is the link's, or the share of a port that several copy through."""
        del seconds
        time.sleep(max(0.0, at - time.monotonic()))
        changed = _copied(self._pattern(0), flip=False)
        rate = self._gpus[self.number].copy_rate({"h2d": "rx", "d2h": "tx"}[direction]) / 1e9
        rate /= max([1, *(len(others) for others in self._sharers(beside))])
        return {"gbps": rate, "checks": 1, "errors": int(changed)}

    def pair(self, to: int, seconds: float, both_ways: bool) -> Dict[str, Any]:
        """Two small copies; the rate is that of the NVLinks that are up at both ends."""
        del seconds
        peer = self.addresses[to]
        errors, back_errors = (
            sum(_copied(self._pattern(number), flip=way in self._faults) for number in range(2))
            for way in ((self._mine, "peer_corrupt", peer), (peer, "peer_corrupt", self._mine))
        )
        slow = self._faults.get((self._mine, "peer_slow", peer), {"part": 1.0})
        gbps = self._peer_gbps(to) * float(slow["part"])
        return {
            "gbps": gbps * (_BOTH_WAYS if both_ways else 1.0),
            "checks": 2,
            "errors": errors,
            "back_errors": back_errors if both_ways else 0,
        }

    def join(self, transport: str, meeting: str) -> Dict[str, Any]:
        """Joins the others in the ring, or in gloo where the user wants that."""
        if transport == "gloo":
            import torch  # noqa: PLC0415 - seconds to import, and simulated nodes do without

            from .collective import Collective  # noqa: PLC0415

            self._ring = Collective(transport, meeting, self.number, len(self.addresses), torch.device("cpu"))
        else:
            from .ring import Ring  # noqa: PLC0415

            self._ring = Ring(meeting, self.number, len(self.addresses))
        return {"environment": {}}

    def _reduce(self, size: int, repeats: int, verify: bool) -> Tuple[float, Optional[int]]:
        _, wrong = self._ring.reduce(size, repeats, verify)
        world = len(self.addresses)
        slowest = min(self._bus_gbps(number) for number in range(world))
        # Bus bandwidth is 2 (n - 1) / n times size over time.
        return 2 * (world - 1) / world * size / (slowest * 1e9), wrong

    def _sharers(self, beside: List[str]) -> Iterator[List[str]]:
        """For each port that this GPU shares: who copies through it at the same time."""
        ports = [group.gpus for group in self._shared.shared if group.kind == groups.PORT]
        if self._shared.common_port:
            ports.append(self.addresses)
        for members in ports:
            if self._mine in members:
                yield [address for address in beside if address in members]

    def _links(self, number: int) -> int:
        """NVLinks that are up."""
        gpu = self._gpus[number]
        count = gpu.get("nvlink.count") or 0
        return int(count) - len(gpu.get("nvlink.inactive"))

    def _pcie_gbps(self, number: int) -> float:
        return float(self._gpus[number].copy_rate("tx")) / 1e9

    def _peer_gbps(self, to: int) -> float:
        links = min(self._links(self.number), self._links(to))
        if links:
            return links * _LINK_GBPS * _PEER_PART
        return _STAGED_PART * min(self._pcie_gbps(self.number), self._pcie_gbps(to))

    def _bus_gbps(self, number: int) -> float:
        links = self._links(number)
        return links * _LINK_GBPS * _BUS_PART if links else _STAGED_PART * self._pcie_gbps(number)

    def _pattern(self, number: int) -> bytes:
        seed = hashlib.sha256(b"%d from %s" % (number, self._mine.encode())).digest()
        return seed * (_COPY_BYTES // len(seed))


def _copied(pattern: bytes, *, flip: bool) -> bool:
    """Copies to a buffer of the far side, which digests it; true when that differs from what was sent."""
    landed = bytearray(len(pattern))
    landed[:] = pattern
    if flip:
        landed[len(landed) // 2] ^= 1
    return hashlib.sha256(landed).digest() != hashlib.sha256(pattern).digest()
