"""Getting a node back that does not answer: power off and on again, and looking whether it worked."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import Literal

from nodeprep.bmc.controller import Controller, connect
from nodeprep.bmc.failures import BmcLoginRefused, BmcRefused, BmcUnreachable
from nodeprep.bmc.power import PowerAction
from nodeprep.bmc.target import BmcTarget
from nodeprep.errors import ApplyFailed, Interrupted

# Cycle is the default: only without power does a PCIe device that hangs forget its state; a reset asks the
# same device to work again.
RecoveryMethod = Literal["cycle", "reset"]
# Servers keep power off for 5 to 15 s in a cycle, and some BMCs lose their shared network port for that time.
VERIFY_S = 60.0
_POLL_S = 1.0
# Looked at for at least this long: a BMC acknowledges first and acts a second later, and until then the
# power is still on.
_SETTLE_S = 3.0
# A host that stays off this long after a cycle was not switched on by it.
_OFF_TOO_LONG_S = 20.0
_LOOK_TIME_S = 10.0


@dataclass(frozen=True, slots=True)
class Recovery:
    """How the power of a node was brought back.

    Attributes:
        was_on: Before.
        actions: The commands sent, in order.
        acknowledged: The BMC acknowledged each one.
        seen_off: The power was seen off in between. BMCs and pollers can both be too slow for that.
        seconds: From the first command to the power seen on. That the node has started is not for the
            BMC to say: wait for a new boot id.
    """

    was_on: bool
    actions: tuple[PowerAction, ...]
    acknowledged: bool
    seen_off: bool
    seconds: float

    def __str__(self) -> str:
        done = ", then ".join(f"power {action}" for action in self.actions)
        return f"power was {'on' if self.was_on else 'off'}; {done}; on after {self.seconds:.0f} s"


def power_cycle_to_recover(
    target: BmcTarget,
    *,
    method: RecoveryMethod = "cycle",
    verify_s: float = VERIFY_S,
    cancelled: threading.Event | None = None,
) -> Recovery:
    """Restarts a node the hard way, and sees that its power is on afterwards.

    A node that is off is switched on. Where the BMC refuses the cycle (some know none), off and on are
    sent instead. A command whose acknowledgement is lost is sent a second time unless the power was seen
    going off.

    Args:
        method: For a node that is on: "cycle" (power off and on) or "reset".
        verify_s: How long the power is waited for after each try; the last look may take 20 s more.

    Raises:
        BmcUnreachable, BmcLoginRefused: Before anything was done.
        ApplyFailed: Something was sent, and the power is not known to be on; says what was seen.
        Interrupted: Broken off.
    """
    return _Attempt(target, method, verify_s, cancelled or threading.Event()).run()


class _Attempt:
    def __init__(
        self, target: BmcTarget, method: RecoveryMethod, verify_s: float, cancelled: threading.Event
    ) -> None:
        self._target = target
        self._method = method
        self._verify_s = verify_s
        self._cancelled = cancelled
        self._actions: list[PowerAction] = []
        self._acknowledged = True
        self._seen_off = False
        self._last_seen = "no power state could be read"

    def run(self) -> Recovery:
        with connect(self._target, cancelled=self._cancelled) as bmc:
            was_on = bmc.power_state().on
            began = time.monotonic()
            sure = self._act(bmc, was_on=was_on)
        self._verify()
        if was_on and not sure and not self._seen_off:
            with connect(self._target, cancelled=self._cancelled) as bmc:
                sure = self._act(bmc, was_on=True)
            self._verify()
            if not sure and not self._seen_off:
                raise self._failed("the BMC acknowledged neither of two commands")
        return Recovery(
            was_on, tuple(self._actions), self._acknowledged, self._seen_off, time.monotonic() - began
        )

    def _act(self, bmc: Controller, *, was_on: bool) -> bool:
        """Sends what brings the node back, or begins to; whether the BMC acknowledged it."""
        if not was_on:
            return self._send(bmc, "on")
        try:
            return self._send(bmc, self._method)
        except BmcRefused:
            # Switched on again as soon as it is seen off.
            return self._send(bmc, "off")

    def _send(self, bmc: Controller, action: PowerAction) -> bool:
        acknowledged = bmc.set_power(action)
        self._actions.append(action)
        self._acknowledged = self._acknowledged and acknowledged
        return acknowledged

    def _verify(self) -> None:
        began = time.monotonic()
        off_since: float | None = None
        for now in self._looks(self._verify_s):
            on = self._power_is_on()
            if on is None:
                continue
            if on:
                off_since = None
                if now - began >= _SETTLE_S and self._actions[-1] != "off":
                    return
                continue
            self._seen_off = True
            off_since = now if off_since is None else off_since
            if self._actions[-1] == "off" or now - off_since > _OFF_TOO_LONG_S:
                self._switch_on()
                off_since = now
        raise self._failed(f"the power was not seen on within {self._verify_s:.0f} s")

    def _power_is_on(self) -> bool | None:
        """None when the BMC does not say just now; each look is a session of its own."""
        try:
            with self._look() as bmc:
                on = bmc.power_state().on
        except BmcLoginRefused as error:
            # Asking again and again would lock the BMC's user.
            raise self._failed(error.message) from error
        except (BmcUnreachable, BmcRefused) as error:
            self._last_seen = error.message
            return None
        self._last_seen = f"power {'on' if on else 'off'}"
        return on

    def _switch_on(self) -> None:
        with suppress(BmcUnreachable, BmcRefused), self._look() as bmc:
            self._send(bmc, "on")

    def _look(self) -> AbstractContextManager[Controller]:
        return connect(
            self._target, cancelled=self._cancelled, connect_s=_LOOK_TIME_S, operation_s=_LOOK_TIME_S
        )

    def _looks(self, seconds: float) -> Iterator[float]:
        end = time.monotonic() + seconds
        while True:
            if self._cancelled.wait(_POLL_S):
                raise Interrupted(f"recovery through the {self._target} was broken off")
            now = time.monotonic()
            yield now
            if time.monotonic() > end:
                return

    def _failed(self, why: str) -> ApplyFailed:
        seen = f"sent: {', '.join(self._actions)}; last seen: {self._last_seen}"
        return ApplyFailed(
            f"the {self._target} did not bring the node back: {why} ({seen})",
            hint="look at the node and its BMC by hand",
        )
