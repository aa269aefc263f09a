"""What the inventory may say about BMCs, and where passwords come from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from nodeprep.bmc import BmcTarget, ConsoleLog, OutOfBand, read_access
from nodeprep.bmc.password import ENVIRONMENT, FILE_VARIABLE
from nodeprep.errors import PolicyError, Problem, UsageError

SECRET = "correct-horse"
GOOD = {"protocol": "ipmi", "address": "10.0.0.7", "port": 6230, "user": "admin"}


def problems(variables: dict[str, Any], environment: dict[str, str] | None = None) -> tuple[Problem, ...]:
    with pytest.raises(PolicyError) as caught:
        read_access({"node01": variables}, {ENVIRONMENT: SECRET} if environment is None else environment)
    assert SECRET not in f"{caught.value} {caught.value!r}"
    return caught.value.problems


def secret_file(folder: Path, content: bytes = SECRET.encode() + b"\n", mode: int = 0o600) -> Path:
    path = folder / "bmc.secret"
    path.write_bytes(content)
    path.chmod(mode)
    return path


def test_a_host_with_bmc_and_console_and_one_with_neither() -> None:
    variables = {"nodeprep_bmc": GOOD, "nodeprep_console_log": "/var/log/consoles/{host}.log"}
    ways = read_access({"node01": variables, "node02": {}}, {ENVIRONMENT: SECRET})
    assert ways == {
        "node01": OutOfBand(
            BmcTarget("node01", "ipmi", "10.0.0.7", 6230, "admin", SECRET),
            ConsoleLog(Path("/var/log/consoles/node01.log")),
        ),
        "node02": OutOfBand(None, None),
    }
    assert SECRET not in f"{ways!r} {ways['node01'].bmc}"


def test_the_port_has_a_default_and_the_address_may_hold_the_hosts_name() -> None:
    access = {"protocol": "ipmi", "address": "{host}-bmc.lan", "user": "admin"}
    bmc = read_access({"node01": {"nodeprep_bmc": access}}, {ENVIRONMENT: SECRET})["node01"].bmc
    assert bmc is not None
    assert (bmc.address, bmc.port) == ("node01-bmc.lan", 623)


def test_no_password_is_asked_for_without_a_bmc() -> None:
    assert read_access({"node01": {}}, {}) == {"node01": OutOfBand()}


@pytest.mark.parametrize(
    ("change", "path", "message"),
    [
        ({"protocol": "telnet"}, "protocol", "'telnet' is not a protocol"),
        ({"protocol": ["ipmi"]}, "protocol", "['ipmi'] is not a protocol"),
        ({"address": ""}, "address", "must be a name or an IP address"),
        ({"address": 10.1}, "address", "must be a name or an IP address"),
        ({"address": "https://10.0.0.7"}, "address", "'https://10.0.0.7' is a URL"),
        ({"address": "10.0.0.7 "}, "address", "'10.0.0.7 ' is neither a name nor an IP address"),
        ({"address": "-oProxyCommand"}, "address", "'-oProxyCommand' is neither a name nor an IP address"),
        ({"port": "623"}, "port", "'623' is not a port"),
        ({"port": True}, "port", "True is not a port"),
        ({"port": 0}, "port", "0 is not a port"),
        ({"port": 65536}, "port", "65536 is not a port"),
        ({"user": 7}, "user", "must be the name of a BMC user"),
        ({"user": "a" * 17}, "user", "is longer than IPMI's 16 bytes"),
        ({"adress": "x"}, "adress", "unknown key"),
    ],
)
def test_each_value_is_judged(change: dict[str, Any], path: str, message: str) -> None:
    (problem,) = problems({"nodeprep_bmc": {**GOOD, **change}})
    assert (problem.path, problem.message) == (f"node01.nodeprep_bmc.{path}", message)


def test_all_problems_of_all_hosts_at_once() -> None:
    variables = {
        "node01": {"nodeprep_bmc": {"adress": "10.0.0.7", "port": 0}},
        "node02": {"nodeprep_bmc": "10.0.0.7", "nodeprep_console_log": "console.log"},
    }
    with pytest.raises(PolicyError) as caught:
        read_access(variables, {})
    told = {problem.path: problem for problem in caught.value.problems}
    assert set(told) == {
        "node01.nodeprep_bmc",
        "node01.nodeprep_bmc.adress",
        "node01.nodeprep_bmc.protocol",
        "node01.nodeprep_bmc.address",
        "node01.nodeprep_bmc.user",
        "node01.nodeprep_bmc.port",
        "node02.nodeprep_bmc",
        "node02.nodeprep_console_log",
    }
    assert told["node01.nodeprep_bmc.adress"].hint == "did you mean address?"
    assert told["node02.nodeprep_console_log"].hint == "begin it with / or ~"


def test_a_password_in_the_inventory_is_refused_and_not_repeated() -> None:
    (problem,) = problems({"nodeprep_bmc": {**GOOD, "password": SECRET}}, {ENVIRONMENT: "other"})
    assert problem.path == "node01.nodeprep_bmc.password"
    assert "nodeprep_bmc_password in Ansible's vault" in problem.hint
    problems({"nodeprep_bmc": {**GOOD, "passwd": SECRET}}, {ENVIRONMENT: "other"})


def test_a_missing_password_is_a_usage_error_that_says_where_to_put_it() -> None:
    assert issubclass(PolicyError, UsageError)
    (problem,) = problems({"nodeprep_bmc": GOOD}, {})
    assert problem.message == "the BMC's password is not given"
    assert ENVIRONMENT in problem.hint
    assert FILE_VARIABLE in problem.hint


@pytest.mark.parametrize("ending", [b"", b"\n", b"\r\n"])
def test_the_password_from_a_file(tmp_path: Path, ending: bytes) -> None:
    path = secret_file(tmp_path, b" two words " + ending)
    variables = {"nodeprep_bmc": GOOD, FILE_VARIABLE: str(path)}
    bmc = read_access({"node01": variables}, {})["node01"].bmc
    assert bmc is not None
    assert bmc.password == " two words "


def test_the_environment_comes_before_the_file(tmp_path: Path) -> None:
    variables = {"nodeprep_bmc": GOOD, FILE_VARIABLE: str(secret_file(tmp_path))}
    bmc = read_access({"node01": variables}, {ENVIRONMENT: "of-this-run"})["node01"].bmc
    assert bmc is not None
    assert bmc.password == "of-this-run"


def test_each_host_may_have_a_file_of_its_own(tmp_path: Path) -> None:
    secret_file(tmp_path).rename(tmp_path / "node01")
    variables = {"nodeprep_bmc": GOOD, FILE_VARIABLE: f"{tmp_path}/{{host}}"}
    bmc = read_access({"node01": variables}, {})["node01"].bmc
    assert bmc is not None
    assert bmc.password == SECRET


@pytest.mark.parametrize("mode", [0o604, 0o644, 0o606, 0o602])
def test_a_file_open_to_everybody_is_refused(tmp_path: Path, mode: int) -> None:
    path = secret_file(tmp_path, mode=mode)
    (problem,) = problems({"nodeprep_bmc": GOOD, FILE_VARIABLE: str(path)}, {})
    assert problem.path == f"node01.{FILE_VARIABLE}"
    assert f"(mode {mode:04o})" in problem.message
    assert problem.hint.startswith(f"chmod 600 {path}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\n", "is empty"),
        (SECRET.encode() + b"\nand more\n", "has a line break or another control character"),
        (SECRET.encode() + b"\xff", "is not text in UTF-8"),
        (SECRET.encode() + b"\0", "has a line break or another control character"),
        (SECRET.encode() * 100, "is too long for a password"),
        (SECRET.encode() + b"-battery", "is longer than IPMI's 20 bytes"),
    ],
)
def test_a_file_that_holds_no_usable_password(tmp_path: Path, content: bytes, message: str) -> None:
    path = secret_file(tmp_path, content)
    (problem,) = problems({"nodeprep_bmc": GOOD, FILE_VARIABLE: str(path)}, {})
    assert message in problem.message


def test_a_file_that_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (problem,) = problems({"nodeprep_bmc": GOOD, FILE_VARIABLE: str(tmp_path / "none")}, {})
    assert problem.message.endswith("none: No such file or directory")
    path = secret_file(tmp_path)

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        # The tests may run as root, whom no mode stops.
        patch.setattr(os, "open", refuse)
        (problem,) = problems({"nodeprep_bmc": GOOD, FILE_VARIABLE: str(path)}, {})
    assert problem.message == f"cannot read {path}: Permission denied"


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_not_a_file_is_refused_and_not_waited_for(tmp_path: Path, make: Any) -> None:
    path = tmp_path / "secret"
    make(path)
    (problem,) = problems({"nodeprep_bmc": GOOD, FILE_VARIABLE: str(path)}, {})
    assert problem.message == f"{path} is not a file"


def test_a_way_back_over_redfish(tmp_path: Path) -> None:
    access = {"protocol": "redfish", "address": "10.0.0.7", "user": "admin", "ca": str(tmp_path / "ca.pem")}
    bmc = read_access({"node01": {"nodeprep_bmc": access}}, {ENVIRONMENT: SECRET})["node01"].bmc
    assert bmc is not None
    assert (bmc.protocol, bmc.port, bmc.tls.ca) == ("redfish", 443, tmp_path / "ca.pem")
