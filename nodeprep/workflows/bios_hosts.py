"""The BMCs of some hosts in one run: each in a thread of its own, and one request at a time for each."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from nodeprep.bmc import for_all
from nodeprep.bmc.bios import from_policy
from nodeprep.bmc.bios.wanted import Wanted
from nodeprep.bmc.redfish.connection import Connection
from nodeprep.bmc.redfish.patience import Clock
from nodeprep.bmc.target import BmcTarget
from nodeprep.errors import NodeprepError
from nodeprep.fleet import FleetEvent
from nodeprep.model.bios import BiosApplication
from nodeprep.workflows import bios, bios_apply, bios_work
from nodeprep.workflows.bios_facts import bios_target
from nodeprep.workflows.bios_restore import RestoreStore, serial_of
from nodeprep.workflows.session import Session
from nodeprep.workflows.trial import may_reboot

PHASE, RETURN_PHASE = "bios", "return"
# Setup password of a BIOS (HPE): sent only where the BMC asks for it.
BIOS_PASSWORD = "NODEPREP_BIOS_PASSWORD"  # noqa: S105 - the name of a variable
GOOD = ("unchanged", "applied")
_AWAY_HINT = "look at its console; `nodeprep bios rollback --bmc URL` needs no answer of the host"


@dataclass(slots=True)
class BiosHost:
    """What is known of one host's BIOS in this run.

    Attributes:
        done: What was done, in its order.
        error: Why it did not end well; "" as long as it does.
        reset: Its BMC restarted it in this run.
    """

    target: BmcTarget
    wanted: Mapping[str, Wanted]
    done: list[BiosApplication] = field(default_factory=list)
    error: str = ""
    hint: str = ""
    reset: bool = False

    @property
    def restorable(self) -> bool:
        """There is a restore point of this run."""
        return any(done.restore_file for done in self.done)

    def note(self, done: BiosApplication) -> None:
        """Adds something that was done."""
        self.done.append(done)
        self.reset = self.reset or bool(done.resets)

    def fail(self, words: str, hint: str = "") -> None:
        """Adds a reason why it did not end well, once."""
        if words not in self.error:
            self.error = f"{self.error}; {words}" if self.error else words
        self.hint = self.hint or hint


Work = Callable[[BiosHost, "Bmc"], None]
Obstacle = Callable[[str], str]
Look = Callable[[Sequence[str]], Mapping[str, tuple[str, str]]]


def nobody_else(_hosts: Sequence[str]) -> Mapping[str, tuple[str, str]]:
    """For hosts that no other controller can be at work on."""
    return {}


@dataclass(frozen=True, slots=True)
class Bmc:
    """One host's BMC in a thread: time, the way to it, and whom to tell."""

    clock: Clock
    connect: bios.Connect
    notify: Callable[[str], None]


