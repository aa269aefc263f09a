"""What a workload file may say: its keys, their ranges and defaults, and the ones that ship.

The controller reads it before a node is touched and the probe reads it again before a GPU is: both
must refuse the same files with the same words, so it lies here, where both can import it.
"""

from __future__ import annotations

import difflib
import json
import pkgutil
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List, Mapping, Optional, Tuple

SHIPPED = ("vit-g", "vit-g-14", "vit-g-dynamic", "vit-g-train", "tiny")
# Refused on real hardware: it would load no GPU, and its certificate would say that one was loaded.
SIMULATED_ONLY = ("tiny",)
DTYPE_BYTES = {"fp16": 2, "bf16": 2, "fp32": 4}
# For people; it changes nothing and enters no digest.
ABOUT = "about"


@dataclass(frozen=True)
class Key:
    """One key of a workload file.

    Attributes:
        kind: int, float or str.
        low: Smallest sensible number; beyond the two a file is a slip of the pen.
        choices: The texts allowed; empty allows any.
        default: None when a file must have the key.
        group: "core" keys stand in every digest, the others only where they differ from the default.
    """

    kind: type
    low: float = 0
    high: float = 0
    choices: Tuple[str, ...] = ()
    default: Any = None
    group: str = "more"


KEYS: Dict[str, Key] = {
    "name": Key(str, group="core"),
    "width": Key(int, 16, 65536, group="core"),
    "depth": Key(int, 1, 512, group="core"),
    "heads": Key(int, 1, 1024, group="core"),
    "ffn": Key(int, 16, 1 << 20, group="core"),
    "patch": Key(int, 1, 256, group="core"),
    "image_height": Key(int, 1, 65536, group="core"),
    "image_width": Key(int, 1, 65536, group="core"),
    "batch": Key(int, 1, 4096, group="core"),
    "dtype": Key(str, choices=tuple(DTYPE_BYTES), default="fp16", group="core"),
    "seed": Key(int, 0, (1 << 31) - 1, default=20240229, group="core"),
    "launch": Key(str, choices=("explicit", "graph"), default="explicit", group="core"),
    "batch_least": Key(int, 0, 4096, default=0),
    "mode": Key(str, choices=("inference", "training"), default="inference"),
    "gradient_norm_max": Key(float, 0, 1e6, default=0.0),
    "input": Key(str, choices=("resident", "copied", "prefetched"), default="resident"),
    "kernels": Key(str, choices=("plain", "cublaslt", "triton", "compile"), default="plain"),
    "attention": Key(str, choices=("auto", "flash", "cudnn", "efficient"), default="auto"),
    "memory_pool_gib": Key(int, 0, 1024, default=0),
    "pcie_direction": Key(str, choices=("both", "h2d", "d2h"), default="both"),
    "pcie_share": Key(float, 0, 1, default=1.0),
    "burst_duty": Key(float, 0.01, 1, default=1.0),
    "burst_period_s": Key(float, 0, 60, default=0.0),
    "duration_s": Key(float, 0, 30 * 86400, default=0.0),
    "loops": Key(int, 0, 10**9, default=0),
}


def shipped(name: str) -> Dict[str, Any]:
    """The data of a shipped workload.

    Raises:
        KeyError: There is none of this name.
    """
    if name not in SHIPPED:
        raise KeyError(name)
    # Also from inside the .pyz, where there is no file to open.
    data: Dict[str, Any] = json.loads(pkgutil.get_data(__name__, "workloads/%s.json" % name) or b"")
    return data


def filled(data: Mapping[str, Any]) -> Dict[str, Any]:
    """All keys, with defaults where the file has none and whole numbers as floats where floats are meant."""
    values = {name: data.get(name, key.default) for name, key in KEYS.items()}
    for name, key in KEYS.items():
        if key.kind is float:
            values[name] = float(values[name])
    # A range of one size is no range; both spellings are one workload with one digest.
    if values["batch_least"] == values["batch"]:
        values["batch_least"] = 0
    return values


