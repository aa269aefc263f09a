"""From Ansible's events to what is known about each host.

An event says what happened; only an explicit end-of-phase record (the action nodeprep.rack.phase)
says that a host is through. A play in which a host silently drops out would otherwise look fine:
Ansible leaves such hosts out of its statistics too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from nodeprep.model.run import HostState

EventKind = Literal["task", "progress", "failed", "unreachable", "done"]
RESULT_KEY = "nodeprep"

_KEPT_LINES = 60
_GUIDES = (
    (
        "host key verification failed",
        "connect once by hand and accept the key, or add it with ssh-keyscan; checking stays on",
    ),
    ("errno 13", "this needs root: connect as root, or add --become"),
    ("permission denied (", "check ansible_user and the ssh key: `ssh USER@HOST true` must succeed"),
    ("missing sudo password", "ask for it with --ask-become-pass"),
    ("incorrect sudo password", "the sudo password was refused; try --ask-become-pass again"),
    ("a password is required", "ask for it with --ask-become-pass"),
    (
        "no python interpreter",
        "install python3 (3.8 or later) on the node, or set ansible_python_interpreter",
    ),
    ("not found, ansible_python_interpreter", "set ansible_python_interpreter for this host"),
    ("no space left on device", "the node's disk is full: free space under /var and /tmp"),
    (
        "failed to create temporary directory",
        "set ansible_remote_tmp to a folder that the user there can write, for example "
        "/tmp/.ansible-USER/tmp, or make that user's ~/.ansible/tmp writable",
    ),
)
_UNREACHABLE_HINT = "check that `ssh HOST` works from here, and ansible_host, ansible_port and ansible_user"
_LOCAL_HINT = (
    "this host is worked on without ssh: check ansible_python_interpreter, and that its user can write "
    "Ansible's temporary folder (ansible_remote_tmp, ~/.ansible/tmp unless set)"
)
_STOPPED_HINT = "the run folder's events.jsonl has the last steps"


@dataclass(frozen=True)
class FleetEvent:
    """Something worth telling the user while a play runs.

    Attributes:
        kind: "task" when a host begins a step; "progress" for a running probe; "failed",
            "unreachable" and "done" at the end of a host's part.
        data: For "progress" the probe's own progress line: phase, percent, gpu, t_s.
    """

    host: str
    kind: EventKind
    message: str
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """How one phase ended on one host.

    Attributes:
        state: done = the host's own end-of-phase record arrived; failed = it was heard of and did
            not come through; unreachable; missing = Ansible never spoke of it; unknown = the run
            was interrupted before it could end.
        data: The `nodeprep` results of this collection's modules on that host, merged.
    """

    host: str
    state: HostState
    data: Mapping[str, Any]
    error: str = ""
    hint: str = ""


@dataclass
class _Host:
    data: dict[str, Any] = field(default_factory=dict)
    last_task: str = ""
    heard: bool = False
    ended: HostState | None = None
    failed: bool = False
    error: str = ""
    hint: str = ""


class Tally:
    """Collects the events of one play and gives every requested host exactly one outcome."""

    def __init__(self, hosts: Iterable[str], phase: str, *, local: Iterable[str] = ()) -> None:
        self._phase = phase
        self._local = frozenset(local)
        self._hosts = {host: _Host() for host in hosts}
        self._words: list[str] = []
        self.play_started = False

    def take(self, event: Mapping[str, Any]) -> FleetEvent | None:
        """Takes one event of ansible-runner; returns what to tell the user, if anything."""
        kind = str(event.get("event", ""))
        data: Mapping[str, Any] = event.get("event_data") or {}
        if kind == "playbook_on_play_start":
            self.play_started = True
        if kind in ("verbose", "error", "warning", "deprecated", "system_warning"):
            self._keep_words(str(event.get("stdout", "")))
        host = self._hosts.get(str(data.get("host", "")))
        if host is None:
            return None
        host.heard = True
        return self._take_of_host(str(data["host"]), host, kind, data)

    def outcomes(self, *, interrupted: bool = False) -> dict[str, Outcome]:
        """One outcome a requested host, in the order they were requested."""
        return {name: self._outcome(name, host, interrupted) for name, host in self._hosts.items()}

    def words(self) -> str:
        """The last things Ansible said outside any task; its only account of a play that never began."""
        return "\n".join(self._words)

    def _take_of_host(self, name: str, host: _Host, kind: str, data: Mapping[str, Any]) -> FleetEvent | None:
        task = str(data.get("task") or data.get("task_action") or "")
        result: Mapping[str, Any] = data.get("res") or {}
        if kind == "runner_on_start":
            host.last_task = task
            if host.ended == "unreachable":
                # The playbook does not give this host up; what comes next decides.
                host.ended = None
            return FleetEvent(name, "task", task)
        if kind in ("runner_on_ok", "runner_retry", "runner_on_failed", "runner_item_on_ok"):
            _merge(host.data, result.get(RESULT_KEY))
        if kind == "runner_on_unreachable":
            host.ended = "unreachable"
            host.error = _message(result)
            host.hint = _guide(host.error) or (_LOCAL_HINT if name in self._local else _UNREACHABLE_HINT)
            return FleetEvent(name, "unreachable", host.error)
        if kind == "runner_on_failed":
            return self._take_failure(name, host, task, data, result)
        if kind == "runner_on_ok" and _record(result, self._phase) is not None:
            return self._take_record(name, host, _record(result, self._phase) or {})
        if kind in ("runner_on_ok", "runner_retry"):
            return _progress(name, result)
        return None

    def _take_failure(
        self, name: str, host: _Host, task: str, data: Mapping[str, Any], result: Mapping[str, Any]
    ) -> FleetEvent | None:
        message = _message(result)
        if data.get("ignore_errors"):
            # The playbook goes on and will name this in its end-of-phase record.
            return None
        host.failed = True
        host.error = f"{task}: {message}" if task else message
        host.hint = str(result.get("hint") or _guide(message))
        return FleetEvent(name, "failed", host.error)

    def _take_record(self, name: str, host: _Host, record: Mapping[str, Any]) -> FleetEvent:
        host.ended = "failed" if record.get("state") == "failed" else "done"
        host.error = _once(str(record.get("error") or ""))
        host.hint = str(record.get("hint") or _guide(host.error))
        if host.ended == "failed":
            return FleetEvent(name, "failed", host.error)
        return FleetEvent(name, "done", f"{self._phase} done")

    def _keep_words(self, text: str) -> None:
        self._words.extend(line.rstrip() for line in text.splitlines() if line.strip())
        del self._words[:-_KEPT_LINES]

    def _outcome(self, name: str, host: _Host, interrupted: bool) -> Outcome:
        data = {key: value for key, value in host.data.items() if key != "phase"}
        if host.ended is not None:
            return Outcome(name, host.ended, data, host.error, host.hint)
        if host.failed:
            return Outcome(name, "failed", data, host.error, host.hint)
        where = f" in the step {host.last_task!r}" if host.last_task else ""
        if interrupted:
            return Outcome(name, "unknown", data, f"interrupted{where}")
        if host.heard:
            return Outcome(
                name, "failed", data, f"stopped{where} and never said that it was through", _STOPPED_HINT
            )
        return Outcome(
            name,
            "missing",
            data,
            "Ansible never spoke of this host",
            "it may have been dropped from the play; run again for this host alone",
        )


def _merge(known: dict[str, Any], result: object) -> None:
    """Adds a module's results; what is known under the same key is updated one level deep."""
    if not isinstance(result, Mapping):
        return
    for key, value in result.items():
        old = known.get(key)
        known[key] = {**old, **value} if isinstance(old, Mapping) and isinstance(value, Mapping) else value


