"""What can be done about nodes without their help: their BMCs and console logs, many at once."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from nodeprep.bmc import (
    Evidence,
    Marks,
    OutOfBand,
    RecoveryMethod,
    for_all,
    gather,
    power_cycle_to_recover,
    read_access,
    set_marks,
)
from nodeprep.bmc.target import VARIABLE as BMC_VARIABLE
from nodeprep.errors import NodeprepError, PolicyError, Problem
from nodeprep.fleet import Target, bmc_passwords
from nodeprep.model.reading import Reading
from nodeprep.model.trial import TrialEvidence
from nodeprep.workflows.session import Session

NO_BMC_WARNING = (
    "no BMC in the inventory (nodeprep_bmc): should the trial boot hang, the node comes back by its own "
    "dead-man, or when somebody resets it; every reset after that boot brings the old arguments"
)


def without_bmc(session: Session, hosts: Sequence[str]) -> list[str]:
    """Those of some hosts for which the inventory names no BMC."""
    named = {target.host for target in session.pick(hosts) if BMC_VARIABLE in target.variables}
    return [host for host in hosts if host not in named]


class Outside:
    """The BMCs and console logs of some hosts.

    Args:
        ways: By host; see nodeprep.bmc.read_access.
    """

    def __init__(self, ways: Mapping[str, OutOfBand]) -> None:
        self._ways = ways
        self._marks: dict[str, Marks] = {}

    @classmethod
    def of(cls, targets: Iterable[Target]) -> Outside:
        """From the inventory's variables.

        Raises:
            PolicyError: Every fault of every host at once, a missing BMC password among them.
        """
        hosts = {target.host: target for target in targets}
        passwords = bmc_passwords(hosts.values())
        variables = {host: target.variables for host, target in hosts.items()}
        return cls(read_access(variables, passwords=passwords))

    @classmethod
    def of_sound(cls, targets: Iterable[Target]) -> tuple[Outside, dict[str, PolicyError]]:
        """The same over the hosts whose access holds together, and the faults of the others by host."""
        left = {target.host: target for target in targets}
        faults: dict[str, PolicyError] = {}
        while True:
            try:
                return cls.of(left.values()), faults
            except PolicyError as error:
                told = _by_host(error, left)
                if not told:
                    raise
                faults |= told
                left = {host: target for host, target in left.items() if host not in told}

    def has_bmc(self, host: str) -> bool:
        """Whether the inventory names a BMC for a host."""
        return host in self._ways and self._ways[host].bmc is not None

    def mark(self, hosts: Sequence[str]) -> dict[str, str]:
        """Remembers where the event log and the console of each host end now.

        Returns:
            By host, why its BMC could not be asked; hosts without such trouble are not in it.
        """
        ways = {host: self._ways[host] for host in hosts if host in self._ways}
        found = for_all(ways, lambda way, cancelled: set_marks(way, cancelled=cancelled))
        for host, marks in found.items():
            if isinstance(marks, NodeprepError):
                lost = marks.message
                marks = Marks(Reading.error(lost), Reading.error(lost))  # noqa: PLW2901
            self._marks[host] = marks
        return {
            host: self._marks[host].log.detail
            for host in ways
            if self.has_bmc(host) and self._marks[host].log.state == "error"
        }

    def evidence(self, boots: Mapping[str, str]) -> dict[str, tuple[TrialEvidence, ...]]:
        """What BMC and console have said of each host since `mark`.

        Args:
            boots: By host, a word on the kernel command line of the boot that is asked about.
        """
        asked = {
            host: (self._ways[host], self._marks[host], boot)
            for host, boot in boots.items()
            if host in self._marks
        }

        def ask(subject: tuple[OutOfBand, Marks, str], cancelled: threading.Event) -> Evidence:
            way, marks, boot = subject
            return gather(way, marks, boot=boot, cancelled=cancelled)

        return {
            host: (TrialEvidence(source="bmc", state="error", text=found.message),)
            if isinstance(found, NodeprepError)
            else tuple(_pieces(found))
            for host, found in for_all(asked, ask).items()
        }

    def power_cycle(self, methods: Mapping[str, RecoveryMethod]) -> dict[str, str]:
        """Restarts hosts through their BMCs; by host "" where the power came back, else why not.

        Args:
            methods: By host, which must have a BMC.
        """
        asked = {host: (self._ways[host], method) for host, method in methods.items()}

        def restart(subject: tuple[OutOfBand, RecoveryMethod], cancelled: threading.Event) -> str:
            way, method = subject
            if way.bmc is None:
                return "no BMC in the inventory"
            power_cycle_to_recover(way.bmc, method=method, cancelled=cancelled)
            return ""

        found = for_all(asked, restart)
        return {host: said if isinstance(said, str) else said.message for host, said in found.items()}


def _by_host(error: PolicyError, hosts: Iterable[str]) -> dict[str, PolicyError]:
    """Faults host by host; a name with dots may begin with another host's, and the longest is meant."""
    longest_first = sorted(hosts, key=len, reverse=True)
    told: dict[str, list[Problem]] = {}
    for problem in error.problems:
        whose = next((host for host in longest_first if problem.path.startswith(f"{host}.")), None)
        if whose is not None:
            told.setdefault(whose, []).append(problem)
    return {host: PolicyError(f"BMC access of {host}", problems) for host, problems in told.items()}


def _pieces(evidence: Evidence) -> Iterator[TrialEvidence]:
    power, log, console = evidence.power, evidence.log, evidence.console
    yield _piece("chassis", power, "" if power.value is None else str(power.value))
    log_text = ""
    if log.value is not None:
        log_text = "\n".join([*map(str, log.value.entries), *filter(None, [log.value.note])])
    yield _piece("sel", log, log_text or "no new entries")
    console_text = ""
    if console.value is not None:
        console_text = "\n".join(filter(None, [console.value.text, console.value.note]))
    yield _piece("console", console, console_text or "silent")


def _piece(source: str, reading: Reading[Any], text: str) -> TrialEvidence:
    if reading.state == "ok":
        return TrialEvidence(source=source, state="ok", text=text)
    if reading.state == "not_supported":
        return TrialEvidence(source=source, state="not_configured", text=reading.detail)
    return TrialEvidence(source=source, state="error", text=reading.detail)
