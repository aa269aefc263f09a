"""Takes back an apply of GPU power settings that failed after its first write.

What has to be undone is found by looking at the node, not from what the apply believes to have done:
a call that hung may have taken effect all the same.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Optional, Tuple

from . import durable, power_restore, power_unit
from .gpu_power_nvml import Change, GpuPower, read, write
from .paths import is_real, under
from .power_unit import (
    DROP_IN,
    ENABLED_LINK,
    PERSISTENCED,
    START_TIMEOUT_S,
    SYSTEMCTL_TIMEOUT_S,
    UNIT,
    UnitError,
)
from .undone import Undone


@dataclass(frozen=True)
class Before:
    """How the node stood before an apply, and which files that was to change."""

    gpus: Tuple[GpuPower, ...]
    files: power_unit.FileChanges
    unit: power_unit.State
    restore_point: Optional[str]

    @classmethod
    def of(cls, root: str, gpus: Tuple[GpuPower, ...], files: power_unit.FileChanges) -> Before:
        """As it stands now.

        Raises:
            OSError: The restore point may not be read.
        """
        return cls(gpus, files, power_unit.state(root), durable.content(root, power_restore.PATH))


def roll_back(root: str, before: Before, *, started: bool, deadline_s: float) -> Undone:
    """Brings unit, files, limits and persistence back to what they were; does all of it that can be done.

    Args:
        root: "/" or a simulated root.
        before: From before the first write.
        started: True when the unit was told to start.
        deadline_s: Seconds for each of at most three series of NVML calls.
    """
    undone = Undone([], [])
    _unit(root, before, started, undone)
    # After the unit: its restart and the daemon's change limits.
    _settings(root, before.gpus, deadline_s, undone)
    if not undone.stuck:
        # The way back by hand ("absent") is kept as long as something is left to be undone.
        problem = _put(root, power_restore.PATH, before.restore_point, mode=0o600)
        undone.stuck.extend([problem] if problem else [])
    return undone


def watts(milliwatts: int) -> str:
    """For example "651 W"."""
    return f"{milliwatts / 1000:g} W"


def setting(change: Change, value: int) -> str:
    """One setting of one GPU with a value, for example "0000:17:00.0 power limit 651 W"."""
    words = (
        f"power limit {watts(value)}" if change.what == "limit" else f"persistence {'on' if value else 'off'}"
    )
    return f"{change.address} {words}"


def _unit(root: str, before: Before, started: bool, undone: Undone) -> None:
    if started and not before.unit.active:
        _systemctl(root, undone, "stop", UNIT)
        # The mark of a unit that is about to go; one that had failed before keeps it.
        if is_real(root) and not before.unit.enabled and power_unit.says(root, "is-failed"):
            _systemctl(root, undone, "reset-failed", UNIT)
    if not before.unit.enabled and os.path.islink(under(root, ENABLED_LINK)):
        _disable(root, undone)
    changed = []
    for path, (old, _) in before.files.items():
        try:
            same = durable.content(root, path) == old
        except (OSError, ValueError):
            same = False
        # What is right already needs no room on a full disk.
        problem = "" if same else _put(root, path, old)
        if problem:
            undone.stuck.append(problem)
        elif not same:
            changed.append(path)
            undone.back.append(f"{path} {'absent' if old is None else 'as it was'}")
    if changed:
        _systemctl(root, undone, "daemon-reload")
    if DROP_IN in changed:
        _systemctl(root, undone, "try-restart", PERSISTENCED)
    # It held the old settings and ran; the daemon's restart has taken it along (PartOf), at its own time.
    if before.unit.active and (started or DROP_IN in changed):
        _systemctl(root, undone, "restart", UNIT, timeout_s=START_TIMEOUT_S)


def _disable(root: str, undone: Undone) -> None:
    ignored = Undone([], [])
    _systemctl(root, ignored, "disable", UNIT)
    # The link is all that enabling leaves; without it the unit is disabled whatever systemctl said.
    problem = _put(root, ENABLED_LINK, None)
    if problem:
        undone.stuck.extend([*ignored.stuck, problem])
    else:
        undone.back.append(f"{UNIT} not enabled")


def _settings(root: str, before: Tuple[GpuPower, ...], deadline_s: float, undone: Undone) -> None:
    entries = power_restore.entries_of(before)
    now = read(root, deadline_s)
    changes = power_restore.changes_back(entries, now.gpus)
    written = write(root, changes, deadline_s, go_on=True)
    after = read(root, deadline_s) if changes else now
    # Judged by what is read afterwards: a setting that was made need not have stayed.
    left = {(change.uuid, change.what) for change in power_restore.changes_back(entries, after.gpus)}
    found = {gpu.uuid: gpu for gpu in after.gpus}
    for change in changes:
        if change.uuid in found and (change.uuid, change.what) not in left:
            undone.back.append(setting(change, change.new))
    for change in power_restore.changes_back(entries, after.gpus):
        why = written.problem or "it was set and did not stay"
        undone.stuck.append(f"{setting(change, change.old)} ({why})")
    for gpu in before:
        unknown = _unknown(gpu, found.get(gpu.uuid))
        if unknown:
            why = after.problem or ("NVML does not list it" if gpu.uuid not in found else "NVML does not say")
            undone.stuck.append(f"{gpu.address}, whose {unknown} cannot be read now ({why})")


def _unknown(before: GpuPower, after: Optional[GpuPower]) -> str:
    """Which settings could be read before and cannot now."""
    names = [name for name in ("limit", "persistence") if getattr(before, name)["state"] == "ok"]
    if after is not None:
        names = [name for name in names if getattr(after, name)["state"] != "ok"]
    return " and ".join(names)


def _put(root: str, path: str, text: Optional[str], mode: int = 0o644) -> str:
    """Gives a file its old content; what went wrong, "" when nothing did."""
    try:
        durable.put(root, path, text, mode=mode)
    except OSError as error:
        return f"{path} ({error})"
    return ""


def _systemctl(root: str, undone: Undone, *arguments: str, timeout_s: float = SYSTEMCTL_TIMEOUT_S) -> None:
    try:
        power_unit.systemctl(root, *arguments, timeout_s=timeout_s)
    except UnitError as error:
        undone.stuck.append(str(error))
