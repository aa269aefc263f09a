"""What an inventory, or a command line, may say about a BMC that is spoken to over Redfish."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nodeprep.bmc import BmcTarget
from nodeprep.bmc.password import ENVIRONMENT
from nodeprep.bmc.target import TlsTrust, read_target
from nodeprep.bmc.target_url import redfish_target
from nodeprep.errors import PolicyError, Problem, UsageError

SECRET = "correct-horse"
ENV = {ENVIRONMENT: SECRET}
GOOD = {"protocol": "redfish", "address": "{host}-bmc.lan", "user": "admin"}
DIGITS = "ab" * 32
COLONS = ":".join(["AB"] * 32)


def target(**more: Any) -> BmcTarget:
    bmc, problems = read_target("node01", {"nodeprep_bmc": {**GOOD, **more}}, ENV)
    assert bmc is not None, problems
    return bmc


def problem(secret: str = SECRET, **change: Any) -> Problem:
    bmc, (only,) = read_target("node01", {"nodeprep_bmc": {**GOOD, **change}}, {ENVIRONMENT: secret})
    assert bmc is None
    return only


def test_redfish_with_its_port_and_the_machine_s_authorities() -> None:
    assert target() == BmcTarget("node01", "redfish", "node01-bmc.lan", 443, "admin", SECRET, TlsTrust())
    assert SECRET not in repr(target())


def test_ways_to_know_the_bmc() -> None:
    assert target(ca="/etc/{host}.pem").tls == TlsTrust(ca=Path("/etc/node01.pem"))
    assert target(insecure=True).tls == TlsTrust(insecure=True)
    assert target(insecure=False).tls == TlsTrust()
    assert target(insecure=False, ca="/x").tls == TlsTrust(ca=Path("/x"))


@pytest.mark.parametrize("written", [DIGITS, DIGITS.upper(), COLONS, f"SHA256:{COLONS}", f"sha256={DIGITS}"])
def test_a_fingerprint_in_the_forms_in_which_it_is_printed(written: str) -> None:
    assert target(fingerprint=written).tls == TlsTrust(fingerprint=DIGITS)


@pytest.mark.parametrize(
    ("change", "path", "message"),
    [
        ({"fingerprint": "ab" * 20}, ".fingerprint", "is not the SHA-256 of a certificate"),
        ({"fingerprint": 7}, ".fingerprint", "is not the SHA-256 of a certificate"),
        ({"insecure": "yes"}, ".insecure", "'yes' is neither true nor false"),
        ({"ca": "bmc.pem"}, ".ca", "bmc.pem is a relative path"),
        ({"ca": ""}, ".ca", "must be the path of a file on this machine"),
        ({"ca": "/x", "insecure": True}, "", "ca and insecure exclude each other"),
        ({"ca": "/x", "fingerprint": DIGITS}, "", "ca and fingerprint exclude each other"),
        ({"user": "a:b"}, ".user", "holds a colon or a control character"),
        ({"insecur": True}, ".insecur", "unknown key"),
    ],
)
def test_each_value_is_judged(change: dict[str, Any], path: str, message: str) -> None:
    found = problem(**change)
    assert (found.path, found.message) == (f"node01.nodeprep_bmc{path}", message)


@pytest.mark.parametrize("key", ["ca", "fingerprint", "insecure"])
def test_ipmi_has_no_certificate(key: str) -> None:
    values = {"ca": "/x", "fingerprint": DIGITS, "insecure": True}
    found = problem(protocol="ipmi", **{key: values[key]})
    assert found.message == "belongs to redfish only"


def test_the_limits_of_ipmi_are_not_those_of_redfish() -> None:
    long = "x" * 40
    bmc, _ = read_target("n", {"nodeprep_bmc": {**GOOD, "user": long}}, {ENVIRONMENT: long})
    assert bmc is not None
    assert (bmc.user, bmc.password) == (long, long)


# On the command line


def test_a_bmc_by_its_url(tmp_path: Path) -> None:
    assert redfish_target("https://127.0.0.1:8443", "admin", ENV) == BmcTarget(
        "127.0.0.1", "redfish", "127.0.0.1", 8443, "admin", SECRET
    )
    assert redfish_target("bmc7.lan", "admin", ENV, insecure=True).tls == TlsTrust(insecure=True)
    assert redfish_target("https://[fe80::1]/redfish/v1/", "a", ENV, fingerprint=COLONS).address == "fe80::1"
    file = tmp_path / "secret"
    file.write_text("from-file\n")
    file.chmod(0o600)
    assert (
        redfish_target("https://x", "a", {}, password_file=file, ca=Path("rel.pem")).password == "from-file"
    )


@pytest.mark.parametrize(
    "url",
    [
        "http://x",
        "ipmi://x",
        "https://",
        "https://x/ui",
        "https://x:y",
        "https://x?a=b",
        "",
        "https://x:99999",
    ],
)
def test_what_is_no_url_of_a_bmc(url: str) -> None:
    with pytest.raises(UsageError):
        redfish_target(url, "admin", ENV)


def test_a_password_in_the_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(UsageError) as caught:
        redfish_target("https://admin:battery-staple@x", "admin", ENV)
    assert "battery-staple" not in f"{caught.value} {caught.value.hint}"


def test_no_password_and_too_much_trust() -> None:
    with pytest.raises(UsageError, match="password is not given"):
        redfish_target("https://x", "admin", {})
    with pytest.raises(PolicyError, match="exclude each other"):
        redfish_target("https://x", "admin", ENV, insecure=True, fingerprint=DIGITS)
    with pytest.raises(PolicyError, match="colon"):
        redfish_target("https://x", "a:b", ENV)


def test_the_system_that_is_meant() -> None:
    found, problems = read_target("node01", {"nodeprep_bmc": {**GOOD, "system": "{host}"}}, ENV)
    assert problems == ()
    assert found is not None
    assert found.system == "node01"
    assert redfish_target("https://x", "admin", ENV, system="2").system == "2"
    for system, protocol in ((2, "redfish"), ("/redfish/v1/Systems/2", "redfish"), ("2", "ipmi")):
        access = {"protocol": protocol, "address": "x", "user": "admin", "system": system}
        found, (problem,) = read_target("node01", {"nodeprep_bmc": access}, ENV)
        assert (found, problem.path) == (None, "node01.nodeprep_bmc.system")
