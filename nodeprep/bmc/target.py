"""Which BMC belongs to a host, and the login to it, strictly from inventory variables."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from nodeprep.bmc.password import ENVIRONMENT, FILE_VARIABLE, VAULT_VARIABLE, read_password
from nodeprep.errors import Problem, UsageError

VARIABLE = "nodeprep_bmc"
Protocol = Literal["ipmi", "redfish"]
_PORTS: Mapping[str, int] = {"ipmi": 623, "redfish": 443}
_TRUST_KEYS = ("ca", "fingerprint", "insecure")
_KEYS = ("protocol", "address", "port", "user", "system", *_TRUST_KEYS)
_REQUIRED = ("protocol", "address", "user")
# Source: IPMI 2.0, 22.28 Set User Name and 22.30 Set User Password. Some BMCs cut what is longer
# and then refuse the login, others crash.
_LONGEST_USER, _LONGEST_PASSWORD = 16, 20
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class TlsTrust:
    """Which certificate a BMC must show; by default one that this machine's authorities vouch for.

    Attributes:
        ca: File of the certificates that may vouch for it, instead of this machine's.
        fingerprint: SHA-256 of its one certificate, 64 lower-case digits; nothing else is then looked at.
        insecure: Any certificate will do. Reports say so.
    """

    ca: Path | None = None
    fingerprint: str = ""
    insecure: bool = False

    def __str__(self) -> str:
        if self.insecure:
            return "certificate not verified (insecure)"
        if self.fingerprint:
            return f"pinned certificate {self.fingerprint}"
        return f"certificate verified by {self.ca or 'the authorities this machine trusts'}"


@dataclass(frozen=True, slots=True)
class BmcTarget:
    """One BMC, with all that is needed to log in.

    Attributes:
        host: Inventory name of the node it belongs to; for messages.
        password: Never shown; goes to the process that speaks IPMI through a pipe.
        tls: For Redfish.
        system: For Redfish: Id of the system that is meant, where a BMC has several; "" where it has one.
        by_options: Options of the command line name it, and no inventory; for hints.
    """

    host: str
    protocol: Protocol
    address: str
    port: int
    user: str
    password: str = field(repr=False)
    tls: TlsTrust = TlsTrust()
    system: str = ""
    by_options: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        return f"BMC of {self.host} ({self.protocol}, {self.address} port {self.port})"


def read_target(
    host: str,
    variables: Mapping[str, Any],
    environment: Mapping[str, str],
    *,
    password: str | None = None,
) -> tuple[BmcTarget | None, tuple[Problem, ...]]:
    """The BMC of a host; None when the inventory names none, or when there are problems.

    Args:
        variables: The host's inventory variables; {host} in an address or a path is the host's name.
        password: What the inventory itself holds, opened.
    """
    if VARIABLE not in variables:
        return None, ()
    access = variables[VARIABLE]
    path = f"{host}.{VARIABLE}"
    if not isinstance(access, Mapping):
        return None, (Problem(path, "must be a mapping", f"for example {{{_example()}}}"),)
    problems = [*_unknown(access, path), *_missing(access, path)]
    protocol = access.get("protocol")
    if "protocol" in access:
        problems += _protocol_problems(protocol, f"{path}.protocol")
    if "address" in access:
        problems += _address_problems(access["address"], f"{path}.address")
    port = access.get("port", _PORTS.get(protocol, 0) if isinstance(protocol, str) else 0)
    if "port" in access:
        problems += _port_problems(port, f"{path}.port")
    if "user" in access:
        problems += user_problems(access["user"], protocol, f"{path}.user")
    system = access.get("system", "")
    if "system" in access:
        problems += system_problems(system, protocol, f"{path}.system")
    trust, faults = read_trust(access, protocol, host, path)
    problems += faults
    given = password
    password, faults = _password(host, variables, protocol, environment, given)
    problems += faults
    if problems:
        return None, tuple(problems)
    address = for_host(access["address"], host)
    system = for_host(system, host)
    return BmcTarget(host, access["protocol"], address, port, access["user"], password, trust, system), ()


def read_trust(
    access: Mapping[Any, Any], protocol: Any, host: str, path: str
) -> tuple[TlsTrust, tuple[Problem, ...]]:
    """How the BMC proves who it is, from the keys ca, fingerprint and insecure.

    Args:
        path: For the problems.
    """
    given = [key for key in _TRUST_KEYS if key in access]
    if given and protocol == "ipmi":
        hint = "IPMI has no certificate to judge"
        return TlsTrust(), tuple(Problem(f"{path}.{key}", "belongs to redfish only", hint) for key in given)
    problems: list[Problem] = []
    ca = None
    if "ca" in access:
        ca, faults = absolute_path(access["ca"], host, f"{path}.ca")
        problems += faults
    fingerprint = ""
    if "fingerprint" in access:
        fingerprint = _digits(access["fingerprint"])
        if not _FINGERPRINT.fullmatch(fingerprint):
            problems.append(
                Problem(
                    f"{path}.fingerprint",
                    "is not the SHA-256 of a certificate",
                    "64 hexadecimal digits, as openssl x509 -noout -fingerprint -sha256 prints them",
                )
            )
    insecure = access.get("insecure", False)
    if not isinstance(insecure, bool):
        problems.append(Problem(f"{path}.insecure", f"{insecure!r} is neither true nor false"))
    asked = [key for key in given if key != "insecure" or insecure is True]
    if len(asked) > 1:
        problems.append(
            Problem(path, f"{' and '.join(asked)} exclude each other", "say one way to know the BMC")
        )
    if problems:
        return TlsTrust(), tuple(problems)
    return TlsTrust(ca, fingerprint, insecure), ()


def for_host(text: str, host: str) -> str:
    """A value of a group's variables, for one host: {host} is its inventory name.

    Templates would do the same; nodeprep reads these variables before any play could resolve one.
    """
    return text.replace("{host}", host)


def absolute_path(value: Any, host: str, path: str) -> tuple[Path | None, tuple[Problem, ...]]:
    """A file on the controller that an inventory variable names."""
    if not isinstance(value, str) or not value:
        return None, (Problem(path, "must be the path of a file on this machine"),)
    found = Path(for_host(value, host))
    try:
        found = found.expanduser()
    except RuntimeError:
        return None, (Problem(path, f"{value}: no such home folder"),)
    if not found.is_absolute():
        return None, (Problem(path, f"{value} is a relative path", "begin it with / or ~"),)
    return found, ()


def _unknown(access: Mapping[Any, Any], path: str) -> Iterator[Problem]:
    # Keys only: a value may be a secret that was put in the wrong place.
    for key in access:
        if key in _KEYS:
            continue
        if key == "password":
            hint = f"{ENVIRONMENT}, {FILE_VARIABLE}, or {VAULT_VARIABLE} in Ansible's vault"
        else:
            close = difflib.get_close_matches(str(key), _KEYS, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(_KEYS)}"
        yield Problem(f"{path}.{key}", "unknown key", hint)


def _missing(access: Mapping[Any, Any], path: str) -> Iterator[Problem]:
    for key in _REQUIRED:
        if key not in access:
            yield Problem(f"{path}.{key}", "is missing", f"for example {{{_example()}}}")


def _protocol_problems(value: Any, path: str) -> Iterator[Problem]:
    if not isinstance(value, str) or value not in _PORTS:
        yield Problem(path, f"{value!r} is not a protocol", f"one of {', '.join(_PORTS)}")


def _address_problems(value: Any, path: str) -> Iterator[Problem]:
    if not isinstance(value, str) or not value:
        yield Problem(path, "must be a name or an IP address")
    elif "://" in value or "/" in value:
        yield Problem(path, f"{value!r} is a URL", "write the name or the IP address alone")
    elif value.startswith("-") or any(character.isspace() for character in value):
        yield Problem(path, f"{value!r} is neither a name nor an IP address")


def _port_problems(value: Any, path: str) -> Iterator[Problem]:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 65535:
        yield Problem(path, f"{value!r} is not a port", "a number from 1 to 65535, without quotes")


def user_problems(value: Any, protocol: Any, path: str) -> Iterator[Problem]:
    """What is wrong with the name of a BMC user."""
    if not isinstance(value, str) or not value:
        yield Problem(path, "must be the name of a BMC user", "quote a name that looks like a number")
    elif protocol == "redfish":
        # Source: RFC 7617, 2: the first colon ends the user's name.
        if ":" in value or not value.isprintable():
            yield Problem(path, "holds a colon or a control character", "no BMC can have such a user")
    elif len(value.encode()) > _LONGEST_USER:
        yield Problem(path, f"is longer than IPMI's {_LONGEST_USER} bytes")


def system_problems(value: Any, protocol: Any, path: str) -> Iterator[Problem]:
    """What is wrong with the id of a system."""
    if protocol == "ipmi":
        yield Problem(path, "belongs to redfish only", "an IPMI BMC has one system")
    elif not isinstance(value, str) or not value or "/" in value:
        yield Problem(path, "must be the Id of a system", "its last part of /redfish/v1/Systems/ID, quoted")


def _digits(value: Any) -> str:
    return re.sub(r"^sha256[:=]|[:\s]", "", value.strip().lower()) if isinstance(value, str) else ""


def _password(
    host: str,
    variables: Mapping[str, Any],
    protocol: Any,
    environment: Mapping[str, str],
    given: str | None,
) -> tuple[str, tuple[Problem, ...]]:
    where = f"{host}.{FILE_VARIABLE}"
    named = None
    if FILE_VARIABLE in variables and given is not None:
        words = f"and {VAULT_VARIABLE} are both given"
        return "", (Problem(where, words, "name one place for the password"),)
    if FILE_VARIABLE in variables:
        named, problems = absolute_path(variables[FILE_VARIABLE], host, where)
        if problems:
            return "", problems
    try:
        password = read_password(named, environment, given)
    except UsageError as error:
        return "", (Problem(where if named else f"{host}.{VARIABLE}", error.message, error.hint),)
    if protocol != "redfish" and len(password.encode()) > _LONGEST_PASSWORD:
        return "", (Problem(where, f"the password is longer than IPMI's {_LONGEST_PASSWORD} bytes"),)
    return password, ()


def _example() -> str:
    return "protocol: ipmi, address: 10.0.0.7, user: admin"
