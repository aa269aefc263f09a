"""One run of ansible-playbook through ansible-runner: its folder, environment, thread and end.

The only module of nodeprep that imports ansible_runner.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import shutil
import signal
import sys
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nodeprep.errors import NodeprepError
from nodeprep.fleet.content import collections_path, program
from nodeprep.fleet.disk import disk_error, disk_refused, explained
from nodeprep.fleet.inventory import LOCALHOST
from nodeprep.fleet.language import WITHHELD, utf8_environment

# ansible-runner looks at its cancel callback once in this time, or whenever there is output.
_LOOK_S = 0.25
# What ansible-playbook gets to end its own workers (which are sessions of their own) before SIGKILL.
_GRACE_S = 1.0
# ansible-runner cuts results above 700 kB; the facts of a node with many hops come near.
_MAX_RESULT_BYTES = 64 * 1024 * 1024
# A node that hangs after an Xid keeps its TCP connections open for ever; ssh must notice by itself.
_SSH_ARGS = (
    "-C -o ControlMaster=auto -o ControlPersist=60s -o ServerAliveInterval=10 -o ServerAliveCountMax=6"
)
# An inventory may use plugins of collections installed in the usual places.
_DEFAULT_COLLECTIONS = "~/.ansible/collections:/usr/share/ansible/collections"
_TETHER = Path(__file__).with_name("tether.py")


@dataclass(frozen=True, kw_only=True)
class PlayRequest:
    """What to run. Secrets are in `passwords` alone and never reach a file or a command line.

    Attributes:
        folder: Private folder of this play; made with mode 0700 and removed at the end.
        passwords: Prompt pattern (regular expression) to answer.
        host_vars: Variables of single hosts; they win over the inventory's.
        extra_vars: Variables of all hosts; they win over everything.
    """

    folder: Path
    playbook: Path
    inventory: Path | None
    hosts: Sequence[str]
    forks: int
    become: bool
    passwords: Mapping[str, str] = field(repr=False)
    extra_vars: Mapping[str, Any]
    host_vars: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class PlayEnd:
    """How ansible-playbook ended; `rc` is None when it was cancelled."""

    rc: int | None


class Play:
    """A running ansible-playbook. Events are read in the caller's thread: `for event in play.events()`."""

    def __init__(self, request: PlayRequest, cancelled: threading.Event) -> None:
        self._request = request
        self._cancelled = cancelled
        self._queue: queue.SimpleQueue[Mapping[str, Any] | PlayEnd | BaseException] = queue.SimpleQueue()
        self._environment: dict[str, str] = {}
        self._pid: int | None = None
        self._told_to_end_at: float | None = None
        self._last_event_file: Path | None = None
        self.end: PlayEnd | None = None

    def events(self) -> Generator[Mapping[str, Any]]:
        """Runs the play and yields its events as they come. Closing the iterator cancels the play.

        Raises:
            NodeprepError: Ansible is not installed, or ansible-runner itself broke.
            DiskError: The play's folder cannot be written, now or later.
        """
        self._environment = _environment()
        _prepare(self._request)
        thread = threading.Thread(target=self._work, name="nodeprep-play", daemon=True)
        thread.start()
        try:
            while True:
                try:
                    # A bounded wait, so that a signal's exception is raised here at once.
                    got = self._queue.get(timeout=_LOOK_S)
                except queue.Empty:
                    continue
                if isinstance(got, BaseException):
                    if disk_refused(got):
                        raise disk_error(self._request.folder, got) from got
                    raise NodeprepError(f"ansible-runner broke: {got!r}") from got
                if isinstance(got, PlayEnd):
                    self.end = got
                    return
                yield got
        finally:
            if self.end is None:
                self._cancelled.set()
                thread.join(timeout=_GRACE_S + 4 * _LOOK_S)
            shutil.rmtree(self._request.folder, ignore_errors=True)

    def _work(self) -> None:
        try:
            self._queue.put(self._run())
        except BaseException as error:
            self._queue.put(error)

    def _run(self) -> PlayEnd:
        _require_stdout()
        # Importing it costs 0.1 s and configures logging; commands that run nothing do without.
        import ansible_runner  # noqa: PLC0415

        request = self._request
        arguments = ["--become"] if request.become else []
        arguments += [
            flag for word, flag in _PROMPTS.items() if any(word in key for key in request.passwords)
        ]
        runner = ansible_runner.interface.init_runner(
            private_data_dir=str(request.folder),
            playbook=str(request.playbook),
            inventory=_inventories(request),
            limit=f"@{request.folder / 'limit'}",
            forks=request.forks,
            cmdline=" ".join(arguments) or None,
            passwords=dict(request.passwords),
            envvars=self._environment,
            # Without this, ansible-runner writes the passwords to env/passwords.
            suppress_env_files=True,
            fact_cache_type="memory",
            ident="play",
            quiet=True,
            cancel_callback=self._should_kill,
            event_handler=self._take,
            status_handler=self._on_status,
        )
        for name in WITHHELD:
            runner.config.env.pop(name, None)
        # Its own command begins with the bare name.
        runner.config.command[:1] = _tethered(program("ansible-playbook"))
        runner.run()
        return PlayEnd(None if self._cancelled.is_set() else runner.rc)

    def _take(self, event: dict[str, Any]) -> bool:
        self._pid = event.get("pid") or self._pid
        self._queue.put(event)
        self._drop_last_event_file(event)
        # A falsy answer would make ansible-runner throw the event away, and its statistics with it.
        return True

    def _drop_last_event_file(self, event: Mapping[str, Any]) -> None:
        """Keeps one event file at a time: a long probe makes hundreds of thousands of events."""
        if self._last_event_file is not None:
            self._last_event_file.unlink(missing_ok=True)
            self._last_event_file = None
        if event.get("event") != "playbook_on_stats" and "uuid" in event:
            folder = self._request.folder / "artifacts" / "play" / "job_events"
            self._last_event_file = folder / f"{event['counter']}-{event['uuid']}.json"

    def _on_status(self, status: Mapping[str, Any], runner_config: Any) -> None:
        if status.get("status") == "running":
            # ansible-runner has just written its whole environment there, whatever is in it.
            Path(runner_config.artifact_dir, "command").unlink(missing_ok=True)

    def _should_kill(self) -> bool:
        """True once ansible-playbook has had its chance to end by itself.

        Its workers are sessions of their own: SIGKILL of its process group, which is all that
        ansible-runner does, would leave them and their local modules running.
        """
        if not self._cancelled.is_set():
            return False
        now = time.monotonic()
        if self._told_to_end_at is None:
            self._told_to_end_at = now
            if self._pid is None:
                return True
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGTERM)
        return now - self._told_to_end_at > _GRACE_S


