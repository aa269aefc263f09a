"""Which hosts a pattern means, and the nodeprep variables each has, asked of Ansible itself."""

from __future__ import annotations

import difflib
import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nodeprep.errors import UsageError
from nodeprep.fleet.content import program
from nodeprep.fleet.language import WITHHELD, utf8_environment

LOCALHOST = "localhost"
_PREFIX = "nodeprep_"
# Read by the controller before any play runs, so a template in them would be taken for text.
_READ_HERE = (
    "nodeprep_bmc",
    "nodeprep_bmc_password_file",
    "nodeprep_console_log",
    "nodeprep_policy",
    "nodeprep_profile",
)
# Never among the variables, which are shown and compared; see fleet/vault.py.
VAULTED = "nodeprep_bmc_password"
_REFERENCE = re.compile(r"\{\{\s*(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*\}\}")
_LOCAL = ("local", "ansible.builtin.local")
_TIMEOUT_S = 120.0
_UNMATCHED = re.compile(r"Could not match supplied host pattern, ignoring: (?P<pattern>\S+)")
_UNPARSED = re.compile(r"Unable to parse (?P<source>.+?) as an inventory source|Completely failed to parse")


@dataclass(frozen=True)
class Target:
    """A host that a run is about.

    Attributes:
        variables: Its inventory variables that begin with "nodeprep_" and are plain values.
            Templates, vaulted values, connection variables and passwords stay with Ansible.
        local: The inventory says that the host is this machine, worked on without ssh.
        secret: What the inventory has for nodeprep_bmc_password, perhaps still sealed; None for nothing.
    """

    host: str
    variables: Mapping[str, Any]
    local: bool = False
    secret: Any = field(default=None, repr=False)


def read_targets(inventory: Path | None, pattern: str | None) -> tuple[Target, ...]:
    """The hosts of a pattern, in inventory order.

    Args:
        inventory: File, folder or script; None means this machine alone.
        pattern: Ansible host pattern; None means all.

    Raises:
        UsageError: The inventory cannot be read, or the pattern (or a part of it) matches nothing.
        NodeprepError: Ansible is not installed.
    """
    if inventory is None:
        if pattern not in (None, "all", LOCALHOST):
            raise UsageError(
                f"no host {pattern!r}: without an inventory there is only {LOCALHOST}",
                hint="name an inventory with -i, or leave the hosts out",
            )
        return (Target(LOCALHOST, {}, local=True),)
    if not inventory.exists():
        raise UsageError(f"no inventory at {inventory}", hint="name an inventory file or folder with -i")
    found, unmatched = _list(inventory, pattern)
    if unmatched or not found.hosts:
        everything, _ = (found, []) if pattern is None else _list(inventory, None)
        raise _no_match(inventory, pattern, unmatched, everything)
    return tuple(_target(host, found.variables.get(host, {})) for host in found.hosts)


@dataclass(frozen=True)
class _Listing:
    hosts: tuple[str, ...]
    groups: tuple[str, ...]
    variables: Mapping[str, Mapping[str, Any]]


def _list(inventory: Path, pattern: str | None) -> tuple[_Listing, list[str]]:
    command = [program("ansible-inventory"), "-i", str(inventory), "--list"]
    if pattern is not None:
        command += ["--limit", pattern]
    # A source that no plugin understands is a warning by default, and the run then has no hosts.
    environment = {
        **{name: value for name, value in os.environ.items() if name not in WITHHELD},
        **utf8_environment(),
        "ANSIBLE_INVENTORY_UNPARSED_FAILED": "1",
        "ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED": "1",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_FORCE_COLOR": "0",
        "COLUMNS": "4096",
    }
    try:
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise UsageError(
            f"the inventory {inventory} gave no answer within {_TIMEOUT_S:.0f} s",
            hint="run `ansible-inventory -i ... --list` by hand; a dynamic inventory may be waiting",
        ) from error
    if done.returncode != 0:
        raise UsageError(
            f"Ansible cannot read the inventory {inventory}:\n{_words(done.stderr)}",
            hint=f"`ansible-inventory -i {inventory} --list` must succeed",
        )
    try:
        return _parse(json.loads(done.stdout)), _UNMATCHED.findall(done.stderr)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"ansible-inventory printed no listing for {inventory}: {error}",
            hint=f"look at `ansible-inventory -i {inventory} --list`",
        ) from error


