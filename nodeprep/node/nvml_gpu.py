"""Everything NVML says about one GPU, as the `Gpu` part of the facts document."""

from __future__ import annotations

import ctypes
from typing import Any

from . import reading
from .nvml_calls import Calls, milliwatts, pci_address, read_fields, then
from .reading import Reading

ARCHITECTURES = {
    2: "kepler",
    3: "maxwell",
    4: "pascal",
    5: "volta",
    6: "turing",
    7: "ampere",
    8: "ada",
    9: "hopper",
    10: "blackwell",
    13: "rubin",
}
VIRTUALIZATION = {0: "none", 1: "passthrough", 2: "vgpu", 3: "host_vgpu", 4: "host_vsga"}
FABRIC_STATES = {0: "not_supported", 1: "not_started", 2: "in_progress", 3: "completed"}

# Names of the facts and the NVML field that holds each.
PCIE_ERROR_FIELDS = {
    "replay_rollovers": 95,
    "l0_to_recovery": 169,
    "correctable": 173,
    "naks_received": 174,
    "receiver_errors": 175,
    "bad_tlp": 176,
    "naks_sent": 177,
    "bad_dllp": 178,
    "non_fatal": 179,
    "fatal": 180,
    "unsupported_requests": 181,
    "lcrc": 182,
    "lane": 183,
}
TLIMIT_FIELDS = {
    "shutdown_tlimit_c": 193,
    "slowdown_tlimit_c": 194,
    "memory_max_tlimit_c": 195,
    "gpu_max_tlimit_c": 196,
}
THRESHOLDS = {"shutdown_c": 0, "slowdown_c": 1, "memory_max_c": 2, "gpu_max_c": 3}
FIELD_MEMORY_TEMPERATURE = 82
FIELD_REQUESTED_POWER = 192
FIELD_RECOVERY_ACTION = 230
FIELD_NVLINK_REPLAY, FIELD_NVLINK_RECOVERY, FIELD_NVLINK_CRC = 161, 162, 163

# An upper bound of the binding; the real number (A100 12, H100 18) shows by INVALID_ARGUMENT.
NVLINK_BOUND = 36


def pci_info(calls: Calls, handle: Any) -> tuple[str, str]:
    """Address as "0000:17:00.0", and device and vendor as "10de:2335".

    Raises:
        pynvml.NVMLError: What NVML answered.
        ValueError: NVML gave no valid address.
    """
    info = calls.call("nvmlDeviceGetPciInfo_v3", handle)
    combined = int(info.pciDeviceId)
    return pci_address(info.busId), f"{combined & 0xFFFF:04x}:{combined >> 16:04x}"


