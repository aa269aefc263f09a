"""GPUs of a simulated root: realistic models, faults, and the driver library that plays them.

    install(root, [SimulatedGpu(address="0000:17:00.0", faults=(trained_down(width_lanes=8),))])

writes ROOT/usr/lib/nodeprep/gpus.json and puts simulated_nvml.py beside it. Faults are data; each
function below that returns a `Fault` says what a real machine with that fault would show.
"""

from __future__ import annotations

import copy
import hashlib
import json
import shutil
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nodeprep.sim import simulated_nvml

Fault = Mapping[str, Any]

DRIVER_VERSION = "580.159.04"
GIB = 1 << 30

_PCIE_ERRORS = (
    "replays",
    "replay_rollovers",
    "l0_to_recovery",
    "correctable",
    "naks_received",
    "receiver_errors",
    "bad_tlp",
    "naks_sent",
    "bad_dllp",
    "non_fatal",
    "fatal",
    "unsupported_requests",
    "lcrc",
    "lane",
)

# Values of a recorded H200 SXM under driver 580.159.04; the other models change what differs.
_H200_SXM: dict[str, Any] = {
    "name": "NVIDIA H200",
    "architecture": 9,
    "device_id": "10de:2335",
    "subsystem_id": "18be10de",
    "board_part_number": "692-2G520-0282-001",
    "vbios_version": "96.00.A5.00.1A",
    "inforom_version": "G520.0282.02.02",
    "inforom_valid": True,
    "memory_bytes": 150754820096,
    "memory_bus_bits": 6144,
    "bar1_bytes": 256 * GIB,
    "persistence": True,
    "compute_processes": 0,
    "virtualization": 0,
    "recovery_action": 0,
    "mig": {"current": 0, "pending": 0},
    "gsp": {"enabled": 1, "version": DRIVER_VERSION},
    "power": {
        "min_w": 200,
        "max_w": 700,
        "default_w": 700,
        "out_of_band_cap_w": None,
        "idle_w": 78,
        "load_fraction": 0.983,
    },
    "link": {
        "gen": 5,
        "idle_gen": 5,
        "width_lanes": 16,
        "max_gen": 5,
        "gpu_max_gen": 5,
        "max_width_lanes": 16,
    },
    "pcie": {"rx_gbps": 46.6, "tx_gbps": 46.6},
    "pcie_errors": dict.fromkeys(_PCIE_ERRORS, 0),
    "ecc": {
        "enabled": 1,
        "pending_enabled": 1,
        "volatile_corrected": 0,
        "volatile_uncorrected": 0,
        "aggregate_corrected": 0,
        "aggregate_uncorrected": 0,
        "sram_threshold_exceeded": False,
    },
    "remap": {
        "correctable": 0,
        "uncorrectable": 0,
        "pending": False,
        "failure": False,
        "histogram": {"max": 3072, "high": 0, "partial": 0, "low": 0, "none": 0},
        "channel_repair_pending": False,
        "tpc_repair_pending": False,
    },
    "clocks": {
        "idle_sm_mhz": 345,
        "load_sm_mhz": 1620,
        "max_sm_mhz": 1980,
        "memory_mhz": 3201,
        "extra_event_reasons": 0,
    },
    "temperature": {
        "idle_c": 33,
        "load_c": 64,
        "memory_offset_c": 4,
        "shutdown_c": 95,
        "slowdown_c": 89,
        "memory_max_c": 95,
        "gpu_max_c": 87,
        "tlimit": {"shutdown_c": -8, "slowdown_c": -2, "memory_max_c": 0, "gpu_max_c": 0},
    },
    "nvlink": {
        "count": 18,
        "inactive": [],
        # NVML's number for an NVSwitch at the other end.
        "remote_type": 2,
        "replay_errors": 0,
        "recovery_errors": 0,
        "crc_errors": 0,
    },
    "fabric": {"state": 3, "status": 0, "health_mask": 0x1AA, "health_summary": 1},
}

_NO_TLIMIT = {"shutdown_c": None, "slowdown_c": None, "memory_max_c": None, "gpu_max_c": None}

