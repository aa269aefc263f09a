"""The BIOS of nodes as their BMCs tell it: read by the controller, and part of the nodes' facts."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from nodeprep.bmc import for_all
from nodeprep.bmc.bios import from_policy
from nodeprep.bmc.bios import show as show_knobs
from nodeprep.bmc.redfish.connection import Connection
from nodeprep.bmc.redfish.patience import Clock
from nodeprep.bmc.redfish.reading import machine_of
from nodeprep.bmc.target import VARIABLE, BmcTarget, read_target
from nodeprep.errors import NodeprepError, PolicyError
from nodeprep.fleet import Target, bmc_passwords
from nodeprep.model.bios import BiosFacts
from nodeprep.model.facts import NodeFacts
from nodeprep.model.policy import Policy
from nodeprep.model.reading import Reading
from nodeprep.workflows.bios import NoBios, is_simulated, look, nothing_known, plan_of, readable
from nodeprep.workflows.bios_restore import serial_of

MakeClock = Callable[[threading.Event], Clock]

# A look, and no change: a BMC that gives no answer must not hold up the others for the time of a change.
_PATIENCE_S = 45.0
# For one BMC altogether; a busy iDRAC takes 20 s for its registry alone.
_LOOK_S = 240.0
# They wait most of the time; what they parse is short.
_WORKERS = 32
_NO_BMC = Reading[BiosFacts].not_supported(f"the inventory names no BMC of this host ({VARIABLE})")
_IPMI = Reading[BiosFacts].not_supported(
    f"the inventory names its BMC over IPMI ({VARIABLE}), which has no path to BIOS settings"
)


def bios_target(
    target: Target, environment: Mapping[str, str] | None = None
) -> BmcTarget | Reading[BiosFacts]:
    """The Redfish BMC of a host, or why its BIOS cannot be read.

    A fault of one host's access, a missing password among them, is an error of that host alone: the facts of
    the others do not depend on it.
    """
    env = os.environ if environment is None else environment
    try:
        password = bmc_passwords((target,)).get(target.host)
    except PolicyError as error:
        return Reading.error("; ".join(map(str, error.problems)))
    bmc, problems = read_target(target.host, target.variables, env, password=password)
    named = target.variables.get(VARIABLE)
    if bmc is None and not problems:
        return _NO_BMC
    if isinstance(named, Mapping) and named.get("protocol") == "ipmi":
        return _IPMI
    if bmc is None:
        return Reading.error("; ".join(map(str, problems)))
    return bmc


def read_bios(
    targets: Iterable[Target], policies: Mapping[str, Policy], *, make_clock: MakeClock = Clock
) -> dict[str, Reading[BiosFacts]]:
    """The BIOS of each host, many at once; a host whose BMC fails has the error.

    Args:
        policies: By host; they say which knobs and values the BMC is asked for.
    """
    found: dict[str, Reading[BiosFacts]] = {}
    asked: dict[str, BmcTarget] = {}
    targets = tuple(targets)
    with contextlib.suppress(PolicyError):
        # All vaulted passwords at once; what is wrong with one is told of its own host below.
        bmc_passwords(targets)
    for target in targets:
        way = bios_target(target)
        if isinstance(way, Reading):
            found[target.host] = way
        else:
            asked[target.host] = way

    def ask(bmc: BmcTarget, cancelled: threading.Event) -> BiosFacts:
        return _look(bmc, policies[bmc.host].bios_wanted(), make_clock(cancelled))

    for host, answer in for_all(asked, ask, workers=_WORKERS).items():
        found[host] = (
            Reading.error(_words(answer)) if isinstance(answer, NodeprepError) else Reading.ok(answer)
        )
    return found


def with_bios(facts: NodeFacts, bios: Reading[BiosFacts]) -> NodeFacts:
    """Facts of a node with those of its BIOS; a simulated BMC makes all of it simulated."""
    simulated = facts.simulated or (bios.value is not None and bios.value.simulated)
    return replace(facts, bios=bios, simulated=simulated)


def _look(bmc: BmcTarget, wanted: Mapping[str, Any], clock: Clock) -> BiosFacts:
    with (
        readable(),
        Connection(bmc, patience_s=_PATIENCE_S, clock=clock) as connection,
        connection.within(_LOOK_S),
    ):
        found = look(connection)
        view, machine = (
            (nothing_known(), machine_of(found.service))
            if isinstance(found, NoBios)
            else (found.view, found.machine)
        )
        state = show_knobs(machine, view)
        plan = plan_of(connection, found, from_policy(wanted))
        return BiosFacts(
            bmc=state.bmc,
            registry=state.registry,
            serial=serial_of(found.service),
            knobs=state.knobs,
            answers=plan.knobs,
            blocked_by=plan.blocked_by,
            simulated=is_simulated(found.service),
            tls=plan.tls,
            notes=plan.notes,
        )


def _words(error: NodeprepError) -> str:
    return f"{error.message} (hint: {error.hint})" if error.hint else error.message