def collect(calls: Calls, handle: Any, index: int, address: str, device_id: str) -> dict[str, Any]:
    """The `Gpu` document of one GPU. Never raises: what fails is an error reading."""
    read = calls.read
    scalar_fields = [
        FIELD_MEMORY_TEMPERATURE,
        FIELD_REQUESTED_POWER,
        FIELD_RECOVERY_ACTION,
        *TLIMIT_FIELDS.values(),
        *PCIE_ERROR_FIELDS.values(),
    ]
    fields = read_fields(calls, handle, scalar_fields)
    mig = read("nvmlDeviceGetMigMode", handle)
    # The binding keeps the default arguments of this function between calls, so it gets its own.
    gsp = read("nvmlDeviceGetGspFirmwareMode", handle, ctypes.c_uint(), ctypes.c_uint())
    return {
        "pci_address": address,
        "index": index,
        "uuid": read("nvmlDeviceGetUUID", handle),
        "serial": read("nvmlDeviceGetSerial", handle),
        "name": read("nvmlDeviceGetName", handle),
        "board_part_number": read("nvmlDeviceGetBoardPartNumber", handle),
        "vbios_version": read("nvmlDeviceGetVbiosVersion", handle),
        "inforom_version": read("nvmlDeviceGetInforomImageVersion", handle),
        "inforom_valid": _inforom_valid(calls, handle),
        "architecture": read("nvmlDeviceGetArchitecture", handle, value=_architecture),
        "pci_device_id": reading.ok(device_id),
        "memory_total_bytes": read("nvmlDeviceGetMemoryInfo", handle, value=lambda info: int(info.total)),
        "bar1_total_bytes": read(
            "nvmlDeviceGetBAR1MemoryInfo", handle, value=lambda info: int(info.bar1Total)
        ),
        "persistence": read("nvmlDeviceGetPersistenceMode", handle, value=bool),
        "compute_processes": _compute_processes(calls, handle),
        "virtualization": read("nvmlDeviceGetVirtualizationMode", handle, value=VIRTUALIZATION.__getitem__),
        "mig_enabled": then(mig, lambda modes: bool(modes[0])),
        "mig_pending": then(mig, lambda modes: bool(modes[1])),
        "gsp_enabled": then(gsp, lambda modes: bool(modes[0])),
        "gsp_version": read("nvmlDeviceGetGspFirmwareVersion", handle),
        "recovery_action": fields[FIELD_RECOVERY_ACTION],
        "power": _power(calls, handle, fields[FIELD_REQUESTED_POWER]),
        "link": _link(calls, handle),
        "pcie_errors": _pcie_errors(calls, handle, fields),
        "ecc": _ecc(calls, handle),
        "remap": _remap(calls, handle),
        "clocks": _clocks(calls, handle),
        "temperature": _temperature(calls, handle, fields),
        "nvlinks": _nvlinks(calls, handle),
        "fabric": _fabric(calls, handle),
    }


def _architecture(number: int) -> str:
    return ARCHITECTURES.get(number, f"architecture_{number}")


def _inforom_valid(calls: Calls, handle: Any) -> Reading:
    function = "nvmlDeviceValidateInforom"
    try:
        calls.call(function, handle)
    except Exception as error:
        if calls.is_code(error, "CORRUPTED_INFOROM"):
            return reading.ok(False)
        return calls.failed(function, error)
    return reading.ok(True)


def _compute_processes(calls: Calls, handle: Any) -> Reading:
    function = "nvmlDeviceGetComputeRunningProcesses_v3"
    try:
        return reading.ok(len(calls.call(function, handle)))
    except Exception as error:
        if calls.is_code(error, "FUNCTION_NOT_FOUND"):
            return calls.read("nvmlDeviceGetComputeRunningProcesses_v2", handle, value=len)
        return calls.failed(function, error)


def _power(calls: Calls, handle: Any, requested: Reading) -> dict[str, Reading]:
    read = calls.read
    constraints = read("nvmlDeviceGetPowerManagementLimitConstraints", handle)
    return {
        "limit_w": read("nvmlDeviceGetPowerManagementLimit", handle, value=milliwatts),
        "requested_w": then(requested, milliwatts),
        "enforced_w": read("nvmlDeviceGetEnforcedPowerLimit", handle, value=milliwatts),
        "default_w": read("nvmlDeviceGetPowerManagementDefaultLimit", handle, value=milliwatts),
        "min_w": then(constraints, lambda pair: milliwatts(pair[0])),
        "max_w": then(constraints, lambda pair: milliwatts(pair[1])),
        "draw_w": read("nvmlDeviceGetPowerUsage", handle, value=milliwatts),
    }


def _link(calls: Calls, handle: Any) -> dict[str, Reading]:
    read = calls.read
    return {
        "gen": read("nvmlDeviceGetCurrPcieLinkGeneration", handle),
        "width_lanes": read("nvmlDeviceGetCurrPcieLinkWidth", handle),
        "max_gen": read("nvmlDeviceGetMaxPcieLinkGeneration", handle),
        "gpu_max_gen": read("nvmlDeviceGetGpuMaxPcieLinkGeneration", handle),
        "max_width_lanes": read("nvmlDeviceGetMaxPcieLinkWidth", handle),
    }