_DIFFERENCES: dict[str, dict[str, Any]] = {
    "h200-sxm": {},
    "h100-sxm": {
        "name": "NVIDIA H100 80GB HBM3",
        "device_id": "10de:2330",
        "subsystem_id": "16c110de",
        "board_part_number": "692-2G520-0200-000",
        "vbios_version": "96.00.99.00.01",
        "inforom_version": "G520.0200.00.05",
        "memory_bytes": 85520809984,
        "memory_bus_bits": 5120,
        "bar1_bytes": 128 * GIB,
        "power.idle_w": 71,
        "clocks.memory_mhz": 2619,
        "remap.histogram": {"max": 2560, "high": 0, "partial": 0, "low": 0, "none": 0},
    },
    "h100-pcie": {
        "name": "NVIDIA H100 PCIe",
        "device_id": "10de:2331",
        "subsystem_id": "162610de",
        "board_part_number": "900-21010-0000-000",
        "vbios_version": "96.00.9F.00.01",
        "inforom_version": "1010.0200.00.04",
        "memory_bytes": 85520809984,
        "memory_bus_bits": 5120,
        "bar1_bytes": 128 * GIB,
        "power.max_w": 350,
        "power.default_w": 350,
        "power.idle_w": 48,
        "link.idle_gen": 1,
        "clocks.load_sm_mhz": 1410,
        "clocks.max_sm_mhz": 1755,
        "clocks.memory_mhz": 1593,
        "temperature.load_c": 67,
        "remap.histogram": {"max": 2560, "high": 0, "partial": 0, "low": 0, "none": 0},
        "nvlink.count": None,
        "fabric": None,
    },
    "a100-sxm": {
        "name": "NVIDIA A100-SXM4-80GB",
        "architecture": 7,
        "device_id": "10de:20b2",
        "subsystem_id": "146310de",
        "board_part_number": "692-2G506-0210-002",
        "vbios_version": "92.00.45.00.05",
        "inforom_version": "G506.0210.00.04",
        "memory_bytes": 85899345920,
        "memory_bus_bits": 5120,
        "bar1_bytes": 128 * GIB,
        "power.min_w": 100,
        "power.max_w": 400,
        "power.default_w": 400,
        "power.idle_w": 61,
        "link.gen": 4,
        "link.idle_gen": 4,
        "link.max_gen": 4,
        "link.gpu_max_gen": 4,
        "pcie": {"rx_gbps": 22.8, "tx_gbps": 22.8},
        "clocks.idle_sm_mhz": 210,
        "clocks.load_sm_mhz": 1275,
        "clocks.max_sm_mhz": 1410,
        "clocks.memory_mhz": 1593,
        "temperature.load_c": 58,
        "temperature.shutdown_c": 92,
        "temperature.slowdown_c": 89,
        "temperature.memory_max_c": 95,
        "temperature.gpu_max_c": 85,
        "temperature.tlimit": _NO_TLIMIT,
        "remap.histogram": {"max": 640, "high": 0, "partial": 0, "low": 0, "none": 0},
        "nvlink.count": 12,
        "fabric": None,
    },
    "a100-pcie": {
        "name": "NVIDIA A100 80GB PCIe",
        "architecture": 7,
        "device_id": "10de:20b5",
        "subsystem_id": "153310de",
        "board_part_number": "900-21001-0020-000",
        "vbios_version": "92.00.68.00.01",
        "inforom_version": "1001.0230.00.03",
        "memory_bytes": 85899345920,
        "memory_bus_bits": 5120,
        "bar1_bytes": 128 * GIB,
        "power.min_w": 150,
        "power.max_w": 300,
        "power.default_w": 300,
        "power.idle_w": 44,
        "link.gen": 4,
        "link.idle_gen": 1,
        "link.max_gen": 4,
        "link.gpu_max_gen": 4,
        "pcie": {"rx_gbps": 22.8, "tx_gbps": 22.8},
        "clocks.idle_sm_mhz": 210,
        "clocks.load_sm_mhz": 1155,
        "clocks.max_sm_mhz": 1410,
        "clocks.memory_mhz": 1512,
        "temperature.load_c": 62,
        "temperature.shutdown_c": 92,
        "temperature.slowdown_c": 89,
        "temperature.memory_max_c": 95,
        "temperature.gpu_max_c": 85,
        "temperature.tlimit": _NO_TLIMIT,
        "remap.histogram": {"max": 640, "high": 0, "partial": 0, "low": 0, "none": 0},
        "nvlink.count": None,
        "fabric": None,
    },
}

