"""Where a sensor is, from what BMCs call it."""

from __future__ import annotations

import re

from nodeprep.model.bmc import SensorPlace

# The first that fits. "PSU1 Inlet" is of the supply, and "GPU VRM" of the regulator.
# Source: names of Dell R750, HPE DL385, Lenovo SR670 V2, Gigabyte H262, DGX H100 ("TEMP_GPU_1").
# HPE's "15-Board Inlet" is behind the fans, Dell's "System Board Inlet Temp" before them.
_NAMES: tuple[tuple[SensorPlace, str], ...] = (
    ("board", r"\bbattery|\bvbat|^\d+ board inlet"),
    ("vrm", r"\bvrm?\b|\bvr(?=\d|\b)|vreg|regulator|pvccin|pvdd|vddcr"),
    ("psu", r"\bps[u\d]|\bp s \d|\bpower ?suppl|\bpsu"),
    ("fan", r"\bfan|tach"),
    ("inlet", r"inlet|ambient|intake|front ?panel ?temp"),
    ("outlet", r"outlet|exhaust"),
    ("gpu", r"gpu|sxm|hgx|accelerator"),
    ("memory", r"dimm|memory|\bmem\b|\bp\d+ dimm"),
    ("cpu", r"\bcpu|proc(?:essor)?\b|socket"),
    ("board", r"board|\bmb\b|pch|chipset|bmc|system"),
)
# Source: DSP2046, PhysicalContext. Without Intake: Gigabyte's firmware says it of all it has.
_CONTEXTS: dict[str, SensorPlace] = {
    "exhaust": "outlet",
    "cpu": "cpu",
    "cpusubsystem": "cpu",
    "gpu": "gpu",
    "gpusubsystem": "gpu",
    "accelerator": "gpu",
    "memory": "memory",
    "memorysubsystem": "memory",
    "voltageregulator": "vrm",
    "powersupply": "psu",
    "powersupplybay": "psu",
    "fan": "fan",
    "systemboard": "board",
    "motherboard": "board",
}
# Source: the voltages of a Dell R750 that have a health and never a value.
_POWER_GOOD = re.compile(r"\bpg\b|\bpower ?good\b|\bfail ?safe\b|\bvshort\b", re.IGNORECASE)
_MARGIN = re.compile(r"\bdts\b|margin|\btjmax|distance", re.IGNORECASE)


def place_of(name: str, context: str = "") -> SensorPlace:
    """The place of a sensor, by its name first."""
    text = re.sub(r"[_\-./#]+", " ", name)
    for place, pattern in _NAMES:
        if re.search(pattern, text, re.IGNORECASE):
            return place
    return _CONTEXTS.get(context.lower(), "other")


def is_margin(name: str) -> bool:
    """The sensor tells how far it is to a limit."""
    return bool(_MARGIN.search(name.replace("_", " ")))


def is_power_good(name: str) -> bool:
    """The sensor tells whether a line is good, and measures nothing."""
    return bool(_POWER_GOOD.search(name.replace("_", " ")))
