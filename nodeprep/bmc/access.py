"""The ways around a node that its inventory names: its BMC and the log of its console."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nodeprep.bmc.console import ConsoleLog, read_console_log
from nodeprep.bmc.target import BmcTarget, read_target
from nodeprep.errors import PolicyError, Problem


@dataclass(frozen=True, slots=True)
class OutOfBand:
    """How to reach a node that does not answer; None is what the inventory does not name."""

    bmc: BmcTarget | None = None
    console: ConsoleLog | None = None


def read_access(
    variables: Mapping[str, Mapping[str, Any]],
    environment: Mapping[str, str] | None = None,
    *,
    passwords: Mapping[str, str] | None = None,
) -> dict[str, OutOfBand]:
    """The ways around each host, from its inventory variables.

    Args:
        variables: By host: `nodeprep_bmc`, `nodeprep_bmc_password_file`, `nodeprep_console_log`.
        passwords: By host, what the inventory itself holds.
        environment: Where NODEPREP_BMC_PASSWORD is looked for; by default this process's.

    Raises:
        PolicyError: Every fault of every host at once, a missing password among them.
    """
    env = os.environ if environment is None else environment
    ways: dict[str, OutOfBand] = {}
    problems: list[Problem] = []
    for host, own in variables.items():
        bmc, of_bmc = read_target(host, own, env, password=(passwords or {}).get(host))
        console, of_console = read_console_log(host, own)
        problems += [*of_bmc, *of_console]
        ways[host] = OutOfBand(bmc, console)
    if problems:
        raise PolicyError("BMC access in the inventory", problems)
    return ways
