"""One BMC named on the command line: --bmc URL --user NAME, without an inventory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from nodeprep.bmc.password import read_password
from nodeprep.bmc.target import BmcTarget, read_trust, system_problems, user_problems
from nodeprep.errors import PolicyError, Problem, UsageError

_HTTPS = 443
_SERVICE = "/redfish/v1"
_PASSWORD_OPTION = "--bmc-password-file"  # noqa: S105 - the name of an option


def redfish_target(
    url: str,
    user: str,
    environment: Mapping[str, str],
    *,
    password_file: Path | None = None,
    ca: Path | None = None,
    fingerprint: str = "",
    insecure: bool = False,
    system: str = "",
    by_options: bool = False,
) -> BmcTarget:
    """The Redfish BMC at a URL; its host name is the URL's.

    Args:
        url: https://ADDRESS[:PORT], or the address alone.
        system: Id of the system that is meant, where the BMC has several.
        by_options: Options of the command line name it, so hints name them.

    Raises:
        UsageError: The URL, the user, the password or the trust cannot be meant so.
    """
    address, port = _address(url)
    given: dict[str, object] = {"insecure": insecure}
    if ca is not None:
        given["ca"] = str(ca.absolute())
    if fingerprint:
        given["fingerprint"] = fingerprint
    trust, problems = read_trust(given, "redfish", address, "--bmc")
    all_problems: list[Problem] = [*problems, *user_problems(user, "redfish", "--user")]
    if system:
        all_problems += system_problems(system, "redfish", "--system")
    if all_problems:
        raise PolicyError(f"the BMC {address}", all_problems)
    password = read_password(password_file, environment, option=_PASSWORD_OPTION if by_options else "")
    return BmcTarget(address, "redfish", address, port, user, password, trust, system, by_options=by_options)


def _address(url: str) -> tuple[str, int]:
    try:
        parts = urlsplit(url if "://" in url else f"https://{url}")
        port = parts.port
    except ValueError as error:
        raise UsageError(f"{url!r} is not the URL of a BMC: {error}") from error
    if parts.username is not None or parts.password is not None:
        # Not repeated: it may hold the password.
        raise UsageError(
            "the URL of a BMC holds a user", hint="--user NAME; the password is never an argument"
        )
    if parts.scheme != "https":
        raise UsageError(
            f"{url}: only https carries a password", hint="https://ADDRESS[:PORT], with --insecure if need be"
        )
    if not parts.hostname or parts.path.rstrip("/") not in ("", _SERVICE) or parts.query or parts.fragment:
        raise UsageError(f"{url!r} is not the URL of a BMC", hint="https://ADDRESS[:PORT]")
    return parts.hostname, port or _HTTPS
