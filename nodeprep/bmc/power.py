"""Power as every BMC tells it, whatever the protocol."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PowerAction = Literal["on", "off", "cycle", "reset"]


@dataclass(frozen=True, slots=True)
class PowerState:
    """What a BMC says about the power of its host.

    Attributes:
        faults: For example "power overload"; empty when the BMC tells of none.
        last_event: Why the power last went off, in words; empty when the BMC does not say.
        restart_cause: Why the host last started, in words; empty when the BMC does not say.
    """

    on: bool
    faults: tuple[str, ...] = ()
    last_event: str = ""
    restart_cause: str = ""

    def __str__(self) -> str:
        parts = ["on" if self.on else "off", *self.faults]
        parts += [f"last power event: {self.last_event}"] if self.last_event else []
        parts += [f"last start: {self.restart_cause}"] if self.restart_cause else []
        return "; ".join(parts)
