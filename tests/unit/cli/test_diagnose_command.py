"""`nodeprep diagnose` as a command: documents, exit codes, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nodeprep.cli.main import invoke
from nodeprep.errors import ExitCode

BANNER = "[    0.000000] Linux version 6.8.0-79-generic\n"
XID = "[ 1000.000000] NVRM: Xid (PCI:0000:81:00): 79, GPU has fallen off the bus.\n"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (BANNER, ExitCode.OK),
        (BANNER + XID, ExitCode.REJECTED),
        ("[    9.000000] nvidia: loading\n", ExitCode.INCONCLUSIVE),
        ("", ExitCode.INCONCLUSIVE),
    ],
)
def test_exit_codes(text: str, code: ExitCode, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "dmesg.txt"
    log.write_text(text)
    assert invoke(["diagnose", "--json", str(log)]) == code
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "nodeprep.diagnosis/1"
    assert document["healthy"] is (code == ExitCode.OK)


def test_people_get_a_story(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "dmesg.txt").write_text(BANNER + XID)
    assert invoke(["diagnose", str(tmp_path)]) == ExitCode.REJECTED
    assert "0000:81:00.0" in capsys.readouterr().out


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["diagnose", "--explain", "79", "--json"]) == ExitCode.OK
    document = json.loads(capsys.readouterr().out)
    assert (document["family"], document["code"], document["known"]) == ("xid", "79", True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "nothing to diagnose"),
        (["gone.log"], "cannot read gone.log"),
        (["x", "--explain", "79"], "give one of"),
        (["x", "-o", "run"], "belong to live nodes"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_hint(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["diagnose", *arguments]) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert words in said
    assert "hint:" in said


def test_a_since_that_is_no_run_is_refused_and_leaves_no_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    command = ["diagnose", "--host", "localhost", "--since", str(tmp_path), "-o", str(out), "--json"]
    assert invoke(command) == ExitCode.USAGE
    assert "no cursors" in json.loads(capsys.readouterr().out)["error"]
    assert not out.exists()


def test_since_belongs_to_live_nodes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "dmesg.txt").write_text(BANNER)
    assert invoke(["diagnose", str(tmp_path), "--since", str(tmp_path)]) == ExitCode.USAGE
    assert "--since belong to live nodes" in capsys.readouterr().err