def _parse(data: Mapping[str, Any]) -> _Listing:
    variables: Mapping[str, Mapping[str, Any]] = data["_meta"]["hostvars"]
    hosts: dict[str, None] = {}
    for name in _walk(data, "all", set()):
        hosts.setdefault(name)
    groups = tuple(name for name in data if name not in ("_meta", "all", "ungrouped"))
    return _Listing(tuple(hosts), groups, variables)


def _walk(data: Mapping[str, Any], group: str, seen: set[str]) -> Iterator[str]:
    if group in seen or group not in data:
        return
    seen.add(group)
    yield from data[group].get("hosts", ())
    for child in data[group].get("children", ()):
        yield from _walk(data, child, seen)


def _target(host: str, variables: Mapping[str, Any]) -> Target:
    local = variables.get("ansible_connection") in _LOCAL
    return Target(host, _own(host, variables), local=local, secret=_secret(variables))


def _secret(variables: Mapping[str, Any]) -> Any:
    """The BMC's password as it stands, through one reference as Ansible's manual has it."""
    value = variables.get(VAULTED)
    reference = _REFERENCE.fullmatch(value.strip()) if isinstance(value, str) else None
    return value if reference is None else variables.get(reference["name"], value)


def _own(host: str, variables: Mapping[str, Any]) -> dict[str, Any]:
    own: dict[str, Any] = {}
    for name, value in variables.items():
        if not name.startswith(_PREFIX) or name == VAULTED:
            continue
        where = _not_literal(value, name)
        if not where:
            own[name] = value
        elif name in _READ_HERE:
            raise UsageError(
                f"{host}: {where} is a template or a vaulted value; nodeprep reads this one as written",
                hint=f"write the value of {where} out in the inventory",
            )
    return own


def _not_literal(value: Any, path: str) -> str:
    """Path of the first part that only a play could resolve; "" when all is literal."""
    if isinstance(value, str):
        return path if "{{" in value or "{%" in value else ""
    if isinstance(value, Mapping):
        if "__ansible_vault" in value:
            return path
        parts: Sequence[tuple[str, Any]] = [(f"{path}.{key}", inner) for key, inner in value.items()]
    elif isinstance(value, list):
        parts = [(f"{path}[{index}]", inner) for index, inner in enumerate(value)]
    else:
        return ""
    return next((found for name, inner in parts if (found := _not_literal(inner, name))), "")


def _words(stderr: str) -> str:
    """Ansible's own words, without blank and repeated lines."""
    lines = dict.fromkeys(line.strip() for line in stderr.splitlines())
    return "\n".join(f"  {line}" for line in lines if line and not line.startswith("<<<"))[:4000]


def _no_match(
    inventory: Path, pattern: str | None, unmatched: Sequence[str], everything: _Listing
) -> UsageError:
    if not everything.hosts:
        return UsageError(
            f"the inventory {inventory} has no hosts", hint="add hosts to it, or name another with -i"
        )
    names = [*everything.hosts, *everything.groups]
    wrong = unmatched or [pattern or "all"]
    close = dict.fromkeys(
        match for part in wrong for match in difflib.get_close_matches(part, names, n=3, cutoff=0.5)
    )
    if close:
        hint = f"did you mean {', '.join(close)}?"
    else:
        more = f" and {len(names) - 10} more" if len(names) > 10 else ""
        hint = f"hosts and groups: {', '.join(names[:10])}{more}"
    return UsageError(f"nothing in {inventory} matches {', '.join(map(repr, wrong))}", hint=hint)
