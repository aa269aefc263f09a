"""stdout is data, stderr is talk; nothing in the data is taken for markup."""

from __future__ import annotations

import pytest

from nodeprep.cli import _command
from nodeprep.cli._output import Output
from nodeprep.cli.verify import show_checks, show_summary
from nodeprep.fleet import FleetEvent
from nodeprep.model.outputs import Created
from nodeprep.model.result import CheckResult


def result(check: str, status: str, reason: str, subject: str = "node") -> CheckResult:
    return CheckResult(id=check, subject=subject, status=status, reason=reason)  # type: ignore[arg-type]


def test_with_json_only_the_document_is_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    out = Output(json=True)
    out.show("for people")
    out.document(Created(folder="d", files=(), next="n"))
    captured = capsys.readouterr()
    assert captured.out.startswith("{")
    assert "for people" not in captured.out + captured.err


def test_quiet_keeps_errors(capsys: pytest.CaptureFixture[str]) -> None:
    out = Output(quiet=True)
    out.say("talk")
    out.error("broken", "mend it")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "talk" not in captured.err
    assert "error: broken" in captured.err
    assert "hint: mend it" in captured.err


def test_pci_addresses_and_brackets_stay_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    out = Output()
    show_checks(
        "n",
        [result("c", "FAIL", "[bold]AER[/] on 0000:cd:02.0", subject="0000:cd:02.0")],
        out,
        everything=False,
    )
    text = capsys.readouterr().out
    assert "0000:cd:02.0" in text
    assert "[bold]AER[/]" in text


def test_checks_that_say_the_same_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    checks = [result(name, "ERROR", "not measured") for name in ("a", "b", "c", "d", "e")]
    show_checks("n", checks, Output(), everything=False)
    text = capsys.readouterr().out
    assert "5 ERROR" in text
    assert text.count("not measured") == 1
    assert "a and 4 more" in text


def test_passed_checks_are_shown_only_when_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    show_checks("n", [result("fine", "PASS", "good")], Output(), everything=False)
    assert "fine" not in capsys.readouterr().out
    show_checks("n", [result("fine", "PASS", "good")], Output(), everything=True)
    assert "fine" in capsys.readouterr().out


def test_the_summary_says_how_much_it_leaves_out(capsys: pytest.CaptureFixture[str]) -> None:
    show_summary([("n1", "rejected", ["first", "second", "third"]), ("n2", "certified", [])], Output())
    text = capsys.readouterr().out
    assert "first (and 2 more)" in text
    assert "certified" in text


@pytest.mark.parametrize(
    ("names", "of", "words"),
    [
        (["a"], 8, "a"),
        (["a", "b"], 8, "a, b"),
        (["a", "b", "c"], 8, "a and 2 more"),
        (list("abc"), 3, "all 3 GPUs"),
    ],
)
def test_subjects(names: list[str], of: int, words: str) -> None:
    assert _command.subjects(names, of) == words


def test_progress_without_a_terminal_is_plain_lines_said_once(capsys: pytest.CaptureFixture[str]) -> None:
    with Output().progress(2) as view:
        for message in ("loading", "loading", "done loading"):
            view(FleetEvent(host="n1", kind="progress", message=message, data={}))
        view(FleetEvent(host="n1", kind="task", message="a step", data={}))
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["n1: loading", "n1: done loading"]
