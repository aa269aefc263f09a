"""`nodeprep.bios_restore/1`: how a BIOS was before nodeprep changed it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from nodeprep.model.bios import BiosMachine, BiosValue


@dataclass(frozen=True, slots=True, kw_only=True)
class RestorePoint:
    """`nodeprep.bios_restore/1`.

    Attributes:
        values: All settings, as they were in effect.
        planned: What was to be written.
        after: All settings after it; empty for a run that did not end.
        jobs: URIs of jobs that nodeprep made.
        finished: The run came to its end, and what it wrote is in effect.
        reset_at: When the host was last restarted, in seconds since 1970; 0 for never.
    """

    bmc: BiosMachine
    address: str
    serial: str
    taken_at: str
    values: dict[str, BiosValue]
    planned: dict[str, BiosValue] = field(default_factory=dict)
    after: dict[str, BiosValue] = field(default_factory=dict)
    jobs: tuple[str, ...] = ()
    finished: bool = False
    reset_at: float = 0.0
    schema: Literal["nodeprep.bios_restore/1"] = field(default="nodeprep.bios_restore/1")

    def to_restore(self) -> dict[str, BiosValue]:
        """What nodeprep changed, with the values before: what it wrote, and what that changed besides."""
        known: dict[str, BiosValue] = {
            name: value for name, value in self.values.items() if value is not None
        }
        if not self.after:
            # It is not known what else changed; a restore looks at all that differs now.
            return known
        return {
            name: value
            for name, value in known.items()
            if name in self.planned or (name in self.after and self.after[name] != value)
        }