def _pcie_errors(calls: Calls, handle: Any, fields: dict[int, Reading]) -> dict[str, Reading]:
    errors = {name: fields[field] for name, field in PCIE_ERROR_FIELDS.items()}
    return {"replays": calls.read("nvmlDeviceGetPcieReplayCounter", handle), **errors}


def _ecc(calls: Calls, handle: Any) -> dict[str, Reading]:
    mode = calls.read("nvmlDeviceGetEccMode", handle)

    def total(error_type: int, counter: int) -> Reading:
        return calls.read("nvmlDeviceGetTotalEccErrors", handle, error_type, counter)

    corrected, uncorrected, volatile, aggregate = 0, 1, 0, 1
    return {
        "enabled": then(mode, lambda modes: bool(modes[0])),
        "pending_enabled": then(mode, lambda modes: bool(modes[1])),
        "volatile_corrected": total(corrected, volatile),
        "volatile_uncorrected": total(uncorrected, volatile),
        "aggregate_corrected": total(corrected, aggregate),
        "aggregate_uncorrected": total(uncorrected, aggregate),
        "sram_threshold_exceeded": _sram_threshold_exceeded(calls, handle),
    }


def _sram_threshold_exceeded(calls: Calls, handle: Any) -> Reading:
    status = calls.pynvml.c_nvmlEccSramErrorStatus_v1_t()
    called = calls.read("nvmlDeviceGetSramEccErrorStatus", handle, ctypes.byref(status))
    return then(called, lambda _: bool(status.bThresholdExceeded))


def _remap(calls: Calls, handle: Any) -> dict[str, Reading]:
    # Not nvmlDeviceGetRemappedRows_v2: the binding returns its error code instead of raising it.
    rows = calls.read("nvmlDeviceGetRemappedRows", handle)
    repair = calls.read("nvmlDeviceGetRepairStatus", handle)
    levels = ("max", "high", "partial", "low", "none")
    return {
        "correctable_rows": then(rows, lambda row: row[0]),
        "uncorrectable_rows": then(rows, lambda row: row[1]),
        "pending": then(rows, lambda row: bool(row[2])),
        "failure": then(rows, lambda row: bool(row[3])),
        "histogram": calls.read(
            "nvmlDeviceGetRowRemapperHistogram",
            handle,
            value=lambda banks: {level: int(getattr(banks, level)) for level in levels},
        ),
        "channel_repair_pending": then(repair, lambda pending: bool(pending[0])),
        "tpc_repair_pending": then(repair, lambda pending: bool(pending[1])),
    }


def _clocks(calls: Calls, handle: Any) -> dict[str, Reading]:
    pynvml = calls.pynvml
    read = calls.read
    return {
        "sm_mhz": read("nvmlDeviceGetClockInfo", handle, pynvml.NVML_CLOCK_SM),
        "memory_mhz": read("nvmlDeviceGetClockInfo", handle, pynvml.NVML_CLOCK_MEM),
        "max_sm_mhz": read("nvmlDeviceGetMaxClockInfo", handle, pynvml.NVML_CLOCK_SM),
        "max_memory_mhz": read("nvmlDeviceGetMaxClockInfo", handle, pynvml.NVML_CLOCK_MEM),
        "event_reasons": event_reasons(calls, handle),
    }


def event_reasons(calls: Calls, handle: Any) -> Reading:
    """The mask of clock-event reasons."""
    function = "nvmlDeviceGetCurrentClocksEventReasons"
    try:
        return reading.ok(calls.call(function, handle))
    except Exception as error:
        if calls.is_code(error, "FUNCTION_NOT_FOUND"):
            # The name older drivers have for the same mask.
            return calls.read("nvmlDeviceGetCurrentClocksThrottleReasons", handle)
        return calls.failed(function, error)


