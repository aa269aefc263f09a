"""Hosts with simulated BMCs whose time runs fast, and just enough of a session to work on them."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from nodeprep.bmc.redfish.patience import Clock
from nodeprep.fleet import Outcome, Target
from nodeprep.model.bios import BiosFacts
from nodeprep.model.policy import BiosPolicy, Policy
from nodeprep.sim.bmc import SimulatedBmc, Tls
from nodeprep.sim.bmc_trees import MAKES, bmc_tree
from nodeprep.workflows.bios_boot import BiosWork
from nodeprep.workflows.bios_facts import read_bios
from nodeprep.workflows.home import Home

SECRET = "Bmc-Word_6113"
HURRY = 20.0
WANTED = {"iommu": "disabled", "aspm": "disabled"}
POLICY = Policy(bios=BiosPolicy(iommu="disabled", aspm="disabled"))
VT = "ProcVirtualization"


class FastClock(Clock):
    """A second of it is a twentieth of one."""

    def now(self) -> float:
        return time.monotonic() * HURRY

    def wait(self, seconds: float) -> None:
        super().wait(seconds / HURRY)


def machine(make: str = "dell", faults: Sequence[str] = ()) -> SimulatedBmc:
    return SimulatedBmc(
        bmc_tree(MAKES[make], serial="SIM1"), user="admin", password=SECRET, faults=faults,
        clock=lambda: time.monotonic() * HURRY, post_s=20.0,
    )  # fmt: skip


@dataclass
class Site:
    """Hosts with a BMC each, and what a session is asked for."""

    home: Home
    tls: Tls
    hosts: dict[str, SimulatedBmc]
    ports: dict[str, int]
    changes: dict[str, dict[str, Any]] = field(default_factory=dict)
    local: bool = False

    def __post_init__(self) -> None:
        self.bios: dict[str, BiosFacts] = {}
        self.records: list[tuple[str, str, str]] = []
        self.said: list[str] = []
        self.waited_for: list[str] = []
        self.fleet = SimpleNamespace(run=self._run)

    def pick(self, hosts: Sequence[str]) -> tuple[Target, ...]:
        return tuple(Target(host, {"nodeprep_bmc": self._access(host)}, local=self.local) for host in hosts)

    def _access(self, host: str) -> dict[str, Any]:
        access = {
            "protocol": "redfish", "address": "127.0.0.1", "port": self.ports[host], "user": "admin",
            "fingerprint": self.tls.fingerprint,
        }  # fmt: skip
        changed = access | self.changes.get(host, {})
        return {key: value for key, value in changed.items() if value is not None}

    def policy(self, _host: str) -> Policy:
        return POLICY

    def make_clock(self, stop: threading.Event) -> Clock:
        return FastClock(stop)

    def notify(self, event: Any) -> None:
        self.said.append(event.message)

    def record(self, host: str, phase: str, state: str, **_more: Any) -> None:
        self.records.append((host, phase, state))

    def _run(self, playbook: str, targets: Sequence[Target], **_more: Any) -> dict[str, Outcome]:
        assert playbook == "return.yml"
        self.waited_for += [target.host for target in targets]
        return {target.host: Outcome(target.host, "done", {}, "", "") for target in targets}

    # What a test asks

    def look(self) -> dict[str, Any]:
        found = read_bios(
            self.pick(list(self.hosts)), dict.fromkeys(self.hosts, POLICY), make_clock=self.make_clock
        )
        self.bios = {host: one.value for host, one in found.items() if one.value is not None}
        return found

    def work(self, *, reboot: bool = True, wanted: Mapping[str, str] | None = None, **more: Any) -> BiosWork:
        knobs = dict.fromkeys(self.hosts, wanted or WANTED)
        return BiosWork(self, knobs, reboot=reboot, **more)  # type: ignore[arg-type]

    def current(self, host: str = "n1") -> dict[str, Any]:
        self.hosts[host].state.advance()
        return dict(self.hosts[host].state.settings.current)

    def waiting(self, host: str = "n1") -> dict[str, Any]:
        self.hosts[host].state.advance()
        return dict(self.hosts[host].state.settings.waiting)

    def boots(self, host: str = "n1") -> int:
        return self.hosts[host].state.host.boots_begun

    def os_reboot(self, host: str = "n1") -> None:
        """The operating system restarts itself, as a trial boot makes it; it answers after POST."""
        self.hosts[host].state.host.reset("ForceRestart")
        while self.hosts[host].state.host.in_post:
            time.sleep(0.02)
