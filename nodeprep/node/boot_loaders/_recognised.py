"""Boot loaders that are recognised, so that nothing wrong is done, and refused with what to do instead."""

from __future__ import annotations

from typing import Any, Dict, Optional, Sequence

from ..kernel_cmdline import Edit
from ._boot_loader import BootLoader, Entry, Refusal


class Recognised(BootLoader):
    """A boot loader whose arguments are not nodeprep's to change.

    Attributes:
        what: What was recognised.
        instead: What to do instead.
    """

    what = ""
    instead = ""

    def refusal(self) -> Refusal:
        """What was recognised, and what to do instead."""
        return Refusal(f"nodeprep does not change kernel arguments here: {self.what}", self.instead)

    def default_entry(self) -> Entry:
        """Refuses."""
        raise self.refusal()

    def one_shot_obstacle(self) -> str:
        """What was recognised."""
        return self.what

    def stage_trial(self, _cmdline: str) -> None:
        """Refuses."""
        raise self.refusal()

    def staged(self) -> Optional[str]:
        """Nothing is ever staged here."""
        return None

    def arm(self) -> None:
        """Refuses."""
        raise self.refusal()

    def armed(self) -> bool:
        """Nothing is ever armed here."""
        return False

    def disarm(self) -> None:
        """Nothing to do."""

    def unstage(self) -> None:
        """Nothing to do."""

    def commit(self, _edit: Edit) -> None:
        """Refuses."""
        raise self.refusal()

    def snapshot(self) -> Dict[str, Any]:
        """Refuses."""
        raise self.refusal()

    def restore(self, _snapshot: Dict[str, Any], _edits: Sequence[Edit] = ()) -> None:
        """Refuses."""
        raise self.refusal()
