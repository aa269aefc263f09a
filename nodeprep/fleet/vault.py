"""BMC passwords that an inventory keeps in Ansible's vault, opened by Ansible's own program.

ansible-inventory opens files that are encrypted as a whole; a single encrypted value (!vault) it hands on
as it stands. What is opened goes through pipes: it is in no argument, file or log.
"""

from __future__ import annotations

import concurrent.futures
import functools
import os
import subprocess
from collections.abc import Iterable, Mapping

from nodeprep.errors import PolicyError, Problem, UsageError
from nodeprep.fleet.content import program
from nodeprep.fleet.inventory import VAULTED, Target
from nodeprep.fleet.language import WITHHELD, utf8_environment

_SEALED = "__ansible_vault"
_WORKERS = 8
_TIMEOUT_S = 60.0


def bmc_passwords(targets: Iterable[Target]) -> dict[str, str]:
    """The BMC passwords that the inventory holds, by host; hosts for which it holds none are not in it.

    Raises:
        PolicyError: Every host whose password cannot be had, at once. The texts hold no secret.
    """
    given = {target.host: target.secret for target in targets if target.secret is not None}
    sealed = {value[_SEALED] for value in given.values() if isinstance(value, Mapping)}
    # One value for a whole group is opened once.
    with concurrent.futures.ThreadPoolExecutor(_WORKERS) as pool:
        opened = dict(zip(sealed, pool.map(_opened, sealed), strict=True))
    found: dict[str, str] = {}
    problems: list[Problem] = []
    for host, value in given.items():
        plain = opened[value[_SEALED]] if isinstance(value, Mapping) else value
        if isinstance(plain, UsageError):
            problems.append(Problem(f"{host}.{VAULTED}", plain.message, plain.hint))
        elif not isinstance(plain, str):
            problems.append(Problem(f"{host}.{VAULTED}", "is not text", "put digits in quotes"))
        elif "{{" in plain:
            hint = "one reference alone, {{ vault_bmc_password }}, to a value of the same inventory"
            problems.append(Problem(f"{host}.{VAULTED}", "is a template that only a play resolves", hint))
        else:
            found[host] = plain
    if problems:
        raise PolicyError("BMC passwords in the inventory", problems)
    return found


@functools.cache
def _opened(sealed: str) -> str | UsageError:
    """What is in a vaulted value; an error instead of an exception, so that all are told together."""
    environment = {name: value for name, value in os.environ.items() if name not in WITHHELD}
    try:
        done = subprocess.run(
            [program("ansible-vault"), "decrypt", "--output", "-", "-"],
            input=sealed,
            env={**environment, **utf8_environment(), "ANSIBLE_NOCOLOR": "1", "COLUMNS": "4096"},
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        words = f"ansible-vault gave no answer within {_TIMEOUT_S:.0f} s"
        return UsageError(words, hint="name a file or a script that gives the vault's password, not a prompt")
    if done.returncode != 0:
        why = next((line for line in done.stderr.splitlines() if "ERROR" in line), "it gave no reason")
        return UsageError(
            f"ansible-vault could not open it: {why.partition('ERROR')[2].lstrip('!]: ') or why}",
            hint="ANSIBLE_VAULT_PASSWORD_FILE, or vault_password_file in ansible.cfg, names its password",
        )
    return done.stdout.removesuffix("\n")
