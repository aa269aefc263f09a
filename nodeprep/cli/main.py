"""The command line: puts the commands together and turns errors into exit codes."""

from __future__ import annotations

import errno
import importlib
import os
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

import nodeprep
from nodeprep.cli._output import Output
from nodeprep.errors import ExitCode, NodeprepError, PolicyError, Problem
from nodeprep.model.outputs import ErrorDocument

# typer carries its own click in new versions and imports it in old ones; its public BadParameter
# leads to the base of all "the command line is wrong" errors in both.
_CommandLineError = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
_EPILOG = (
    "Exit codes: 0 ok, 1 bug, 2 usage or policy, 10 drift, 11 apply failed, 12 unreachable, "
    "20 rejected, 21 inconclusive, 130 interrupted. With several hosts the worst counts."
)

# Each command is a function in the module of its name, or an `app` of several; the order is the help's.
_COMMANDS = (
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
    "bios",
    "cert",
    "golden",
    "sim",
)


def _app(wanted: Sequence[str]) -> typer.Typer:
    """The command line with some of its commands.

    Only their modules are imported: all of them together cost more time than a short command does.
    """
    app = typer.Typer(
        name="nodeprep",
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        epilog=_EPILOG,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(main)
    for name in wanted:
        module = importlib.import_module(f"nodeprep.cli.{name}")
        if hasattr(module, "app"):
            app.add_typer(module.app, name=name)
        else:
            app.command(name)(getattr(module, name))
    return app


def _version(asked: bool) -> None:
    if asked:
        sys.stdout.write(f"nodeprep {nodeprep.__version__}\n")
        raise typer.Exit


def main(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Take a GPU node to a known-good state, prove the effect, load it, and sign what was found."""


def invoke(arguments: list[str]) -> ExitCode:
    """Runs one command line and returns its exit code; every error is told here and nowhere else."""
    out = Output(json="--json" in arguments, verbose="-v" in arguments or "--verbose" in arguments)
    try:
        named = [name for name in _COMMANDS if arguments[:1] == [name]]
        result = _app(named or _COMMANDS)(args=arguments, standalone_mode=False)
        return ExitCode(result) if isinstance(result, int) else ExitCode.OK
    except BrokenPipeError:
        # `nodeprep ... | head`: the reader has had enough. Keep Python from complaining at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.OK
    except (Exception, KeyboardInterrupt) as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            out.talk.print(str(error), markup=False)
            return ExitCode.USAGE
        told = explain(error)
        if told.exit_code == ExitCode.BUG and out.verbose:
            out.talk.print_exception()
        out.error(told.error, told.hint)
        try:
            out.document(told)
        except OSError as broken:
            # The error above may have been that very thing: stdout on a full disk, or closed.
            out.error(f"the document could not be written: {broken.strerror}")
        return ExitCode(told.exit_code)


def explain(error: BaseException) -> ErrorDocument:
    """What an error means for the user: exit code, words, hint."""
    if isinstance(error, NodeprepError):
        problems = error.problems if isinstance(error, PolicyError) else ()
        return _document(error.exit_code, error.message, error.hint, problems)
    if isinstance(error, typer.Abort | KeyboardInterrupt):
        return _document(ExitCode.INTERRUPTED, "interrupted", "what was done is kept in the run folder")
    if isinstance(error, _CommandLineError):
        context = getattr(error, "ctx", None)
        hint = f"see {context.command_path} --help" if context else "see nodeprep --help"
        return _document(ExitCode.USAGE, error.format_message(), hint)  # type: ignore[attr-defined]
    if isinstance(error, OSError):
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        hint = "free some space, or name another folder with -o or NODEPREP_HOME" if full else ""
        return _document(ExitCode.USAGE, f"{error.strerror}: {error.filename or 'output'}", hint)
    hint = "this is a bug in nodeprep; run it again with -v and report the traceback"
    return _document(ExitCode.BUG, f"{type(error).__name__}: {error}", hint)


def _document(code: ExitCode, message: str, hint: str, problems: Sequence[Problem] = ()) -> ErrorDocument:
    return ErrorDocument(exit_code=int(code), error=message, hint=hint, problems=tuple(problems))