def _record(result: Mapping[str, Any], phase: str) -> Mapping[str, Any] | None:
    own = result.get(RESULT_KEY)
    record = own.get("phase") if isinstance(own, Mapping) else None
    return record if isinstance(record, Mapping) and record.get("name") == phase else None


def _progress(host: str, result: Mapping[str, Any]) -> FleetEvent | None:
    own = result.get(RESULT_KEY)
    probe = own.get("probe") if isinstance(own, Mapping) else None
    lines = probe.get("progress") if isinstance(probe, Mapping) else None
    if not isinstance(lines, list) or not lines or not isinstance(lines[-1], Mapping):
        return None
    last = lines[-1]
    return FleetEvent(host, "progress", str(last.get("message", "")), dict(last))


def _message(result: Mapping[str, Any]) -> str:
    """What a failed task says of itself, on one line where it can be."""
    text = str(
        result.get("msg") or result.get("module_stderr") or result.get("censored") or "no reason given"
    )
    return _once(
        " ".join(dict.fromkeys(" ".join(line.split()) for line in text.splitlines() if line.strip()))
    )[:2000]


def _once(text: str) -> str:
    """A list of reasons with each once; what is tried again fails with the same words again."""
    return "; ".join(dict.fromkeys(filter(None, map(str.strip, text.split("; ")))))


def _guide(message: str) -> str:
    lower = message.lower()
    return next((hint for words, hint in _GUIDES if words in lower), "")