def _temperature(calls: Calls, handle: Any, fields: dict[int, Reading]) -> dict[str, Reading]:
    thresholds = {
        name: calls.read("nvmlDeviceGetTemperatureThreshold", handle, threshold)
        for name, threshold in THRESHOLDS.items()
    }
    # Offsets below the limit: -8 arrives as 4294967288 from drivers that type it as unsigned.
    tlimits = {name: then(fields[field], _signed32) for name, field in TLIMIT_FIELDS.items()}
    return {
        "gpu_c": gpu_temperature(calls, handle),
        "memory_c": fields[FIELD_MEMORY_TEMPERATURE],
        "margin_c": calls.read("nvmlDeviceGetMarginTemperature", handle),
        **thresholds,
        **tlimits,
    }


def _signed32(value: int) -> int:
    return value - (1 << 32) if value >= 1 << 31 else value


def gpu_temperature(calls: Calls, handle: Any) -> Reading:
    """Core temperature in degrees Celsius."""
    function = "nvmlDeviceGetTemperatureV"
    sensor = calls.pynvml.NVML_TEMPERATURE_GPU
    try:
        return reading.ok(calls.call(function, handle, sensor))
    except Exception as error:
        if calls.is_code(error, "FUNCTION_NOT_FOUND"):
            return calls.read("nvmlDeviceGetTemperature", handle, sensor)
        return calls.failed(function, error)


def _nvlinks(calls: Calls, handle: Any) -> Reading:
    function = "nvmlDeviceGetNvLinkState"
    states: list[Reading] = []
    for link in range(NVLINK_BOUND):
        try:
            states.append(reading.ok(bool(calls.call(function, handle, link))))
        except Exception as error:
            if calls.is_code(error, "INVALID_ARGUMENT"):
                break
            states.append(calls.failed(function, error))
    if not states:
        return reading.not_supported(f"{function}: NVML knows no NVLink of this GPU")
    if all(state["state"] == "not_supported" for state in states):
        return states[0]
    return reading.ok([_nvlink(calls, handle, link, active) for link, active in enumerate(states)])


def _nvlink(calls: Calls, handle: Any, link: int, active: Reading) -> dict[str, Any]:
    ids = (FIELD_NVLINK_REPLAY, FIELD_NVLINK_RECOVERY, FIELD_NVLINK_CRC)
    fields = read_fields(calls, handle, ids, scope=link)
    return {
        "index": link,
        "active": active,
        "replay_errors": fields[FIELD_NVLINK_REPLAY],
        "recovery_errors": fields[FIELD_NVLINK_RECOVERY],
        "crc_errors": fields[FIELD_NVLINK_CRC],
    }


def _fabric(calls: Calls, handle: Any) -> Reading:
    """Newest structure first: each older driver refuses the ones it does not know."""
    pynvml = calls.pynvml
    versions = (
        ("nvmlDeviceGetGpuFabricInfoV", pynvml.c_nvmlGpuFabricInfo_v3_t),
        ("nvmlDeviceGetGpuFabricInfoV", pynvml.c_nvmlGpuFabricInfo_v2_t),
        ("nvmlDeviceGetGpuFabricInfo", pynvml.c_nvmlGpuFabricInfo_t),
    )
    answer = reading.error("nvmlDeviceGetGpuFabricInfo was not asked")
    for function, structure in versions:
        info = structure()
        try:
            calls.call(function, handle, ctypes.byref(info))
        except Exception as error:
            answer = calls.failed(function, error)
            if calls.is_code(error, "ARGUMENT_VERSION_MISMATCH", "FUNCTION_NOT_FOUND"):
                continue
            return answer
        return _fabric_value(info)
    return answer


def _fabric_value(info: Any) -> Reading:
    state = int(info.state)
    if state not in FABRIC_STATES:
        return reading.error(f"NVML gave fabric state {state}, which is not known")
    return reading.ok(
        {
            "state": FABRIC_STATES[state],
            "status": int(info.status),
            # The first version of the structure has no mask, the second no summary.
            "health_mask": getattr(info, "healthMask", None),
            "health_summary": getattr(info, "healthSummary", None),
        }
    )