class BiosHosts:
    """The hosts that have a Redfish BMC.

    Args:
        wanted: By host, knobs and their values.
        reboot: False leaves every reset to others.
        obstacle: Why a host is not this run's to reset, "" when it is; asked when a reset is due.
        look: Asks hosts anew, right before resets; those that must not be reset, with why and what to do.
    """

    def __init__(
        self,
        session: Session,
        wanted: Mapping[str, Mapping[str, str]],
        *,
        reboot: bool,
        obstacle: Obstacle = lambda _: "",
        look: Look = nobody_else,
    ) -> None:
        self._session = session
        self._reboot = reboot
        self.obstacle = obstacle
        self._look = look
        self._hosts: dict[str, BiosHost] = {}
        for target in session.pick(list(wanted)):
            bmc = bios_target(target)
            if isinstance(bmc, BmcTarget):
                self._hosts[target.host] = BiosHost(bmc, from_policy(wanted[target.host]))

    def __contains__(self, host: object) -> bool:
        return host in self._hosts

    def __getitem__(self, host: str) -> BiosHost:
        return self._hosts[host]

    def __iter__(self) -> Iterator[str]:
        return iter(self._hosts)

    def each(self, hosts: Iterable[str], work: Work) -> None:
        """Works on hosts at the same time; one that fails has the error, and keeps no other from ending.

        Raises:
            Interrupted: Broken off.
        """

        def begin(host: str, stop: threading.Event) -> None:
            clock = self._session.make_clock(stop)

            def notify(words: str) -> None:
                self._session.notify(FleetEvent(host, "progress", f"BIOS: {words}"))

            def connect(target: BmcTarget) -> Connection:
                return Connection(target, clock=clock, cancelled=stop, notify=notify)

            work(self._hosts[host], Bmc(clock, connect, notify))

        for host, ended in for_all({host: host for host in hosts if host in self}, begin).items():
            one = self._hosts[host]
            if isinstance(ended, NodeprepError):
                one.fail(f"BIOS: {ended.message}", ended.hint)
            state = "failed" if one.error else "done"
            self._session.record(host, PHASE, state, error=one.error, hint=one.hint)  # type: ignore[arg-type]

    def restore(self, one: BiosHost, bmc: Bmc) -> BiosApplication:
        """Back to the restore point, with a reset only where values are in effect by now."""
        reset = self.may_reset(one.target.host) and self._in_effect(one, bmc)
        done = self._back(one, bmc, reset=reset)
        one.note(done)
        return done

    def stage_back(self, one: BiosHost, bmc: Bmc) -> BiosApplication:
        """The values of the restore point, for a reset that somebody else causes."""
        done = self._back(one, bmc, reset=False)
        one.note(done)
        return done

    def asked(self, one: BiosHost, *, reset: bool) -> bios_work.Asked:
        """What is asked of one host."""
        return bios_work.Asked(one.target, reset=reset, bios_password=os.environ.get(BIOS_PASSWORD, ""))

    def may_reset(self, host: str) -> bool:
        """This machine is never reset; the BMC of a host that is simulated here resets nothing real.

        Nor is a host on which another controller's trial boot is under way.
        """
        if self.obstacle(host):
            return False
        known = self._session.bios.get(host)
        if known is not None and known.simulated:
            return self._reboot
        return may_reboot(self._session, host, asked=self._reboot)

    def look_again(self, hosts: Iterable[str]) -> Mapping[str, tuple[str, str]]:
        """Hosts of these that this run would reset and must not any more, with why and what to do."""
        return self._look([host for host in hosts if self.may_reset(host)])

    def leave_out(self, held: Mapping[str, tuple[str, str]]) -> None:
        """Fails hosts that must not be reset."""
        for host, (words, hint) in held.items():
            self._hosts[host].fail(words, hint)
            self._session.record(host, PHASE, "failed", error=words, hint=hint)

    def wait_for_return(self, hosts: Sequence[str]) -> None:
        """Until hosts that their BMCs restarted answer again."""
        away = [host for host in hosts if host in self and self._hosts[host].reset]
        if not away:
            return
        waits = {
            host: {"nodeprep_trial_return_s": self._session.policy(host).trial.return_s} for host in away
        }
        outcomes = self._session.fleet.run(
            "return.yml", self._session.pick(away), phase=RETURN_PHASE, host_vars=waits
        )
        for host, outcome in outcomes.items():
            self._session.record(host, RETURN_PHASE, outcome.state, error=outcome.error, hint=outcome.hint)
            if outcome.state != "done":
                words = f"the host does not answer after the reset for its BIOS: {outcome.error}"
                self._hosts[host].fail(words, _AWAY_HINT)

    def _in_effect(self, one: BiosHost, bmc: Bmc) -> bool:
        """Whether values other than those of the restore point are in effect, and not only staged."""
        with bios.readable(), bmc.connect(one.target) as connection:
            found = bios.look(connection)
            if isinstance(found, bios.NoBios):
                return False
            last = RestoreStore(self._session.home, one.target, serial_of(found.service)).last()
            current = found.settings.current
        return last is not None and any(
            name in current and current[name] != value for name, value in last[1].to_restore().items()
        )

    def _back(self, one: BiosHost, bmc: Bmc, *, reset: bool) -> BiosApplication:
        return bios_apply.rollback(
            self.asked(one, reset=reset),
            self._session.home,
            notify=bmc.notify,
            connect=bmc.connect,
            clock=bmc.clock,
        )
