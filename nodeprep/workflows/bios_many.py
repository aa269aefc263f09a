"""The BIOS of many machines through their BMCs, named in an inventory; no node is spoken to."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from nodeprep.bmc import BmcTarget, for_all
from nodeprep.bmc.redfish.connection import Connection
from nodeprep.bmc.target import VARIABLE, read_target
from nodeprep.errors import NodeprepError, PolicyError, UsageError
from nodeprep.fleet import Target, bmc_passwords

T = TypeVar("T")
Connect = Callable[[BmcTarget], Connection]
Ask = Callable[[BmcTarget, Connect], T]
Done = Callable[[str, NodeprepError | None], None]

# A look, and no change: one that gives no answer must not hold up a rack for the time of a change.
PATIENCE_S = 45.0
# More threads do not go faster: what they do not wait for is parsing, which Python does on one CPU.
WORKERS = 32


def ask_all(
    targets: Iterable[Target],
    ask: Ask[T],
    *,
    done: Done = lambda _host, _error: None,
    environment: Mapping[str, str] | None = None,
    workers: int = WORKERS,
) -> dict[str, T | NodeprepError]:
    """Asks the BMC of each host; a host whose BMC fails, or that has none, has the error.

    Args:
        ask: What is asked; speaks to the BMC through what it is given.
        done: Told of each host as it ends, from any thread.

    Raises:
        Interrupted: Ctrl-C.
    """
    env = os.environ if environment is None else environment
    targets = tuple(targets)
    with contextlib.suppress(PolicyError):
        # All vaulted passwords at once; what is wrong with one is told of its own host below.
        bmc_passwords(targets)
    ways = {target.host: (target.host, _way(target, env)) for target in targets}

    def one(subject: tuple[str, BmcTarget | NodeprepError], cancelled: threading.Event) -> T:
        host, way = subject
        error: NodeprepError | None = None
        try:
            if isinstance(way, NodeprepError):
                raise way
            return ask(way, lambda bmc: Connection(bmc, patience_s=PATIENCE_S, cancelled=cancelled))
        except NodeprepError as raised:
            error = raised
            raise
        finally:
            done(host, error)

    return for_all(ways, one, workers=workers)


def _way(target: Target, environment: Mapping[str, str]) -> BmcTarget | NodeprepError:
    try:
        password = bmc_passwords((target,)).get(target.host)
    except PolicyError as error:
        return error
    bmc, problems = read_target(target.host, target.variables, environment, password=password)
    if problems:
        return PolicyError(f"the BMC of {target.host} in the inventory", problems)
    if bmc is None:
        return UsageError(f"the inventory names no BMC of {target.host}", hint=f"{VARIABLE}: see docs/bmc.md")
    if bmc.protocol != "redfish":
        return UsageError(
            f"the {bmc} is named with {bmc.protocol}, which has no path to BIOS settings",
            hint=f"{VARIABLE}: protocol: redfish, where the BMC speaks it",
        )
    return bmc