def _require_stdout() -> None:
    """Gives a process that was started without standard output (`>&-`) one that goes nowhere.

    Libraries beneath ansible-runner take sys.stdout.write when they are loaded, never to use it.
    """
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115


def _tethered(path: str) -> list[str]:
    """The start of a command line whose program ends when this process does."""
    return [sys.executable, "-I", "-S", str(_TETHER), str(os.getpid()), path]


_PROMPTS = {"BECOME": "--ask-become-pass", "SSH": "--ask-pass"}


def _prepare(request: PlayRequest) -> None:
    folder = request.folder
    with explained(folder):
        folder.mkdir(parents=True, mode=0o700)
        (folder / "limit").write_text("".join(f"{host}\n" for host in request.hosts), encoding="utf-8")
        settings = {"pexpect_timeout": _LOOK_S, "suppress_output_file": True}
        _write_json(folder / "env" / "settings", settings)
        _write_json(folder / "env" / "extravars", request.extra_vars)
        _write_json(folder / "inventory" / "hosts.json", _generated_inventory(request))
        for host, variables in request.host_vars.items():
            # A host_vars folder beside the last inventory wins over all that an inventory can say.
            _write_json(folder / "inventory" / "host_vars" / f"{host}.json", variables)


def _write_json(path: Path, data: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_text(json.dumps(data))


def _generated_inventory(request: PlayRequest) -> dict[str, Any]:
    if request.inventory is not None:
        return {"all": {"hosts": {}}}
    # The interpreter that Ansible would discover here is the system's, which may be another one.
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    return {"all": {"hosts": {LOCALHOST: local}}}


def _inventories(request: PlayRequest) -> list[str]:
    given = [] if request.inventory is None else [str(request.inventory.absolute())]
    return [*given, str(request.folder / "inventory" / "hosts.json")]


def _environment() -> dict[str, str]:
    given = os.environ
    beside = str(Path(program("ansible-playbook")).parent)
    collections = [str(collections_path())]
    collections.append(given.get("ANSIBLE_COLLECTIONS_PATH", _DEFAULT_COLLECTIONS))
    return utf8_environment() | {
        "PATH": os.pathsep.join([beside, given.get("PATH", os.defpath)]),
        "ANSIBLE_COLLECTIONS_PATH": os.pathsep.join(collections),
        # ansible-runner switches it off unless it is set.
        "ANSIBLE_HOST_KEY_CHECKING": given.get("ANSIBLE_HOST_KEY_CHECKING", "True"),
        "ANSIBLE_PIPELINING": "True",
        "ANSIBLE_SSH_ARGS": given.get("ANSIBLE_SSH_ARGS", _SSH_ARGS),
        "ANSIBLE_RETRY_FILES_ENABLED": "False",
        "ANSIBLE_GATHERING": "explicit",
        "ANSIBLE_NOCOLOR": "1",
        "ANSIBLE_FORCE_COLOR": "0",
        "ANSIBLE_DEPRECATION_WARNINGS": "False",
        "MAX_EVENT_RES": str(_MAX_RESULT_BYTES),
    }
