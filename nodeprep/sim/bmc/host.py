"""The host behind the BMC: power and POST. Time comes from a clock; nothing runs in the background."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from nodeprep.sim.bmc.conduct import PowerConduct

_NEVER = float("inf")
ON = frozenset({"On", "ForceOn"})
FORCED_RESTARTS = frozenset({"ForceRestart", "PowerCycle", "FullPowerCycle"})


class HostRefused(Exception):
    """A reset that makes no sense in the host's state; the text says why."""


class Host(Protocol):
    """What a BMC needs of its host. A virtual machine can stand here in place of SimulatedHost."""

    @property
    def power(self) -> str:
        """PowerState: On, Off, PoweringOff."""

    @property
    def in_post(self) -> bool:
        """Whether the firmware has not handed over to a boot loader yet."""

    @property
    def boots_begun(self) -> int:
        """How often POST has begun."""

    @property
    def boots_done(self) -> int:
        """Which boot, counted by boots_begun, was the last to end its POST.

        Settings that were sent during boot n come into force when this reaches n + 1.
        """

    def reset(self, kind: str) -> None:
        """Do what a ResetType says.

        Raises:
            HostRefused: It cannot be done now.
        """


class SimulatedHost:
    """A host that takes its time.

    Args:
        clock: Seconds, growing.
        post_s: Length of POST.
        on: Whether it runs at first.
        on_reset: Called with the ResetType of each accepted reset.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        conduct: PowerConduct,
        *,
        post_s: float = 2.0,
        on: bool = True,
        on_reset: Callable[[str], None] | None = None,
    ) -> None:
        self._clock = clock
        self._conduct = conduct
        self._post_s = post_s if conduct.post_s is None else conduct.post_s
        self._on = on
        self._post_ends = 0.0
        self._goes_off = _NEVER
        self._went_off = -_NEVER
        self._starts_after_off = False
        self._begun = 0
        self._done = 0
        self._posting = False
        self._on_reset = on_reset

    @property
    def power(self) -> str:
        """PowerState: On, Off, PoweringOff."""
        self._tick()
        if not self._on:
            return "Off"
        return "PoweringOff" if self._goes_off < _NEVER and self._conduct.off_s else "On"

    @property
    def in_post(self) -> bool:
        """Whether it is in POST."""
        self._tick()
        return self._posting

    @property
    def boots_begun(self) -> int:
        """How often POST has begun."""
        self._tick()
        return self._begun

    @property
    def boots_done(self) -> int:
        """Which boot was the last to end its POST."""
        self._tick()
        return self._done

    def reset(self, kind: str) -> None:
        """Do what a ResetType says.

        Raises:
            HostRefused: It cannot be done now.
        """
        self._tick()
        now = self._clock()
        if kind in ON:
            self._switch_on(now)
        elif not self._on and kind != "PushPowerButton":
            raise HostRefused("the host is off")
        elif kind == "PushPowerButton":
            if self._on:
                self._leave(now + self._graceful_s(), start=False)
            else:
                self._boot(now)
        elif kind == "ForceOff":
            self._leave(now + self._conduct.off_s, start=False)
        elif kind in FORCED_RESTARTS:
            hangs = kind == "ForceRestart" and not self._conduct.restart
            self._boot(now, hangs=hangs)
        elif kind == "GracefulShutdown":
            self._leave(now + self._graceful_s(), start=False)
        elif kind == "GracefulRestart":
            self._leave(now + self._graceful_s(), start=True)
        if self._on_reset is not None:
            self._on_reset(kind)

    def _graceful_s(self) -> float:
        # Nobody listens before the operating system runs.
        return self._conduct.graceful_s if self._conduct.graceful and not self._posting else _NEVER

    def _switch_on(self, now: float) -> None:
        if self._on:
            if self._goes_off < _NEVER:
                raise HostRefused("the host is going off")
            raise HostRefused("the host is on")
        if now - self._went_off >= self._conduct.off_wait_s:
            self._boot(now)

    def _leave(self, when: float, *, start: bool) -> None:
        if when < self._goes_off:
            self._goes_off = when
            self._starts_after_off = start
        self._tick()

    def _boot(self, now: float, *, hangs: bool = False) -> None:
        self._on = True
        self._goes_off = _NEVER
        # A POST that was cut short never ended: settings wait for the next one.
        self._begun += 1
        self._posting = True
        ends = self._conduct.post_ends and not hangs
        self._post_ends = now + self._post_s if ends else _NEVER

    def _tick(self) -> None:
        now = self._clock()
        if self._posting and min(now, self._goes_off) >= self._post_ends:
            self._done = self._begun
            self._posting = False
        if self._on and now >= self._goes_off:
            went = self._goes_off
            self._on = False
            self._went_off = went
            self._goes_off = _NEVER
            self._posting = False
            if self._starts_after_off:
                self._boot(went, hangs=not self._conduct.restart)
                self._tick()


def allowed_types(listed: Any) -> tuple[str, ...]:
    """The types of reset of a BMC; those that nearly all have when it lists none."""
    types = tuple(kind for kind in listed if isinstance(kind, str)) if isinstance(listed, list) else ()
    return types or ("On", "ForceOff", "GracefulShutdown", "ForceRestart")
