"""What the BMCs of a run's hosts measure: evidence in the run folder, and no part of any verdict."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping

from nodeprep.bmc import BmcTarget, for_all, measure
from nodeprep.bmc.target import VARIABLE, read_target
from nodeprep.errors import NodeprepError, PolicyError
from nodeprep.fleet import FleetEvent, Target, bmc_passwords
from nodeprep.model.bmc import BmcSensors
from nodeprep.model.facts import NodeFacts
from nodeprep.model.reading import Reading
from nodeprep.workflows.session import Session

# They wait most of the time; over IPMI each of them is a process besides.
_WORKERS = 32
_NO_BMC = Reading[BmcSensors].not_supported(f"the inventory names no BMC of this host ({VARIABLE})")


def keep_sensors(
    session: Session, hosts: Iterable[str], facts: Mapping[str, NodeFacts], *, label: str = ""
) -> dict[str, Reading[BmcSensors]]:
    """The sensors of some hosts, saved as bmc/HOST.sensors[.LABEL].json, or as .error with the reason.

    Args:
        facts: Of those hosts that were looked at. A BMC that gave no BIOS is not asked again: another login
            with a password that it refused may lock its user, and silence would be waited for twice.
    """
    found: dict[str, Reading[BmcSensors]] = {}
    asked: list[str] = []
    for host in hosts:
        if host in facts and facts[host].bios.state == "error":
            found[host] = Reading.error(f"not asked, for its BIOS was unreadable: {facts[host].bios.detail}")
        else:
            asked.append(host)
    found |= read_sensors(session.pick(asked))
    name = f"sensors.{label}" if label else "sensors"
    for host, one in found.items():
        if one.value is not None:
            session.save(f"bmc/{host}.{name}.json", one.value)
        elif one.state == "error":
            session.save(f"bmc/{host}.{name}.error", f"{one.detail}\n".encode())
            session.notify(FleetEvent(host, "progress", "the BMC's sensors are unreadable"))
    return found


def read_sensors(
    targets: Iterable[Target], environment: Mapping[str, str] | None = None
) -> dict[str, Reading[BmcSensors]]:
    """The sensors of each host, many at once; a host whose BMC fails has the error.

    Raises:
        Interrupted: Ctrl-C.
    """
    env = os.environ if environment is None else environment
    targets = tuple(targets)
    found: dict[str, Reading[BmcSensors]] = {}
    asked: dict[str, BmcTarget] = {}
    with contextlib.suppress(PolicyError):
        # All vaulted passwords at once; what is wrong with one is told of its own host below.
        bmc_passwords(targets)
    for target in targets:
        way = _way(target, env)
        if isinstance(way, Reading):
            found[target.host] = way
        else:
            asked[target.host] = way
    answers = for_all(asked, lambda bmc, cancelled: measure(bmc, cancelled=cancelled), workers=_WORKERS)
    for host, answer in answers.items():
        found[host] = (
            Reading.error(_words(answer)) if isinstance(answer, NodeprepError) else Reading.ok(answer)
        )
    return found


def _way(target: Target, environment: Mapping[str, str]) -> BmcTarget | Reading[BmcSensors]:
    try:
        password = bmc_passwords((target,)).get(target.host)
    except PolicyError as error:
        return Reading.error("; ".join(map(str, error.problems)))
    bmc, problems = read_target(target.host, target.variables, environment, password=password)
    if problems:
        return Reading.error("; ".join(map(str, problems)))
    return _NO_BMC if bmc is None else bmc


def _words(error: NodeprepError) -> str:
    return f"{error.message} (hint: {error.hint})" if error.hint else error.message
