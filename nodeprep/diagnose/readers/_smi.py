"""What all outputs of nvidia-smi say of a GPU, under one set of names, and the events made of it.

Events, each with the GPU's address as its device:

- `smi.gpu`: one a GPU and document, with everything that was read under the names of FIELDS.
- `smi.recovery_action` {code, text}: the driver asks for something; not made of "None".
- `smi.reset_required`: a cell or field says that the GPU waits for a reset.
- `smi.remap_pending`, `smi.remap_failure`, `smi.remapped_rows` {rows, correctable, uncorrectable}.
- `smi.retired_pending`: page retirement, before Ampere.
- `smi.ecc_uncorrected` {value, scope}: volatile (since the driver was loaded) or aggregate (of its life).
- `smi.sram_threshold`: SRAM errors beyond what the vendor tolerates.
- `smi.power_brake`, `smi.hw_thermal`, `smi.hw_slowdown`: the hardware slowed the GPU down at that moment.
- `smi.sw_thermal`: the driver did, to keep the temperature.

A count of zero makes no event, and neither does "N/A": fields that a card has not are left out of `smi.gpu`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from nodeprep.diagnose.device import address
from nodeprep.diagnose.event import Event
from nodeprep.diagnose.line import Line

# Name here: how its value is read, and how its path ends in `-q` (spaces as underscores), in `-x`, or what
# `--query-gpu` calls it. Sources: nvidia-smi -q and -x of R470 to R580, nvidia-smi --help-query-gpu.
FIELDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "name": ("text", ("product_name", "name", "gpu_name")),
    "uuid": ("text", ("gpu_uuid", "uuid")),
    "index": ("number", ("index",)),
    "driver_version": ("text", ("driver_version",)),
    "recovery_action": ("text", ("gpu_recovery_action", "gpu_recovery_action", "recovery_action")),
    "reset_required": ("switch", ("gpu_reset_status/reset_required", "reset_status.reset_required")),
    "drain_and_reset": ("switch", ("gpu_reset_status/drain_and_reset_recommended",)),
    "persistence": ("switch", ("persistence_mode",)),
    "mig": ("switch", ("mig_mode/current", "mig_mode/current_mig", "mig.mode.current")),
    "performance_state": ("text", ("performance_state", "pstate")),
    "ecc": ("switch", ("ecc_mode/current", "ecc_mode/current_ecc", "ecc.mode.current")),
    "ecc_pending": ("switch", ("ecc_mode/pending", "ecc_mode/pending_ecc", "ecc.mode.pending")),
    "remapped_correctable": (
        "number",
        ("remapped_rows/correctable_error", "remapped_rows/remapped_row_corr", "remapped_rows.correctable"),
    ),
    "remapped_uncorrectable": (
        "number",
        (
            "remapped_rows/uncorrectable_error",
            "remapped_rows/remapped_row_unc",
            "remapped_rows.uncorrectable",
        ),
    ),
    "remap_pending": (
        "switch",
        ("remapped_rows/pending", "remapped_rows/remapped_row_pending", "remapped_rows.pending"),
    ),
    "remap_failure": (
        "switch",
        (
            "remapped_rows/remapping_failure_occurred",
            "remapped_rows/remapped_row_failure",
            "remapped_rows.failure",
        ),
    ),
    "retired_pending": (
        "switch",
        (
            "retired_pages/pending_page_blacklist",
            "retired_pages/pending_retirement",
            "retired_pages.pending",
        ),
    ),
    "ecc_corrected": (
        "number",
        ("volatile/dram_correctable", "volatile/single_bit/total", "ecc.errors.corrected.volatile.total"),
    ),
    "sram_threshold": (
        "switch",
        ("sram_threshold_exceeded", "ecc.errors.uncorrected.aggregate.sram.thresholdexceeded"),
    ),
    "link_gen": (
        "number",
        (
            "pcie_generation/current",
            "pcie_gen/current_link_gen",
            "pcie.link.gen.current",
            "pcie.link.gen.gpucurrent",
        ),
    ),
    "link_gen_max": ("number", ("pcie_generation/max", "pcie_gen/max_link_gen", "pcie.link.gen.max")),
    "link_width_lanes": (
        "number",
        ("link_width/current", "link_widths/current_link_width", "pcie.link.width.current"),
    ),
    "link_width_max_lanes": (
        "number",
        ("link_width/max", "link_widths/max_link_width", "pcie.link.width.max"),
    ),
    "replays": ("number", ("replays_since_reset", "replay_counter", "pcie.replay.counter")),
    "temperature_c": ("number", ("gpu_current_temp", "gpu_temp", "temperature.gpu")),
    "power_draw_w": (
        "number",
        (
            "gpu_power_readings/power_draw",
            "power_readings/power_draw",
            "gpu_power_readings/average_power_draw",
            "power.draw",
        ),
    ),
    "power_limit_w": (
        "number",
        (
            "current_power_limit",
            "power_readings/power_limit",
            "enforced_power_limit",
            "power.limit",
            "enforced.power.limit",
        ),
    ),
    "power_requested_w": ("number", ("requested_power_limit",)),
    "power_default_w": ("number", ("default_power_limit", "power.default_limit")),
    "power_min_w": ("number", ("min_power_limit", "power.min_limit")),
    "power_max_w": ("number", ("max_power_limit", "power.max_limit")),
    "fabric_state": ("text", ("fabric/state", "fabric.state")),
    "fabric_status": ("text", ("fabric/status", "fabric.status")),
}
_BY_PATH = {path: (name, kind) for name, (kind, paths) in FIELDS.items() for path in paths}
_UNCORRECTED = re.compile(
    r"ecc_errors/(?P<scope>volatile|aggregate)/(?:(?:sram|dram)_uncorrectable\w*|uncorrectable|double_bit/total)$|"
    r"ecc\.errors\.uncorrected\.(?P<scope2>volatile|aggregate)\.total$"
)
_SLOWDOWN = re.compile(
    r"clocks_(?:event|throttle)_reasons?(?:/|\.)(?:clocks_(?:event|throttle)_reason_)?"
    r"(?P<reason>hw_(?:thermal_slowdown|power_brake_slowdown|slowdown)|sw_thermal_slowdown)$"
)
_SLOWDOWNS = {
    "hw_slowdown": "smi.hw_slowdown",
    "hw_thermal_slowdown": "smi.hw_thermal",
    "hw_power_brake_slowdown": "smi.power_brake",
    "sw_thermal_slowdown": "smi.sw_thermal",
}
_NOTHING = frozenset(
    {"", "n/a", "[n/a]", "[not supported]", "not supported", "none found", "[unknown error]"}
)
_RESET = re.compile(r"GPU requires reset|\[GPU requires reset\]", re.IGNORECASE)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
# Names of nvidia-smi for the driver's recovery actions; R610 renamed two of them.
_ACTIONS = {
    "none": 0,
    "gpu reset required": 1,
    "reset": 1,
    "pf flr": 1,
    "node reboot required": 2,
    "reboot": 2,
    "os reboot": 2,
    "drain p2p": 3,
    "drain and reset": 4,
    "recover imex domain": 5,
    "bus reset": 6,
    "system reboot": 7,
}


@dataclass(slots=True)
class Gpu:
    """What one document says of one GPU.

    Attributes:
        header: The line that names it.
    """

    device: str
    header: Line
    values: dict[str, Any] = field(default_factory=dict)
    lines: dict[str, Line] = field(default_factory=dict)
    uncorrected: dict[str, tuple[int, Line]] = field(default_factory=dict)
    slowdowns: dict[str, Line] = field(default_factory=dict)
    needs_reset: Line | None = None

    def take(self, path: str, value: str, line: Line) -> None:
        """One field.

        Args:
            path: Names from the outside inwards, lower case, "/" between and "_" in them; or what
                `--query-gpu` calls it.
        """
        if _RESET.search(value):
            self.needs_reset = self.needs_reset or line
            return
        if value.strip().lower() in _NOTHING:
            return
        ecc = _UNCORRECTED.search(path)
        if ecc is not None:
            self._take_ecc(ecc["scope"] or ecc["scope2"], value, line)
            return
        slowdown = _SLOWDOWN.search(path)
        if slowdown is not None:
            if value.strip().lower() == "active":
                self.slowdowns[slowdown["reason"]] = line
            return
        found = _find(path)
        if found is None:
            return
        name, kind = found
        read = _value(kind, value)
        if read is not None and name not in self.values:
            self.values[name] = read
            self.lines[name] = line

    def _take_ecc(self, scope: str, value: str, line: Line) -> None:
        count = _value("number", value)
        if count is None:
            return
        before, first = self.uncorrected.get(scope, (0, line))
        # The line with the most is the one to quote; older forms have a total beside its parts.
        self.uncorrected[scope] = (max(before, int(count)), line if count > before else first)

    def events(self) -> Iterator[Event]:
        """See the module's docstring."""
        data = dict(self.values)
        data.update({f"ecc_{scope}_uncorrected": count for scope, (count, _) in self.uncorrected.items()})
        yield Event(kind="smi.gpu", lines=(self.header, *self.lines.values()), device=self.device, data=data)
        action = str(self.values.get("recovery_action", "none"))
        code = _ACTIONS.get(action.lower())
        if code != 0:
            yield self._event("smi.recovery_action", self.lines["recovery_action"], code=code, text=action)
        if self.needs_reset is not None:
            yield self._event("smi.reset_required", self.needs_reset)
        for name in ("reset_required", "remap_pending", "remap_failure", "retired_pending", "sram_threshold"):
            if self.values.get(name):
                yield self._event(f"smi.{name}", self.lines[name])
        yield from self._counts()
        for reason, line in self.slowdowns.items():
            yield self._event(_SLOWDOWNS[reason], line)

    def _counts(self) -> Iterator[Event]:
        remapped = {
            part: int(self.values.get(f"remapped_{part}", 0)) for part in ("correctable", "uncorrectable")
        }
        worst = max(remapped, key=lambda part: remapped[part])
        if remapped[worst]:
            rows = sum(remapped.values())
            yield self._event("smi.remapped_rows", self.lines[f"remapped_{worst}"], rows=rows, **remapped)
        for scope, (count, line) in self.uncorrected.items():
            if count:
                yield self._event("smi.ecc_uncorrected", line, value=count, scope=scope)

    def _event(self, kind: str, line: Line, **data: Any) -> Event:
        return Event(kind=kind, lines=(line,), device=self.device, data=data)


def path_name(text: str) -> str:
    """`Remapping Failure Occurred` as `remapping_failure_occurred`."""
    return re.sub(r"[ -]+", "_", text.strip().lower())


def pci_address(text: str) -> str:
    """The address in `GPU 00000000:17:00.0`; "" when it is none."""
    return address(text)


def _find(path: str) -> tuple[str, str] | None:
    parts = path.split("/")
    for begin in range(max(0, len(parts) - 3), len(parts)):
        found = _BY_PATH.get("/".join(parts[begin:]))
        if found is not None:
            return found
    return None


def _value(kind: str, text: str) -> Any:
    stripped = text.strip()
    if kind == "text":
        return stripped
    if kind == "switch":
        return {"yes": True, "enabled": True, "on": True, "1": True, "no": False, "disabled": False,
                "off": False, "0": False, "active": True, "not active": False,
                }.get(stripped.lower())  # fmt: skip
    match = _NUMBER.match(stripped)
    if match is None or len(match[0]) > 18:
        return None
    number = float(match[0])
    return int(number) if number.is_integer() else number
