"""Takes back an apply of link pins that failed after its first write.

As in power_rollback, what has to be undone is found by looking: a write that failed may have taken effect.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Mapping, Optional, Sequence

from . import durable, link_pin_restore, link_pin_unit
from .link_pin_bus import Bus, WriteForbidden
from .link_pin_train import LinkState, TrainingError, confirm, look, retrain, set_target
from .link_pin_unit import ENABLED_LINK, UNIT, Pin
from .paths import is_real, under
from .power_unit import UnitError, systemctl
from .reading import NotSupported, describe
from .undone import Undone


@dataclass(frozen=True)
class Before:
    """How the node stood before an apply, and which files that was to change."""

    links: Mapping[Pin, LinkState]
    files: link_pin_unit.FileChanges
    enabled: bool
    active: bool
    restore_point: Optional[str]

    @classmethod
    def of(cls, root: str, links: Mapping[Pin, LinkState], files: link_pin_unit.FileChanges) -> Before:
        """As it stands now.

        Raises:
            OSError: The restore point may not be read.
        """
        restore_point = durable.content(root, link_pin_restore.PATH)
        return cls(links, files, link_pin_unit.enabled(root), link_pin_unit.is_active(root), restore_point)


def roll_back(bus: Bus, before: Before, touched: Sequence[Pin], *, started: bool) -> Undone:
    """Brings unit, files and links back to what they were; does all of it that can be done.

    Args:
        bus: Of the machine.
        before: From before the first write.
        touched: Links that were written to, in that order.
        started: True when the unit was told to start.
    """
    undone = Undone([], [])
    _unit(bus.root, before, started, undone)
    # After the unit: a start of it would pin them again.
    for pin in reversed(touched):
        _link(bus, pin, before.links[pin], undone)
    if not undone.stuck:
        # The way back by hand ("absent") is kept as long as something is left to be undone.
        _file(bus.root, link_pin_restore.PATH, before.restore_point, undone, mode=0o600, silent=True)
    return undone


def _unit(root: str, before: Before, started: bool, undone: Undone) -> None:
    if started and not before.active:
        _systemctl(root, undone, "stop", UNIT)
        # The mark of a unit that is about to go; one that was there before keeps it.
        if is_real(root) and not before.enabled and link_pin_unit.is_failed(root):
            _systemctl(root, undone, "reset-failed", UNIT)
    if not before.enabled and os.path.islink(under(root, ENABLED_LINK)):
        _systemctl(root, undone, "disable", UNIT)
        _file(root, ENABLED_LINK, None, undone)
    for path, (old, _) in before.files.items():
        _file(root, path, old, undone)
    if before.files:
        _systemctl(root, undone, "daemon-reload")


def _link(bus: Bus, pin: Pin, before: LinkState, undone: Undone) -> None:
    words = f"{pin.port} target Gen{before.target}"
    try:
        now = bus.read(pin.port)
        disturbed = now.target_gen() != before.target or now.is_training() or now.gen() != before.gen
        if not disturbed and look(bus, pin.port, pin.gpu) == before:
            return
        set_target(bus, pin.port, before.target)
        retrain(bus, pin.port)
        after = confirm(bus, pin.port, pin.gpu, before, before.target)
    except (OSError, ValueError, NotSupported, TrainingError, WriteForbidden) as error:
        undone.stuck.append(f"{words} ({describe(error) if isinstance(error, OSError) else error})")
        return
    if after.gen < before.gen:
        undone.stuck.append(f"the link of {pin.gpu} at Gen{before.gen} (it came back with Gen{after.gen})")
    else:
        undone.back.append(words)


def _file(
    root: str, path: str, text: Optional[str], undone: Undone, *, mode: int = 0o644, silent: bool = False
) -> None:
    try:
        if not os.path.islink(under(root, path)) and durable.content(root, path) == text:
            return
        durable.put(root, path, text, mode=mode)
    except (OSError, ValueError) as error:
        undone.stuck.append(f"{path} ({describe(error)})")
        return
    if not silent:
        undone.back.append(f"{path} {'absent' if text is None else 'as it was'}")


def _systemctl(root: str, undone: Undone, *arguments: str) -> None:
    try:
        systemctl(root, *arguments)
    except UnitError as error:
        undone.stuck.append(str(error))
