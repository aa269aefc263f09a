"""The BIOS of a virtual machine: a few settings that become QEMU words at the next power-on or reset."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

IOMMU = "Iommu"
_SLOT = re.compile(r"PcieSlot([1-9]\d?)LinkSpeed")
_SPEEDS = ("Auto", "Gen1", "Gen2", "Gen3", "Gen4", "Gen5")
_NO_LIMIT = 6


def slot_speed(number: int) -> str:
    """Name of the setting that limits the link speed of a slot."""
    return f"PcieSlot{number}LinkSpeed"


def defaults(slots: int) -> dict[str, str]:
    """Settings of a machine with that many slots as it comes from the factory."""
    return {IOMMU: "Enabled", **{slot_speed(number): "Auto" for number in range(1, slots + 1)}}


def values(name: str) -> tuple[str, ...]:
    """What a setting may be; nothing for an unknown setting."""
    if name == IOMMU:
        return ("Enabled", "Disabled")
    return _SPEEDS if _SLOT.fullmatch(name) else ()


def generation(settings: Mapping[str, str], slot: int) -> int:
    """Highest PCIe generation the settings allow for a slot."""
    value = settings[slot_speed(slot)]
    return _NO_LIMIT if value == "Auto" else int(value.removeprefix("Gen"))


class Bios:
    """Settings of one machine, in two files of its folder: what is in force, and what waits.

    Args:
        folder: Folder of the machine.
    """

    def __init__(self, folder: Path) -> None:
        self._current = folder / "bios.json"
        self._staged = folder / "bios-staged.json"

    def current(self) -> dict[str, str]:
        """Settings in force since the last power-on or reset."""
        return _read(self._current)

    def staged(self) -> dict[str, str]:
        """Settings that come into force at the next power-on or reset; empty when none wait."""
        return _read(self._staged) if self._staged.exists() else {}

    def set_current(self, settings: Mapping[str, str]) -> None:
        """For the first power-on."""
        _write(self._current, settings)

    def problem(self, settings: Mapping[str, object]) -> str:
        """Why these settings cannot be staged, "" when they can."""
        known = self.current()
        for name, value in settings.items():
            if name not in known:
                return f"there is no attribute {name}"
            if value not in values(name):
                return f"{name} is one of {', '.join(values(name))}, not {value!r}"
        return ""

    def stage(self, settings: Mapping[str, str]) -> None:
        """Keep settings for the next power-on or reset, beside those that already wait."""
        _write(self._staged, {**self.staged(), **settings})

    def apply(self) -> dict[str, str]:
        """What firmware does first: put staged settings into force. Returns what is in force now."""
        settings = {**self.current(), **self.staged()}
        _write(self._current, settings)
        self._staged.unlink(missing_ok=True)
        return settings


def _read(path: Path) -> dict[str, str]:
    return dict(json.loads(path.read_text()))


def _write(path: Path, settings: Mapping[str, str]) -> None:
    new = path.with_name(path.name + ".new")
    new.write_text(json.dumps(dict(settings), indent=2) + "\n")
    new.replace(path)
