"""A session: one run over some hosts, with its folder, ledger, policies and fleet."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

import nodeprep
from nodeprep.bmc.redfish.patience import Clock
from nodeprep.errors import DocumentError, PolicyError, Problem, UsageError
from nodeprep.fleet import Fleet, FleetEvent, Ledger, Outcome, Target
from nodeprep.model.bios import BiosFacts
from nodeprep.model.codec import encode_pretty, from_builtins
from nodeprep.model.facts import NodeFacts
from nodeprep.model.policy import Policy
from nodeprep.model.run import HostState, Run
from nodeprep.model.spec import NodeSpec
from nodeprep.profiles import SiteSettings, load_settings_file, resolve, settings_from_variables
from nodeprep.workflows.bios_facts import MakeClock, read_bios, with_bios
from nodeprep.workflows.home import Home

Notify = Callable[[FleetEvent], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the user asked for, whatever the command.

    Attributes:
        hosts: Ansible host pattern; None means all of the inventory, or localhost without one.
        settings_file: Policy file that stands in for the inventory's variables.
        passwords: Prompt pattern to answer, for ansible-runner; never shown.
    """

    hosts: str | None = None
    inventory: Path | None = None
    settings_file: Path | None = None
    output: Path | None = None
    become: bool = False
    passwords: Mapping[str, str] = field(default_factory=dict, repr=False)
    forks: int = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What one look at the hosts gave; a host is in `facts` or in `failed`, never in neither."""

    facts: Mapping[str, NodeFacts]
    failed: Mapping[str, Outcome]


class Session:
    """One run. Use as a context manager: leaving it closes the ledger, also after an error.

    Attributes:
        bios: By host, the last look at its BIOS; hosts without one are not in it.
        make_clock: The time by which BMCs are waited for; simulated ones can do with a faster one.

    Raises (on entry):
        UsageError: The inventory matches nothing, or the run folder cannot be written.
        PolicyError: A policy does not hold together; all hosts' problems at once.
    """

    def __init__(self, request: Request, verb: str, *, home: Home) -> None:
        self.request = request
        self.verb = verb
        self.home = home
        self.notify: Notify = _say_nothing
        self.specs: dict[str, NodeSpec] = {}
        self.facts: dict[str, NodeFacts] = {}
        self.bios: dict[str, BiosFacts] = {}
        self.make_clock: MakeClock = Clock

    def __enter__(self) -> Session:
        self.run_id = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{self.verb}-{secrets.token_hex(2)}"
        self.run_dir = (self.request.output or self.home.runs / self.run_id).absolute()
        _refuse_earlier_run(self.run_dir)
        made = _make_folder(self.run_dir)
        try:
            return self._open()
        except BaseException:
            # What was refused before it began leaves no folder behind, for nothing could be read in it.
            for folder in made:
                with suppress(OSError):
                    folder.rmdir()
            raise

    def _open(self) -> Session:
        self.fleet = Fleet(
            run_dir=self.run_dir,
            inventory=self.request.inventory,
            forks=self.request.forks,
            become=self.request.become,
            passwords=self.request.passwords,
            on_event=self._on_event,
        )
        self.targets = self.fleet.targets(self.request.hosts)
        self.settings = self._settings()
        self.ledger = Ledger.create(
            self.run_dir,
            Run(
                id=self.run_id,
                verb=self.verb,
                started_at=now_text(),
                ended_at="",
                hosts=(),
                nodeprep_version=nodeprep.__version__,
            ),
            [target.host for target in self.targets],
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.ledger.close(ended_at=now_text())

    @property
    def hosts(self) -> tuple[str, ...]:
        """Every requested host, in inventory order."""
        return tuple(target.host for target in self.targets)

    def pick(self, hosts: Sequence[str]) -> tuple[Target, ...]:
        """The targets of some hosts, in inventory order."""
        wanted = set(hosts)
        return tuple(target for target in self.targets if target.host in wanted)

    def observe(
        self,
        hosts: Sequence[str],
        *,
        label: str,
        phase: str = "inspect",
    ) -> Observed:
        """Facts of some hosts and of their BIOS, saved as facts/HOST.LABEL.json."""
        outcomes = self.fleet.run("inspect.yml", self.pick(hosts), phase=phase)
        facts: dict[str, NodeFacts] = {}
        failed: dict[str, Outcome] = {}
        for host, outcome in outcomes.items():
            parsed = self.parse_facts(outcome, label=label)
            if isinstance(parsed, NodeFacts):
                facts[host] = parsed
            else:
                failed[host] = parsed
                self.record(host, phase, parsed.state, error=parsed.error, hint=parsed.hint)
                continue
            self.record(host, phase, "done")
        if any(each.simulated for each in facts.values()):
            self.ledger.describe(simulated=True)
        return Observed(facts=self.look_at_bios(facts, label=label), failed=failed)

    def look_at_bios(self, facts: Mapping[str, NodeFacts], *, label: str) -> dict[str, NodeFacts]:
        """The facts with what the BMCs of these hosts tell of their BIOS, saved anew; see `bios` for it."""
        read = read_bios(
            self.pick(list(facts)), {host: self.policy(host) for host in facts}, make_clock=self.make_clock
        )
        whole = {host: with_bios(found, read[host]) for host, found in facts.items()}
        for host, found in whole.items():
            self.save(f"facts/{host}.{label}.json", found)
            if found.bios.value is not None:
                self.bios[host] = found.bios.value
        return whole

    def parse_facts(self, outcome: Outcome, *, label: str) -> NodeFacts | Outcome:
        """The facts an outcome carries, saved; or the outcome as a failure when it carries none."""
        if outcome.state != "done":
            return outcome
        try:
            raw = outcome.data["facts"]
            facts = from_builtins(raw, NodeFacts, source=f"facts of {outcome.host}")
        except (KeyError, DocumentError) as error:
            return replace(outcome, state="failed", error=f"the node sent no usable facts: {error}")
        facts = replace(facts, host=outcome.host)
        self.save(f"facts/{outcome.host}.{label}.json", facts)
        self.facts[outcome.host] = facts
        return facts

    def spec(self, facts: NodeFacts) -> NodeSpec:
        """What this node should be; kept in `specs`.

        Raises:
            PolicyError: The policy does not fit the node's GPUs.
        """
        spec = resolve(facts.host, self.settings[facts.host], facts, today=datetime.now(UTC).date())
        self.specs[facts.host] = spec
        return spec

    def policy(self, host: str) -> Policy:
        """The policy of one host."""
        return self.settings[host].policy

    def record(self, host: str, phase: str, state: HostState, *, error: str = "", hint: str = "") -> None:
        """One line in the ledger."""
        self.ledger.record(host, phase, state, error=error, hint=hint)

    def save(self, relative: str, document: object) -> Path:
        """Writes a document into the run folder; a crash leaves the old file or the new, never half."""
        path = self.run_dir / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            temporary.write_bytes(document if isinstance(document, bytes) else encode_pretty(document))
            temporary.replace(path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        return path

    def run_document(self) -> Run:
        """The run as it stands now."""
        return self.ledger.snapshot(ended_at=now_text())

    def _on_event(self, event: FleetEvent) -> None:
        # The listener may be set after the fleet was made.
        self.notify(event)

    def _settings(self) -> dict[str, SiteSettings]:
        if self.request.settings_file is not None:
            shared = load_settings_file(self.request.settings_file)
            return {target.host: shared for target in self.targets}
        settings: dict[str, SiteSettings] = {}
        problems: dict[Problem, list[str]] = {}
        for target in self.targets:
            try:
                settings[target.host] = settings_from_variables(target.variables, source=target.host)
            except PolicyError as error:
                for problem in error.problems:
                    problems.setdefault(problem, []).append(target.host)
        if problems:
            raise PolicyError(
                "inventory variables",
                [
                    replace(problem, message=f"{problem.message} [{_name_hosts(hosts)}]")
                    for problem, hosts in problems.items()
                ],
            )
        return settings


def now_text() -> str:
    """The present time as documents write it: UTC, whole seconds, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _name_hosts(hosts: Sequence[str]) -> str:
    shown = ", ".join(hosts[:3])
    return shown if len(hosts) <= 3 else f"{shown} and {len(hosts) - 3} more"


def _refuse_earlier_run(path: Path) -> None:
    """What an earlier run left must never be taken for this one's: not a probe result, not a certificate."""
    if (path / "run.json").exists():
        raise UsageError(
            f"{path} holds an earlier run", hint="name a new folder with -o, or leave -o out for one by time"
        )


def _make_folder(path: Path) -> list[Path]:
    """Makes the run folder; returns the folders that were not there before, the innermost first."""
    made = [folder for folder in (path, *path.parents) if not folder.exists()]
    try:
        # Kernel logs and bug reports land here; on the nodes they were for root's eyes.
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe = path / ".writable"
        probe.write_bytes(b"x" * 4096)
        probe.unlink()
    except OSError as error:
        why = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else error.strerror
        raise UsageError(
            f"cannot write the run folder {path}: {why}",
            hint="name another folder with -o, or set NODEPREP_HOME",
        ) from error
    return made


def _say_nothing(_event: FleetEvent) -> None:
    """The listener of a session that nobody watches."""


def host_vars(values: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Plain copies of per-host variables, as Ansible takes them."""
    return {host: dict(variables) for host, variables in values.items()}
