"""The NVML collector and sampler on a real GPU. Reads only; nothing is set.

Imports node code alone, so it runs on a GPU machine that has only pytest.
"""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
import time
from typing import Any

import pytest

from nodeprep.node import gpu_power, nvml, nvml_sample

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    if shutil.which("nvidia-smi") is None:
        pytest.skip("no NVIDIA driver here")
    return nvml.collect("/", 30.0)


@pytest.fixture(scope="module")
def gpus(document: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = document["gpus"]["value"]
    return found


def smi(*fields: str) -> list[list[str]]:
    command = ["nvidia-smi", f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(done.stdout))]


def test_it_agrees_with_nvidia_smi(gpus: list[dict[str, Any]]) -> None:
    ours = [
        [
            *(gpu[name]["value"] for name in ("uuid", "serial", "name", "vbios_version")),
            *(f"{gpu['power'][name]['value']:.2f}" for name in ("limit_w", "enforced_w", "min_w", "max_w")),
            "Enabled" if gpu["persistence"]["value"] else "Disabled",
            "Enabled" if gpu["ecc"]["enabled"]["value"] else "Disabled",
            *(str(gpu["link"][name]["value"]) for name in ("max_gen", "width_lanes")),
        ]
        for gpu in gpus
    ]
    assert ours == smi(
        "uuid",
        "serial",
        "name",
        "vbios_version",
        "power.limit",
        "enforced.power.limit",
        "power.min_limit",
        "power.max_limit",
        "persistence_mode",
        "ecc.mode.current",
        "pcie.link.gen.max",
        "pcie.link.width.current",
    )


def errors(value: Any, path: str = "") -> list[str]:
    if isinstance(value, dict):
        if value.get("state") == "error":
            return [f"{path}: {value['detail']}"]
        return [text for key, item in value.items() for text in errors(item, f"{path}.{key}")]
    if isinstance(value, list):
        return [text for number, item in enumerate(value) for text in errors(item, f"{path}[{number}]")]
    return []


def test_nothing_is_unreadable_on_a_healthy_gpu(document: dict[str, Any]) -> None:
    assert errors(document) == []


def test_samples_are_quick_and_complete(gpus: list[dict[str, Any]]) -> None:
    addresses = [gpu["pci_address"] for gpu in gpus]
    with nvml_sample.Sampler("/", addresses) as sampler:
        sampler.sample()
        took_s = []
        for _ in range(10):
            time.sleep(0.5)
            started = time.monotonic()
            last = sampler.sample()
            took_s.append(time.monotonic() - started)
        failures = [sampler.failures(address) for address in addresses]
    # The mission of the monitor: a sample of all GPUs within 100 ms.
    assert max(took_s) < 0.1
    assert all(found["state"] == "not_supported" for gpu in failures for found in gpu.values()), failures
    for address in addresses:
        assert last[address]["power_w"] > 10
        assert last[address]["pcie_rx_gbps"] is not None


def test_power_settings_can_be_read_and_checked_without_change(gpus: list[dict[str, Any]]) -> None:
    shown = gpu_power.show("/")
    assert (shown["failed"], len(shown["gpus"])) == (False, len(gpus))
    checked = gpu_power.apply("/", limit="100%", persistence=True, check_mode=True, node_pyz=None)
    assert checked["failed"] is False
    refused = gpu_power.apply("/", limit="5W", check_mode=True, node_pyz=None)
    assert "takes" in refused["msg"]
    assert gpu_power.show("/")["gpus"] == shown["gpus"]
