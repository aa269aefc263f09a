"""BIOS changes of many hosts in step with their boots: staged before, in effect afterwards, or taken back.

A host that tries new kernel arguments reboots for them anyway: its BIOS settings are staged before that and
take effect at the same reset. Any other host is reset by its BMC. What is not in effect afterwards goes back
to the restore point.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from nodeprep.knobs import unseen_effects
from nodeprep.model.bios import BiosPlan
from nodeprep.model.facts import NodeFacts
from nodeprep.model.outputs import Application
from nodeprep.model.trial import TrialState
from nodeprep.workflows import bios, bios_apply
from nodeprep.workflows.bios_hosts import GOOD, BiosHost, BiosHosts, Bmc, Look, Obstacle, nobody_else
from nodeprep.workflows.session import Session

# The host runs again, so POST is over; some BMCs learn the new values minutes later.
# Source: dsx-ai-factory/libredfish#25.
_LATE_S, _POLL_S = 180.0, 5.0


class BiosWork:
    """BIOS changes of some hosts in one run.

    Args:
        wanted: By host, knobs and their values; hosts without any are left alone.
        reboot: False leaves every reset to others.
        obstacle, look: As of `BiosHosts`.
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
        due = {host: knobs for host, knobs in wanted.items() if knobs}
        self._hosts = BiosHosts(session, due, reboot=reboot, obstacle=obstacle, look=look)

    def failed(self, host: str) -> bool:
        """Whether it did not end well."""
        return host in self._hosts and bool(self._hosts[host].error)

    def failure(self, host: str) -> tuple[str, str]:
        """Why it did not end well, and what to do."""
        return self._hosts[host].error, self._hosts[host].hint

    def was_reset(self, host: str) -> bool:
        """Whether its BMC restarted it in this run."""
        return host in self._hosts and self._hosts[host].reset

    def stage(self, hosts: Iterable[str]) -> None:
        """Stages what is due, for a reset that others cause; what is refused is taken back at once."""
        mine = [host for host in hosts if host in self._hosts]
        self._hosts.each(mine, self._stage)
        self._take_back(mine)

    def bring_into_effect(self, hosts: Iterable[str]) -> None:
        """Stages and resets where that is allowed, waits through POST, and reads back; else only stages.

        Nothing is written for a host that another controller is found at work on: its reset would take it.
        """
        mine = [host for host in hosts if host in self._hosts]
        may = [host for host in mine if self._hosts.may_reset(host)]
        self.stage([host for host in mine if host not in may])
        held = self._hosts.look_again(may)
        self._hosts.leave_out(held)
        may = [host for host in may if host not in held]
        self._hosts.each(may, self._apply)
        self._take_back(may)
        self._hosts.wait_for_return(may)

    def settle(self, trials: Mapping[str, TrialState]) -> None:
        """After trial boots that took staged settings along.

        Where the boot was good, what is still open in the BIOS is brought into effect; where the host is
        back at its old arguments, or lost, its BIOS goes back too.

        Args:
            trials: By host, how its trial boot ended. An armed one leaves all of it to the next boot.
        """
        tried = [host for host, state in trials.items() if host in self._hosts and state != "armed"]
        # A trial that is over holds its node no more; a lost one's is held, and cannot be asked.
        self._hosts.look_again(host for host in tried if trials[host] in ("permanent", "rolled_back"))
        self._hosts.each([host for host in tried if trials[host] == "permanent"], self._settle)
        for host in tried:
            if trials[host] != "permanent":
                self._hosts[host].fail("the boot with the new BIOS settings did not end well")
        self._take_back(tried)
        self._hosts.wait_for_return(tried)

    def on(self, result: Application, after: NodeFacts | None) -> Application:
        """An application with what was done to the BIOS; failed where the host does not show the effect.

        Args:
            after: The host as it is after its boot.
        """
        if result.host not in self._hosts:
            return result
        one = self._hosts[result.host]
        whole = replace(result, bios=tuple(one.done))
        if one.error and one.error not in result.error:
            whole = replace(whole, error="; ".join(filter(None, (result.error, one.error))))
        if result.state != "applied" or after is None:
            return whole
        unseen = unseen_effects(after, {name: knob.value for name, knob in one.wanted.items()})
        if not unseen:
            return whole
        words = "; ".join(unseen)
        hint = "the BIOS reads back as wanted; `nodeprep rollback` takes it back"
        self._session.record(result.host, "verify", "failed", error=words, hint=hint)
        return replace(whole, state="failed", error=words, hint=hint)

    def _stage(self, one: BiosHost, bmc: Bmc) -> None:
        self._run(one, bmc, reset=False)

    def _apply(self, one: BiosHost, bmc: Bmc) -> None:
        self._run(one, bmc, reset=True)

    def _settle(self, one: BiosHost, bmc: Bmc) -> None:
        """Values that a BMC shows late are waited for before the host is reset once more."""
        ends_at = bmc.clock.now() + _LATE_S
        while bmc.clock.now() < ends_at and _awaited(bios.plan(one.target, one.wanted, bmc.connect)):
            bmc.clock.wait(_POLL_S)
        self._run(one, bmc, reset=self._hosts.may_reset(one.target.host))

    def _run(self, one: BiosHost, bmc: Bmc, *, reset: bool) -> None:
        done = bios_apply.apply(
            self._hosts.asked(one, reset=reset),
            one.wanted,
            self._session.home,
            notify=bmc.notify,
            connect=bmc.connect,
            clock=bmc.clock,
        )
        one.note(done)
        if done.state not in (GOOD if reset else (*GOOD, "staged")):
            one.fail(f"BIOS: {done.error or 'it did not take all settings'}", done.hint)

    def _take_back(self, hosts: Iterable[str]) -> None:
        def back(one: BiosHost, bmc: Bmc) -> None:
            done = self._hosts.restore(one, bmc)
            words = f"the BIOS was not restored: {done.error}"
            if done.state in GOOD:
                words = "the BIOS is as before"
            elif done.state == "staged":
                words = "the BIOS is as before from the next reset on"
                held = self._hosts.obstacle(one.target.host)
                words += f", which is left to others: {held}" if held else ""
            one.fail(words)

        failed = [host for host in hosts if self.failed(host) and self._hosts[host].restorable]
        self._hosts.each(failed, back)


def _awaited(plan: BiosPlan) -> bool:
    """Whether settings that the boot was to bring into effect are not shown as such yet."""
    return any(
        one.phase == 1 and one.current != one.value
        for knob in plan.knobs
        if knob.status == "change"
        for one in knob.attributes
    )