MODELS = tuple(_DIFFERENCES)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedGpu:
    """One GPU of a simulated root.

    Attributes:
        address: PCI address, `dddd:bb:dd.f`.
        model: One of MODELS.
        seed: Distinguishes the serial numbers of machines; the node's name will do.
        values: Values that differ from the model's, by path ("link.max_gen").
        faults: What is wrong with it.
    """

    address: str
    model: str = "h100-sxm"
    seed: str = ""
    values: Mapping[str, Any] | None = None
    faults: tuple[Fault, ...] = ()

    @property
    def uuid(self) -> str:
        """Made from seed and address, so that the same rack always has the same GPUs."""
        return f"GPU-{uuid.UUID(bytes=self._digest()[:16])}"

    @property
    def serial(self) -> str:
        """Thirteen digits, as on SXM boards."""
        return f"99{int.from_bytes(self._digest()[16:], 'big') % 10**11:011d}"

    @property
    def device_id(self) -> str:
        """Vendor and device as "10de:2330", for the fake PCI bus."""
        return str(self.document()["device_id"])

    def document(self) -> dict[str, Any]:
        """The GPU's entry in gpus.json.

        Raises:
            ValueError: No such model or value.
        """
        if self.model not in _DIFFERENCES:
            raise ValueError(f"no simulated GPU model {self.model!r}; there are {', '.join(MODELS)}")
        document = copy.deepcopy(_H200_SXM)
        for path, value in {**_DIFFERENCES[self.model], **(self.values or {})}.items():
            _set(document, path, value)
        for fault in self.faults:
            for path in fault.get("set", {}):
                _set(copy.deepcopy(document), path, None)
        identity = {"address": self.address, "uuid": self.uuid, "serial": self.serial}
        return {**document, **identity, "faults": [dict(fault) for fault in self.faults]}

    def _digest(self) -> bytes:
        return hashlib.sha256(f"{self.seed}/{self.address}".encode()).digest()


def install(
    root: Path,
    gpus: Sequence[SimulatedGpu],
    *,
    driver_version: str = DRIVER_VERSION,
    driver_lacks: Sequence[str] = (),
    faults: Sequence[Fault] = (),
) -> None:
    """Puts the simulated driver library and its GPUs into a root. No GPUs: a driver that finds none.

    Args:
        root: The fake root.
        gpus: In NVML's order.
        driver_version: As the driver reports it.
        driver_lacks: Entry points that an older driver would not have.
        faults: Of the library as a whole: `hang` and `call_error` of system calls.
    """
    driver = {
        "version": driver_version,
        "nvml": f"13.{driver_version}",
        "cuda": 13000,
        "lacks": list(driver_lacks),
    }
    document = {
        "driver": driver,
        "faults": [dict(fault) for fault in faults],
        "gpus": [gpu.document() for gpu in gpus],
    }
    data = root / simulated_nvml.DATA
    data.parent.mkdir(parents=True, exist_ok=True)
    data.write_text(json.dumps(document, indent=1) + "\n")
    shutil.copyfile(simulated_nvml.__file__, data.parent / "simulated_nvml.py")


def missing() -> Fault:
    """On the PCI bus, unknown to NVML: the driver gave up on it."""
    return {"fault": "missing"}


def hang(call: str = "nvmlDeviceGetPowerUsage", *, under_load: bool = False) -> Fault:
    """A call that never comes back: the GPU's firmware no longer answers.

    Args:
        call: Entry point; "nvmlInitWithFlags" (in `install(faults=...)`) hangs the whole library.
        under_load: Only while the GPU is loaded.
    """
    return {"fault": "hang", "call": call, "under_load": under_load}


