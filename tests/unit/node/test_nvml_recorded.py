"""The simulated H200 and the collector against a recording of a real one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from nvml_root import gpu, root_with

from nodeprep.node import nvml, nvml_library

RECORDING: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "nvml_h200.json").read_text())
FIELDS: dict[str, dict[str, int]] = RECORDING["fields"]

# What the recorded machine had of its own: identity, slot, its moment, its passthrough, its history.
OWN = (
    "UUID|Serial|PciInfo|ModuleId|PowerUsage|TotalEnergy|Temperature\\(|TemperatureV|Margin|PcieThroughput|"
    "MemoryInfo|BAR1|Virtualization|NvLinkState|ClockInfo\\(3|MaxClockInfo\\(3|GspFirmwareVersion"
)


def static_calls() -> list[str]:
    from nodeprep.sim.simulated_nvml import DEVICE_ENTRIES

    names = {name.removesuffix("_v2").removesuffix("_v3") for name in DEVICE_ENTRIES}
    calls = [call for call in RECORDING["calls"] if call.partition("(")[0] in names]
    return [call for call in calls if not re.search(OWN, call)]


@pytest.mark.parametrize("call", static_calls())
def test_the_simulated_h200_answers_as_the_real_one(tmp_path: Path, call: str) -> None:
    pynvml = nvml_library.load(root_with(tmp_path, gpu(model="h200-sxm")))
    name, _, arguments = call.partition("(")
    values = [int(word) for word in re.findall(r"\d+", arguments)]
    recorded = RECORDING["calls"][call]
    handle = pynvml.nvmlDeviceGetHandleByIndex(0)
    if isinstance(recorded, str) and recorded.startswith("EXC"):
        with pytest.raises(pynvml.NVMLError_NotSupported):
            getattr(pynvml, name)(handle, *values)
        return
    answer = getattr(pynvml, name)(handle, *values)
    if isinstance(recorded, dict):
        answer = {key: getattr(answer, key) for key in recorded}
    assert (list(answer) if isinstance(answer, (list, tuple)) else answer) == recorded


def test_enough_calls_are_compared() -> None:
    assert len(static_calls()) >= 30


def test_the_simulated_h200_types_fields_as_the_real_one() -> None:
    from nodeprep.sim.simulated_nvml import FIELDS as SIMULATED

    recorded = {int(f): found["value_type"] for f, found in FIELDS.items() if not found["nvml_return"]}
    both = recorded.keys() & SIMULATED.keys()
    assert len(both) >= 30
    assert {field: SIMULATED[field][0] for field in both} == {field: recorded[field] for field in both}


def _replay(_gpu: object, count: Any, array: Any) -> None:
    for item in array._obj[: count.value]:
        found = FIELDS.get(str(item.fieldId), {"nvml_return": 3, "value_type": 0, "raw": 0})
        item.valueType, item.nvmlReturn = found["value_type"], found["nvml_return"]
        item.value.ullVal = found["raw"]


def test_recorded_fields_come_out_by_their_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = root_with(tmp_path, gpu(model="h200-sxm"))
    library = nvml_library.simulation(root)
    assert library is not None
    monkeypatch.setitem(library.DEVICE_ENTRIES, "nvmlDeviceGetFieldValues", _replay)
    one = nvml.collect(root, 10.0)["gpus"]["value"][0]
    temperature = {name: found.get("value") for name, found in one["temperature"].items()}
    assert temperature["shutdown_tlimit_c"] == -8
    assert temperature["slowdown_tlimit_c"] == -2
    assert (temperature["memory_max_tlimit_c"], temperature["gpu_max_tlimit_c"]) == (0, 0)
    assert temperature["memory_c"] == 37
    errors = {name: found["value"] for name, found in one["pcie_errors"].items()}
    assert (errors["l0_to_recovery"], errors["receiver_errors"], errors["bad_tlp"]) == (1054, 21, 24)
    assert (errors["naks_sent"], errors["lane"], errors["correctable"]) == (20, 32, 0)
    assert one["recovery_action"]["value"] == 0
    assert one["power"]["requested_w"]["value"] == 700.0
    # Fields 161 to 163 were not recorded: NOT_SUPPORTED here, and never zero.
    assert one["nvlinks"]["value"][0]["crc_errors"]["state"] == "not_supported"
