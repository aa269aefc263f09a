from __future__ import annotations

from typing import Any

import pytest

from nodeprep.fleet import FleetEvent, Outcome
from nodeprep.fleet.events import Tally


def event(kind: str, host: str = "n1", task: str = "Read", **data: Any) -> dict[str, Any]:
    return {"event": kind, "event_data": {"host": host, "task": task, **data}}


def record(name: str = "inspect", **fields: str) -> dict[str, Any]:
    return event("runner_on_ok", res={"nodeprep": {"phase": {"name": name, "state": "done", **fields}}})


def outcome(*events: dict[str, Any], interrupted: bool = False) -> Outcome:
    tally = Tally(["n1"], "inspect")
    for each in events:
        tally.take(each)
    return tally.outcomes(interrupted=interrupted)["n1"]


def test_only_the_record_makes_a_host_done() -> None:
    read = event("runner_on_ok", res={"nodeprep": {"facts": {"host": ""}}})
    assert outcome(event("runner_on_start"), read).state == "failed"
    assert "'Read'" in outcome(event("runner_on_start"), read).error
    done = outcome(read, record())
    assert (done.state, done.data, done.error) == ("done", {"facts": {"host": ""}}, "")


def test_the_record_of_another_phase_does_not_count() -> None:
    assert outcome(record("apply")).state == "failed"


def test_a_record_can_say_that_the_phase_failed() -> None:
    failed = outcome(record(state="failed", error="no results", hint="look there"))
    assert (failed.state, failed.error, failed.hint) == ("failed", "no results", "look there")


def test_a_done_host_keeps_the_remark_of_its_record() -> None:
    assert outcome(record(error="evidence missing")) == Outcome("n1", "done", {}, "evidence missing")


def test_a_host_ansible_never_spoke_of_is_missing() -> None:
    missing = outcome({"event": "playbook_on_stats", "event_data": {"ok": {"n2": 3}, "processed": {"n2": 1}}})
    assert missing.state == "missing"
    assert missing.hint


def test_unreachable_is_a_state_of_its_own() -> None:
    lost = outcome(event("runner_on_unreachable", res={"msg": "Failed to connect:\n Connection refused"}))
    assert (lost.state, lost.error) == ("unreachable", "Failed to connect: Connection refused")
    assert "ssh HOST" in lost.hint


def test_ssh_is_not_blamed_where_there_is_none() -> None:
    tally = Tally(["n1", "n2"], "inspect", local=["n1"])
    for host in ("n1", "n2"):
        tally.take(event("runner_on_unreachable", host, res={"msg": "failed to open /dev/x"}))
    here, there = tally.outcomes().values()
    assert here.error == "failed to open /dev/x"
    assert "ansible_remote_tmp" in here.hint
    assert "ssh HOST" not in here.hint
    assert "ssh HOST" in there.hint


def test_the_same_words_are_said_once() -> None:
    said = "failed to transfer a to b; failed to transfer a to b"
    assert outcome(event("runner_on_unreachable", res={"msg": said})).error == "failed to transfer a to b"
    assert outcome(event("runner_on_failed", res={"msg": "timed out\ntimed out\n\nx; y"})).error == (
        "Read: timed out x; y"
    )
    assert outcome(record(state="failed", error=f"{said}; no evidence")).error == (
        "failed to transfer a to b; no evidence"
    )


def test_a_host_that_is_spoken_to_again_is_not_given_up() -> None:
    lost = event("runner_on_unreachable", res={"msg": "Connection reset"})
    again = event("runner_on_start", task="Wait for the node to come back")
    assert outcome(lost, again, record()).state == "done"
    assert outcome(lost, again, lost).state == "unreachable"
    assert outcome(lost, again).state == "failed"


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("Host key verification failed.", "ssh-keyscan"),
        ("root@n1: Permission denied (publickey).", "ansible_user"),
        ("Missing sudo password", "--ask-become-pass"),
        ("write: No space left on device", "disk is full"),
        ("Failed to create temporary directory. In some cases, ...", "ansible_remote_tmp"),
        ("cannot make /var/lib/x: [Errno 13] Permission denied", "--become"),
    ],
)
def test_known_failures_have_a_hint(said: str, hint: str) -> None:
    assert hint in outcome(event("runner_on_unreachable", res={"msg": said})).hint
    assert hint in outcome(event("runner_on_failed", res={"msg": said})).hint


def test_a_failed_task_names_itself_and_the_modules_hint_wins() -> None:
    failed = outcome(
        event("runner_on_failed", task="Start", res={"msg": "no torch", "hint": "set probe_python"})
    )
    assert (failed.state, failed.error, failed.hint) == ("failed", "Start: no torch", "set probe_python")


def test_a_failure_the_playbook_expects_is_left_to_its_record() -> None:
    ignored = event("runner_on_failed", ignore_errors=True, res={"msg": "x", "nodeprep": {"probe": {"a": 1}}})
    assert outcome(ignored, record()).state == "done"
    assert outcome(ignored).data == {"probe": {"a": 1}}


def test_what_was_known_when_interrupted() -> None:
    assert outcome(event("runner_on_start"), interrupted=True) == Outcome(
        "n1", "unknown", {}, "interrupted in the step 'Read'"
    )
    assert outcome(record(), interrupted=True).state == "done"


def test_results_of_several_modules_are_merged() -> None:
    merged = outcome(
        event("runner_on_ok", res={"nodeprep": {"probe": {"state": "running", "pid": 7}, "facts": {"a": 1}}}),
        event("runner_retry", res={"nodeprep": {"probe": {"state": "completed"}}}),
        event("runner_on_ok", res={"msg": "not ours"}),
    )
    assert merged.data == {"probe": {"state": "completed", "pid": 7}, "facts": {"a": 1}}


def test_progress_arrives_with_each_retry() -> None:
    line = {"t_s": 3.5, "phase": "compute", "message": "iteration 7", "percent": 40, "gpu": "0000:17:00.0"}
    tally = Tally(["n1"], "probe")
    result = {"nodeprep": {"probe": {"progress": [{"message": "old"}, line]}}}
    assert tally.take(event("runner_retry", res=result)) == FleetEvent("n1", "progress", "iteration 7", line)
    assert tally.take(event("runner_retry", res={"nodeprep": {"probe": {"progress": []}}})) is None


def test_hosts_nobody_asked_for_are_not_spoken_of() -> None:
    tally = Tally(["n1"], "inspect")
    assert tally.take(event("runner_on_start", host="n9")) is None
    assert list(tally.outcomes()) == ["n1"]


def test_ansibles_words_outside_tasks_are_kept() -> None:
    tally = Tally(["n1"], "inspect")
    for number in range(100):
        tally.take({"event": "verbose", "stdout": f"line {number}\n\n", "event_data": {}})
    assert tally.words().splitlines()[-1] == "line 99"
    assert len(tally.words().splitlines()) == 60