def call_error(call: str, code: int, *, under_load: bool = False) -> Fault:
    """A call that fails with an NVML return code.

    Args:
        call: Entry point, as the library exports it ("nvmlDeviceGetHandleByIndex_v2").
        code: nvmlReturn_t, for example 15 (GPU is lost).
        under_load: Only while the GPU is loaded.
    """
    return {"fault": "error", "call": call, "code": code, "under_load": under_load}


def field_error(field: int, code: int, *, under_load: bool = False) -> Fault:
    """One NVML field that fails, while the call for all fields succeeds."""
    return {"fault": "field_error", "field": field, "code": code, "under_load": under_load}


def values(changes: Mapping[str, Any], *, under_load: bool = False) -> Fault:
    """Values that are not what they should be, by path ("temperature.load_c")."""
    return {"fault": "values", "set": dict(changes), "under_load": under_load}


def trained_down(*, width_lanes: int | None = None, gen: int | None = None, under_load: bool = True) -> Fault:
    """A link that runs narrower or slower than it can, by default only while it is loaded."""
    changes = {"link.width_lanes": width_lanes, "link.gen": gen}
    return values({path: v for path, v in changes.items() if v is not None}, under_load=under_load)


def throttled(event_reasons: int) -> Fault:
    """Failing clock-event reasons under load, and the speed they cost (0x40 HW thermal, 0x80 power brake)."""
    return values({"clocks.extra_event_reasons": event_reasons}, under_load=True)


def hot(load_c: int) -> Fault:
    """Cooling that does not keep up: the core temperature of a long load, degrees Celsius."""
    return values({"temperature.load_c": load_c})


def remapped(*, pending: bool = False, failure: bool = False, uncorrectable: int = 1) -> Fault:
    """Rows remapped for uncorrectable errors, with a reset pending or no spare row left."""
    changes = {"remap.pending": pending, "remap.failure": failure, "remap.uncorrectable": uncorrectable}
    return values(changes)


def uncorrected_ecc(count: int) -> Fault:
    """Uncorrected ECC errors since the driver was loaded, and so also over the board's life."""
    return values({"ecc.volatile_uncorrected": count, "ecc.aggregate_uncorrected": count})


def recovery_action(action: int) -> Fault:
    """What the driver asks for (field 230): 1 GPU reset, 2 node reboot, ..."""
    return values({"recovery_action": action})


def capped(watts: float) -> Fault:
    """A cap set by the BMC: the enforced limit stays below what the host asks for."""
    return values({"power.out_of_band_cap_w": watts})


def rate(counter: str, per_s: float) -> Fault:
    """A counter that climbs while the GPU is loaded ("pcie_errors.replays", "ecc.volatile_corrected")."""
    return {"fault": "rate", "counter": counter, "per_s": per_s}


def flip(*, block: int, bit: int = 0, iteration: int = 1) -> Fault:
    """A bit computed wrongly: the probe's simulated arithmetic asks for it."""
    return {"fault": "flip", "block": block, "bit": bit, "iteration": iteration}


def bad_cell(*, block: int, word: int, bit: int) -> Fault:
    """A bit of device memory that is always set, in a word of one of the blocks that the probe walks."""
    return {"fault": "bad_cell", "block": block, "word": word, "bit": bit}


def xid(number: int, *, after_s: float = 0.5) -> Fault:
    """An Xid that the driver raises after so long a load, as NVML's events tell it."""
    return {"fault": "xid", "xid": number, "after_s": after_s}


def slow_peer(address: str, part: float) -> Fault:
    """Copies to one other GPU run at a part of their rate, as with lanes of NVLinks lost on the way."""
    return {"fault": "peer_slow", "peer": address, "part": part}


def corrupt_peer(address: str) -> Fault:
    """Copies to one other GPU arrive changed, and nothing counts it."""
    return {"fault": "peer_corrupt", "peer": address}


def hanging_peer() -> Fault:
    """The GPU computes and copies, and does not come to the all-reduce."""
    return {"fault": "peer_hang"}


def _set(document: dict[str, Any], path: str, value: Any) -> None:
    *folders, name = path.split(".")
    for folder in folders:
        document = document.get(folder, {})
    if name not in document:
        raise ValueError(f"a simulated GPU has no value {path!r}")
    document[name] = value
