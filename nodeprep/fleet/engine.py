"""The Fleet: playbooks over hosts, with an outcome for every host that was asked for."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nodeprep.errors import Interrupted, NodeprepError
from nodeprep.fleet.content import playbook_path
from nodeprep.fleet.events import FleetEvent, Outcome, Tally
from nodeprep.fleet.inventory import Target, read_targets
from nodeprep.fleet.journal import Journal
from nodeprep.fleet.play import Play, PlayEnd, PlayRequest
from nodeprep.fleet.stop import stop_probes

PRIVATE_FOLDER = ".ansible"
# Playbooks that leave something running on a node when they are broken off.
_LEAVES_PROBE = frozenset({"certify.yml"})
# And those that leave a node between two boots; nothing on the node has to be stopped.
_LEAVES_TRIAL = frozenset({"trial.yml", "recover.yml", "rollback.yml"})


class FleetInterrupted(Interrupted):
    """The user broke off a phase; `outcomes` holds what was known about each host by then."""

    def __init__(self, phase: str, outcomes: Mapping[str, Outcome], hint: str) -> None:
        super().__init__(f"interrupted during {phase}", hint=hint)
        self.outcomes = outcomes


class Fleet:
    """Runs the collection's playbooks over the hosts of an inventory.

    Args:
        run_dir: The run folder; private files live in a folder under it while a phase runs.
        inventory: Ansible inventory; None means this machine, without ssh.
        forks: Hosts worked on at the same time.
        become: Become root on the nodes.
        passwords: Prompt pattern to answer, for example {"^BECOME password.*:": "..."}. Handed to
            Ansible's terminal; never in a file, an argument or the environment.
        on_event: Called in the thread that called `run`, for each event as it happens.
    """

    def __init__(
        self,
        *,
        run_dir: Path,
        inventory: Path | None,
        forks: int = 25,
        become: bool = False,
        passwords: Mapping[str, str] | None = None,
        on_event: Callable[[FleetEvent], None] | None = None,
    ) -> None:
        self._run_dir = run_dir.absolute()
        self._inventory = inventory.absolute() if inventory is not None else None
        self._forks = forks
        self._become = become
        self._passwords = dict(passwords or {})
        self._on_event = on_event
        self._cancelled = threading.Event()
        self._numbers = itertools.count(1)

    def targets(self, pattern: str | None) -> tuple[Target, ...]:
        """The hosts of an Ansible pattern; None means all of the inventory.

        Raises:
            UsageError: The inventory cannot be read, or the pattern matches nothing.
        """
        return read_targets(self._inventory, pattern)

    def run(
        self,
        playbook: str,
        targets: Sequence[Target],
        *,
        phase: str,
        extra_vars: Mapping[str, Any] | None = None,
        host_vars: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> dict[str, Outcome]:
        """Runs a playbook of the collection; every target has an outcome, in the given order.

        Args:
            playbook: File name, for example "inspect.yml".
            phase: Name of the phase; what each host's end-of-phase record must say.
            extra_vars: For all hosts; not for secrets.
            host_vars: For single hosts; not for secrets.

        Raises:
            FleetInterrupted: Ctrl-C, SIGTERM (when the caller turns it into an exception) or `cancel`.
            NodeprepError: Ansible could not begin; in its own words.
            DiskError: The run folder cannot be written.
        """
        if not targets:
            return {}
        hosts = [target.host for target in targets]
        request = PlayRequest(
            folder=self._run_dir / PRIVATE_FOLDER / f"{phase}-{os.getpid()}-{next(self._numbers)}",
            playbook=playbook_path(playbook),
            inventory=self._inventory,
            hosts=hosts,
            forks=self._forks,
            become=self._become,
            passwords=self._passwords,
            extra_vars={"nodeprep_phase": phase, **(extra_vars or {})},
            host_vars=host_vars or {},
        )
        tally = Tally(hosts, phase, local=(target.host for target in targets if target.local))
        play = Play(request, self._cancelled)
        try:
            self._follow(play, tally, Journal(self._run_dir, phase))
        except (KeyboardInterrupt, Interrupted):
            self._cancelled.set()
        finally:
            self._remove_private_folder()
        if self._cancelled.is_set():
            raise self._interrupted(playbook, request, tally)
        self._require_a_play(play.end, tally)
        return tally.outcomes()

    def cancel(self) -> None:
        """Ends the phase that runs in another thread; its `run` raises FleetInterrupted within 2 s."""
        self._cancelled.set()

    def _follow(self, play: Play, tally: Tally, journal: Journal) -> None:
        events = play.events()
        try:
            for event in events:
                told = tally.take(event)
                if told is not None:
                    journal.add(told)
                    if self._on_event is not None:
                        self._on_event(told)
        finally:
            events.close()
            journal.close()

    def _interrupted(self, playbook: str, request: PlayRequest, tally: Tally) -> FleetInterrupted:
        outcomes = tally.outcomes(interrupted=True)
        hint = "what was done is in the run folder"
        if playbook in _LEAVES_PROBE:
            open_hosts = [host for host, outcome in outcomes.items() if outcome.state != "done"]
            stop_probes(request, open_hosts, self._run_dir)
            hint = (
                "the probes are being told to stop; a node that cannot be reached goes on until its "
                f"time is up (see {self._run_dir / 'stop.log'})"
            )
        if playbook in _LEAVES_TRIAL:
            hint = (
                "the permanent kernel arguments are those from before, or proven ones; run the command "
                "again: it goes on where this one was broken off"
            )
        return FleetInterrupted(request.extra_vars["nodeprep_phase"], outcomes, hint)

    @staticmethod
    def _require_a_play(end: PlayEnd | None, tally: Tally) -> None:
        if tally.play_started:
            return
        code = "no exit code" if end is None else f"exit code {end.rc}"
        raise NodeprepError(
            f"Ansible could not begin ({code}):\n{tally.words() or '(it said nothing)'}",
            hint="`nodeprep doctor` checks this controller; the words above are Ansible's own",
        )

    def _remove_private_folder(self) -> None:
        folder = self._run_dir / PRIVATE_FOLDER
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
