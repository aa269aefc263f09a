"""What a soak knows of itself across kills and reboots: one small file, replaced in one step."""

from __future__ import annotations

import json
import os
import time
from dataclasses import asdict, dataclass, replace
from typing import Any, Dict, List, Optional, Tuple

from ..node.paths import read_text
from .files import write_json

STATE = "soak.json"
LEGS = "legs"
SCHEMA = "nodeprep.soak/1"
BOOT_ID = "/proc/sys/kernel/random/boot_id"


@dataclass(frozen=True)
class Leg:
    """One run of all phases.

    Attributes:
        started: time.time() of its start.
        ended: The same of its end; None while it runs, and for ever where it was killed.
        state: As the leg's result says; "" without one.
        boot_id: Of the boot it ran in.
    """

    number: int
    started: float
    boot_id: str
    ended: Optional[float] = None
    state: str = ""

    @property
    def folder(self) -> str:
        """Below the soak's own folder."""
        return os.path.join(LEGS, "%05d" % self.number)


@dataclass(frozen=True)
class Gap:
    """Time of a soak without load, seconds since its start."""

    start_s: float
    end_s: float
    why: str
    rebooted: bool

    def document(self) -> Dict[str, Any]:
        """As nodeprep.probe/1 has it."""
        return asdict(self)


@dataclass(frozen=True)
class SoakState:
    """Everything that must survive.

    Attributes:
        identity: What makes it the same soak: run, workload, length, GPUs.
        started: time.time() of its first start.
    """

    identity: str
    started: float
    legs: Tuple[Leg, ...] = ()

    def with_leg(self, leg: Leg) -> SoakState:
        """The leg added, or in place of itself."""
        return replace(self, legs=(*(old for old in self.legs if old.number != leg.number), leg))

    def finished(self) -> List[Leg]:
        """Legs that left a result."""
        return [leg for leg in self.legs if leg.ended is not None]

    def gaps(self, now: float, least_s: float) -> List[Gap]:
        """What lies between finished legs and after the last, where a leg was lost or `least_s` passed.

        Anything shorter is the change of legs. A leg that was lost is a gap from its start: what it found
        until then nobody knows.
        """
        found: List[Gap] = []
        end, boot_id, lost = self.started, self.legs[0].boot_id if self.legs else "", False
        for leg in self.legs:
            rebooted = leg.boot_id != boot_id
            if leg.ended is None:
                lost = True
                continue
            if lost or rebooted or leg.started - end >= least_s:
                found.append(self._gap(end, leg.started, rebooted))
            end, boot_id, lost = leg.ended, leg.boot_id, False
        if lost or now - end >= least_s:
            found.append(self._gap(end, max(now, end), bool(self.legs) and self.legs[-1].boot_id != boot_id))
        return found

    def _gap(self, start: float, end: float, rebooted: bool) -> Gap:
        why = "the node rebooted" if rebooted else "the probe was killed, or could not go on"
        return Gap(round(start - self.started, 1), round(end - self.started, 1), why, rebooted)


def load(folder: str, identity: str) -> SoakState:
    """The state of the soak that was interrupted here, or a new one.

    Raises:
        OSError: There is one that cannot be read.
    """
    fresh = SoakState(identity, time.time())
    try:
        with open(os.path.join(folder, STATE), encoding="utf-8") as file:
            data = json.load(file)
        legs = tuple(Leg(**leg) for leg in data["legs"])
        found = SoakState(data["identity"], data["started"], legs)
    except FileNotFoundError:
        return fresh
    except (ValueError, KeyError, TypeError):
        # Written in one step, so it was never ours: another program's file does not stop a soak.
        return fresh
    return found if found.identity == identity else fresh


def save(folder: str, state: SoakState) -> None:
    """Replaces the state.

    Raises:
        OSError: It cannot be written.
    """
    document = {
        "schema": SCHEMA,
        "identity": state.identity,
        "started": state.started,
        "legs": [asdict(leg) for leg in state.legs],
    }
    write_json(os.path.join(folder, STATE), document)


def boot_id(root: str) -> str:
    """Of this boot; "" where the machine does not say."""
    try:
        return read_text(root, BOOT_ID)
    except OSError:
        return ""
