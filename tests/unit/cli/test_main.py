"""Errors become exit codes, words and, with --json, one document."""

from __future__ import annotations

import errno
import json
import re
import subprocess
import sys

import pytest
import typer

from nodeprep.cli.main import explain, invoke
from nodeprep.errors import (
    ApplyFailed,
    DriftFound,
    ExitCode,
    Inconclusive,
    Interrupted,
    NodeprepError,
    PolicyError,
    Problem,
    Rejected,
    Unreachable,
    UsageError,
    worst,
)

COMMANDS = (
    "init",
    "inspect",
    "plan",
    "apply",
    "rollback",
    "verify",
    "certify",
    "diagnose",
    "report",
    "demo",
    "doctor",
    "cert",
    "sim",
)


def test_help_names_every_command_and_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["--help"]) == ExitCode.OK
    text = " ".join(capsys.readouterr().out.split())
    for command in COMMANDS:
        assert command in text
    for code in ("10 drift", "11 apply failed", "20 rejected", "21 inconclusive", "130 interrupted"):
        assert code in text


def test_a_command_does_not_load_the_others() -> None:
    program = (
        "import sys; from nodeprep.cli.main import invoke; invoke(['diagnose', '--explain', '79']); "
        "print(sorted(name for name in sys.modules if name in ('nodeprep.cli.apply', 'nodeprep.cli.demo')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("command", [*COMMANDS[:-2], "cert verify", "cert show", "cert drift", "sim rack"])
def test_every_command_has_help_and_takes_json(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke([*command.split(), "--help"]) == ExitCode.OK
    text = capsys.readouterr().out
    assert "--json" in text
    assert "--quiet" in text
    assert "--verbose" in text


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["--version"]) == ExitCode.OK
    assert re.fullmatch(r"nodeprep \d+\.\d+\.\d+\n", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("x"), 2),
        (PolicyError("f", [Problem("a.b", "unknown key")]), 2),
        (DriftFound("x"), 10),
        (ApplyFailed("x"), 11),
        (Unreachable("x"), 12),
        (Rejected("x"), 20),
        (Inconclusive("x"), 21),
        (Interrupted("x"), 130),
        (KeyboardInterrupt(), 130),
        (typer.BadParameter("x"), 2),
        (OSError(errno.ENOSPC, "No space left on device", "/f"), 2),
        (NodeprepError("x"), 1),
        (ZeroDivisionError("x"), 1),
    ],
)
def test_exit_codes_are_those_of_the_contract(error: BaseException, code: int) -> None:
    assert explain(error).exit_code == code


def test_a_full_disk_says_what_to_do() -> None:
    told = explain(OSError(errno.ENOSPC, "No space left on device", "/var/x"))
    assert "/var/x" in told.error
    assert "free some space" in told.hint


def test_a_usage_error_with_json_is_one_document_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    code = invoke(["inspect", "--json", "--no-such-option"])
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert code == ExitCode.USAGE == document["exit_code"]
    assert document["schema"] == "nodeprep.error/1"
    assert "no-such-option" in document["error"]
    assert "error:" in captured.err


def test_apply_does_not_write_when_nobody_can_say_yes(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["apply", "--json"]) == ExitCode.USAGE
    assert "--yes" in json.loads(capsys.readouterr().out)["hint"]


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([], 0),
        ([0, 10], 10),
        ([10, 21], 21),
        ([21, 12], 12),
        ([12, 20], 20),
        ([20, 11], 11),
        ([11, 2], 2),
        ([2, 1, 0], 1),
        ([1, 130], 130),
    ],
)
def test_several_hosts_end_with_the_worst(codes: list[int], expected: int) -> None:
    assert worst(ExitCode(code) for code in codes) == expected


def test_ctrl_c_while_the_program_loads_is_an_interruption_and_no_traceback() -> None:
    program = (
        "import sys\n"
        "class Pressed:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'typer': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Pressed())\n"
        "from nodeprep.cli.__main__ import run\n"
        "run()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "error: interrupted\n")
