"""The BIOS part of a roll-back: back to the restore point, with the reboot that the host takes anyway."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from nodeprep.bmc.target import BmcTarget
from nodeprep.model.outputs import Rollback
from nodeprep.workflows.bios_facts import bios_target
from nodeprep.workflows.bios_hosts import GOOD, BiosHost, BiosHosts, Bmc, Look, Obstacle, nobody_else
from nodeprep.workflows.bios_restore import RestoreStore, has_restore_points
from nodeprep.workflows.session import Session

GROUP = "bios"
_UNREAD_HINT = "roll back again when its BMC answers; everything else is taken back as told"


class BiosBack:
    """Roll-backs of the BIOS of those hosts for which there is a restore point.

    Args:
        hosts: Hosts that were observed in this session.
        unread: By host, why its BIOS could not be read.
        reboot: False leaves every reset to others.
        obstacle, look: As of `BiosHosts`.
    """

    def __init__(
        self,
        session: Session,
        hosts: Iterable[str],
        *,
        unread: Mapping[str, str],
        reboot: bool,
        obstacle: Obstacle = lambda _: "",
        look: Look = nobody_else,
    ) -> None:
        # Whose restore point is whose is told by the BMCs, so one that is silent may have one.
        self._unread = dict(unread) if has_restore_points(session.home) else {}
        mine = {host: dict[str, str]() for host in hosts if _restorable(session, host)}
        self._hosts = BiosHosts(session, mine, reboot=reboot, obstacle=obstacle, look=look)

    @property
    def hosts(self) -> tuple[str, ...]:
        """Hosts that have something to take back."""
        return tuple(self._hosts)

    def stage(self) -> None:
        """Stages the old values, before the host reboots for its old kernel arguments."""

        def back(one: BiosHost, bmc: Bmc) -> None:
            self._note(one, self._hosts.stage_back(one, bmc).state, (*GOOD, "staged"))

        self._hosts.each(self._hosts, back)

    def finish(self) -> None:
        """Resets the hosts whose old values wait still, and waits until they answer."""

        def back(one: BiosHost, bmc: Bmc) -> None:
            self._note(one, self._hosts.restore(one, bmc).state, (*GOOD, "staged"))

        waiting = [host for host in self._hosts if self._state(host) == "staged"]
        held = self._hosts.look_again(waiting)
        self._hosts.leave_out(held)
        waiting = [host for host in waiting if host not in held]
        self._hosts.each(waiting, back)
        self._hosts.wait_for_return(waiting)

    def on(self, rolled: Rollback) -> Rollback:
        """A host's roll-back with what was done to its BIOS."""
        if rolled.host in self._unread:
            words = f"whether its BIOS was changed is not known: {self._unread[rolled.host]}"
            error = "; ".join(filter(None, (rolled.error, words)))
            return replace(rolled, state="failed", error=error, hint=rolled.hint or _UNREAD_HINT)
        if rolled.host not in self._hosts:
            return rolled
        one = self._hosts[rolled.host]
        whole = replace(rolled, bios=tuple(one.done))
        if one.error:
            error = "; ".join(filter(None, (rolled.error, one.error)))
            return replace(whole, state="failed", error=error, hint=rolled.hint or one.hint)
        whole = replace(whole, restored=tuple(sorted({*rolled.restored, GROUP})))
        if self._state(rolled.host) == "staged" and rolled.state != "failed":
            note = "the old BIOS settings come into effect with the next reset"
            return replace(whole, state="reboot_needed", notes=(*rolled.notes, note))
        return replace(whole, state="restored" if rolled.state == "nothing" else rolled.state)

    def _state(self, host: str) -> str:
        done = self._hosts[host].done
        return done[-1].state if done else ""

    def _note(self, one: BiosHost, state: str, good: tuple[str, ...]) -> None:
        if state not in good:
            last = one.done[-1]
            one.fail(f"BIOS: {last.error or 'not all old values are in effect'}", last.hint)


def _restorable(session: Session, host: str) -> bool:
    known = session.bios.get(host)
    if known is None:
        return False
    (target,) = session.pick([host])
    bmc = bios_target(target)
    return isinstance(bmc, BmcTarget) and RestoreStore(session.home, bmc, known.serial).last() is not None
