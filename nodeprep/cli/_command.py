"""What every command over hosts does before and after its own work."""

import functools
import getpass
import inspect
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, get_type_hints

from rich.table import Table

from nodeprep.cli import _options
from nodeprep.cli._output import Output
from nodeprep.errors import ExitCode, Interrupted
from nodeprep.model.outputs import ErrorDocument
from nodeprep.model.run import HostRecord, HostState, Run
from nodeprep.workflows.home import Home
from nodeprep.workflows.session import Request, Session

_EXIT_OF_STATE: dict[HostState, ExitCode] = {
    "done": ExitCode.OK,
    "unreachable": ExitCode.UNREACHABLE,
    # The node answered and then something on it failed, or it was never heard of: not known to be good.
    "failed": ExitCode.INCONCLUSIVE,
    "missing": ExitCode.INCONCLUSIVE,
    "unknown": ExitCode.INCONCLUSIVE,
    "running": ExitCode.INCONCLUSIVE,
}


def over_hosts(command: Callable[..., ExitCode]) -> Callable[..., ExitCode]:
    """Gives a command the options that every command over hosts has.

    The command takes `asked: Request` and `out: Output` first, then options of its own.
    """
    own = list(inspect.signature(command).parameters.values())[2:]
    hints = get_type_hints(command, include_extras=True)
    shared = inspect.signature(_shared).parameters.values()
    keyword = inspect.Parameter.KEYWORD_ONLY

    @functools.wraps(command)
    def run(**given: Any) -> ExitCode:
        mine = {parameter.name: given.pop(parameter.name) for parameter in own}
        out = Output(json=given.pop("json"), quiet=given.pop("quiet"), verbose=given.pop("verbose"))
        return command(request(**given), out, **mine)

    parameters = [
        *(parameter.replace(kind=keyword) for parameter in shared),
        *(parameter.replace(kind=keyword, annotation=hints[parameter.name]) for parameter in own),
    ]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _shared(
    hosts: _options.Hosts = None,
    inventory: _options.Inventory = None,
    policy: _options.PolicyFile = None,
    output: _options.OutputFolder = None,
    become: _options.Become = False,
    ask_become_pass: _options.AskBecomePass = False,
    forks: _options.Forks = 25,
    json: _options.Json = False,
    quiet: _options.Quiet = False,
    verbose: _options.Verbose = False,
) -> None:
    """The options themselves; only its signature is used."""


def request(
    hosts: str | None,
    inventory: Path | None,
    policy: Path | None,
    output: Path | None,
    *,
    become: bool,
    ask_become_pass: bool,
    forks: int,
) -> Request:
    """The options as a Request; asks for the sudo password when told to."""
    passwords: dict[str, str] = {}
    if ask_become_pass:
        # The pattern is what Ansible prints; the answer goes to its terminal, not to argv or a file.
        passwords[r"^BECOME password.*:\s*?$"] = getpass.getpass("BECOME password: ")
    return Request(
        hosts=hosts,
        inventory=inventory,
        settings_file=policy,
        output=output,
        become=become or ask_become_pass,
        passwords=passwords,
        forks=forks,
    )


@contextmanager
def session(asked: Request, verb: str, output: Output, *, live: bool = True) -> Iterator[Session]:
    """An open session with progress, cancelled by Ctrl-C and SIGTERM alike.

    Args:
        live: False where the command asks questions: a live display would paint over them.
    """
    with (
        interrupts(),
        Session(asked, verb, home=Home.from_environment()) as opened,
        output.progress(len(opened.hosts), live=live) as shown,
    ):
        opened.notify = shown
        yield opened


@contextmanager
def interrupts() -> Iterator[None]:
    """SIGTERM ends a command the way Ctrl-C does."""

    def stop(signum: int, _frame: FrameType | None) -> None:
        raise Interrupted(f"stopped by {signal.Signals(signum).name}")

    previous = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def exit_of(record: HostRecord) -> ExitCode:
    """The exit code that a host's state alone calls for."""
    return _EXIT_OF_STATE[record.state]


def explain_lost(run: Run, output: Output, *, having: Sequence[str] = ()) -> None:
    """Says of every host without an answer why there is none.

    Args:
        having: Hosts whose answer was shown already.
    """
    for record in run.hosts:
        if record.state != "done" and record.host not in having:
            output.error(f"{record.host}: {record.state}: {record.error or 'no answer'}", record.hint)


def lost_document(run: Run, code: ExitCode) -> ErrorDocument:
    """The document of a single host that has none of its own."""
    record = run.hosts[0]
    return ErrorDocument(
        exit_code=code, error=f"{record.host}: {record.state}: {record.error}", hint=record.hint
    )


def subjects(names: Sequence[str], all_of_them: int) -> str:
    """Several GPUs in a few words: every one of them by name only where that tells something."""
    if len(names) <= 2:
        return ", ".join(names)
    return f"all {len(names)} GPUs" if len(names) == all_of_them else f"{names[0]} and {len(names) - 1} more"


def table(columns: Iterable[str]) -> Table:
    """A table in the house style."""
    made = Table(header_style="bold", box=None, pad_edge=False)
    for column in columns:
        made.add_column(column, overflow="fold")
    return made
