"""All that changes in one simulated BMC, brought up to date whenever somebody asks."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping
from typing import Any

from nodeprep.sim.bmc.conduct import Conduct
from nodeprep.sim.bmc.dump import Dump
from nodeprep.sim.bmc.etags import EtagRules, opaque
from nodeprep.sim.bmc.host import Host, SimulatedHost
from nodeprep.sim.bmc.jobs import BIOS_JOB, Jobs
from nodeprep.sim.bmc.logs import Logs
from nodeprep.sim.bmc.sessions import Sessions
from nodeprep.sim.bmc.settings import BiosSettings
from nodeprep.sim.bmc.vendors import settings_of

_SESSION_S = 300.0


class State:
    """One BMC's state.

    Attributes:
        settings_uri: Where settings are sent; None where the Bios resource itself takes them.
        serial: The system's serial number; empty leaves the dump's.
    """

    def __init__(
        self,
        dump: Dump,
        conduct: Conduct,
        *,
        user: str,
        password: str,
        clock: Callable[[], float],
        post_s: float,
        host: Host | None,
        serial: str,
        on_reset: Callable[[str], None] | None,
        on_staged: Callable[[Mapping[str, Any]], None] | None,
        on_promoted: Callable[[Mapping[str, Any]], None] | None,
    ) -> None:
        self.dump = dump
        self.conduct = conduct
        self.clock = clock
        self.serial = serial
        self.settings_uri = settings_of(dump, conduct.vendor)
        on = dump.body(dump.system).get("PowerState") != "Off"
        self.host: Host = host or SimulatedHost(clock, conduct.power, post_s=post_s, on=on, on_reset=on_reset)
        self.settings = BiosSettings(dump, conduct, on_staged=on_staged, on_promoted=on_promoted)
        self.jobs = Jobs(conduct.jobs, clock, self.host)
        self.logs = Logs(
            dump,
            self.now,
            newest_first=conduct.vendor == "dell",
            links=conduct.vendor in ("hpe", "hpe_ilo4"),
        )
        self.etags = EtagRules(conduct.etag, conduct.base)
        timeout = dump.body(dump.find(f"{_root(dump)}/SessionService")).get("SessionTimeout")
        # Some BMCs count minutes here (iLO, AMI say 30); a test would not wait for either.
        seconds = float(timeout) if isinstance(timeout, int) and timeout >= 60 else _SESSION_S
        self.sessions = Sessions(user, password, conduct.login, seconds, clock)
        self.ready_at = clock() + conduct.ready.not_ready_s
        self._boots_seen = self.host.boots_done

    @property
    def next_boot(self) -> int:
        """Number of the boot that can bring settings into force that are sent now."""
        return self.host.boots_begun + 1

    def advance(self) -> None:
        """Bring everything to where it is now."""
        ended = self.jobs.advance()
        boot = self.host.boots_done
        if self.conduct.staging.apply_time == "job":
            for job in ended:
                if job.kind == BIOS_JOB and job.state == "Failed":
                    self.settings.clear()
                elif job.kind == BIOS_JOB:
                    self.settings.promote(boot, self.now())
        elif boot > self._boots_seen:
            self.settings.promote(boot, self.now())
        self._boots_seen = boot

    def restart_bmc(self) -> None:
        """What a reset of the BMC does: nothing to the host, and nobody is logged in any more."""
        self.sessions.close_all()

    def now(self) -> datetime.datetime:
        """The time for people."""
        return datetime.datetime.now(datetime.UTC)

    def etag(self, uri: str) -> str:
        """The ETag of a resource, as the resource itself holds it; empty when it has none."""
        body = self.dump.body(uri)
        own = body.get("@odata.etag")
        # A damaged dump may hold what no header can carry.
        own = own if isinstance(own, str) and own.isascii() and own.isprintable() else ""
        version = 0
        if uri == self.settings_uri:
            version = self.settings.changes
            if not own and self.conduct.etag.form != "none" and self._wants_etag():
                own = 'W/"1600000000"'
        elif uri == self.dump.bios:
            version = self.settings.promotions
        if not own or not version:
            return own
        weak = "W/" if own.startswith("W/") else ""
        return f'{weak}"{opaque(own)}{version}"'

    def _wants_etag(self) -> bool:
        return self.conduct.etag.if_match not in ("ignored", "checked") or self.conduct.etag.form != "dump"


def _root(dump: Dump) -> str:
    return dump.find("/redfish/v1") or "/redfish/v1"