def faults(data: Any) -> List[str]:
    """Everything that is wrong with a workload, each line beginning with its key."""
    if not isinstance(data, dict):
        return ["expected a mapping, got %s" % type(data).__name__]
    found = [_unknown(name) for name in data if name not in KEYS and name != ABOUT]
    if ABOUT in data and not isinstance(data[ABOUT], str):
        found.append("%s: must be a text" % ABOUT)
    numbers_fit = True
    for name, key in KEYS.items():
        missing = name not in data and key.default is None
        fault = "missing" if missing else _value_fault(key, data.get(name, key.default))
        if fault:
            numbers_fit = numbers_fit and key.kind is str
            found.append("%s: %s" % (name, fault))
    if numbers_fit:
        found.extend(_shape_faults(filled(data)))
    if not found:
        found.extend(_sense_faults(filled(data)))
    return found


def name_fault(data: Mapping[str, Any]) -> Optional[str]:
    """Why a file may not call itself what it does; None when it may.

    Certificates name the workload they were issued for, so the shipped names mean the shipped numbers.
    """
    name = data.get("name")
    if name in SHIPPED and filled(data) != filled(shipped(str(name))):
        return "%r is the name of a shipped workload with other numbers" % name
    return None


def closest(name: str) -> str:
    """What a misspelt name may have meant, "" when nothing comes near."""
    return next(iter(difflib.get_close_matches(name, SHIPPED, n=1)), "")


def _unknown(name: Any) -> str:
    close = difflib.get_close_matches(str(name), KEYS, n=1)
    return "%s: unknown key%s" % (name, "; did you mean %s?" % close[0] if close else "")


def _value_fault(key: Key, value: Any) -> str:
    if key.kind is str:
        if not isinstance(value, str) or not value:
            return "must be a text, is %r" % (value,)
        if key.choices and value not in key.choices:
            return "must be one of %s, is %r" % (", ".join(key.choices), value)
        return ""
    kinds = (int, float) if key.kind is float else (int,)
    if isinstance(value, bool) or not isinstance(value, kinds):
        return "must be a %s, is %r" % ("number" if key.kind is float else "whole number", value)
    if not key.low <= value <= key.high:
        return "must be between %g and %g, is %g" % (key.low, key.high, value)
    return ""


def _shape_faults(data: Mapping[str, Any]) -> Iterator[str]:
    if data["width"] % data["heads"]:
        yield "width: %d cannot be divided by heads %d" % (data["width"], data["heads"])
    # Digests read rows of the output, and of the hidden layer's gradients, as 64-bit words.
    for key in ("width", "ffn"):
        if data[key] % 8:
            yield "%s: must be a multiple of 8, is %d" % (key, data[key])
    for key in ("image_height", "image_width"):
        if data[key] % data["patch"]:
            yield "%s: %d cannot be divided by patch %d" % (key, data[key], data["patch"])
    # The generator of weights counts in 32 bits.
    largest = max(data["width"] * data["ffn"], 3 * data["width"] * data["width"])
    if largest >= 1 << 31:
        yield "width: a weight of %d values is too large" % largest
    pixels = data["batch"] * 3 * data["image_height"] * data["image_width"]
    if pixels >= 1 << 31:
        yield "batch: an input of %d values is too large" % pixels
    if data["batch_least"] > data["batch"]:
        yield "batch_least: %d is more than batch %d" % (data["batch_least"], data["batch"])


def _sense_faults(data: Mapping[str, Any]) -> Iterator[str]:
    """Keys that contradict each other: one of the two would silently do nothing."""
    training, graph = data["mode"] == "training", data["launch"] == "graph"
    if data["gradient_norm_max"] and not training:
        yield "gradient_norm_max: there is no gradient in inference; set mode: training"
    if training and data["kernels"] != "plain":
        yield "kernels: %s has no backward pass; mode: training needs plain" % data["kernels"]
    if graph and data["input"] == "copied":
        yield "input: a graph replays no copy from pageable memory; use prefetched or resident"
    if (data["burst_duty"] < 1) != (data["burst_period_s"] > 0):
        yield "burst_duty: needs burst_period_s, and the other way round"
