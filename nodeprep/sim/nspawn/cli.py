"""The command line of containers: `python -m nodeprep.sim.nspawn`."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from nodeprep.errors import ExitCode, NodeprepError
from nodeprep.sim.nspawn.container import Container, make_container
from nodeprep.sim.nspawn.host import obstacle


def main(words: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    options = _parser().parse_args(words)
    try:
        return int(options.call(options))
    except NodeprepError as error:
        print(f"error: {error}", file=sys.stderr)
        if error.hint:
            print(f"hint: {error.hint}", file=sys.stderr)
        return int(error.exit_code)
    except KeyboardInterrupt:
        return int(ExitCode.INTERRUPTED)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m nodeprep.sim.nspawn", description="A host with systemd and simulated GPUs."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    up = commands.add_parser("up", help="make a container and boot it")
    _folder(up)
    up.add_argument("--gpus", type=int, default=8, metavar="N")
    up.set_defaults(call=_up)

    down = commands.add_parser("down", help="end every process of a container")
    _folder(down)
    down.add_argument("--remove", action="store_true", help="remove its files too")
    down.set_defaults(call=_down)

    ssh = commands.add_parser("ssh", help="a shell, or a command, in a container")
    _folder(ssh)
    ssh.add_argument("command", nargs=argparse.REMAINDER)
    ssh.set_defaults(call=_ssh)

    why = commands.add_parser("obstacle", help="say why no container can run here; nothing when one can")
    why.set_defaults(call=_obstacle)
    return parser


def _folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--folder", type=Path, default=Path("container"), help="default: %(default)s")


def _up(options: argparse.Namespace) -> int:
    container = make_container(options.folder, _say, gpus=options.gpus)
    started = time.monotonic()
    try:
        container.start()
        container.wait()
    except BaseException:
        # Whatever went wrong: nothing is left running. The console log stays.
        container.stop()
        raise
    _say(f"up after {time.monotonic() - started:.1f} s")
    print(f"inventory: {container.inventory}")
    return 0


def _down(options: argparse.Namespace) -> int:
    container = Container(options.folder)
    print(f"{container.stop()} processes ended")
    if options.remove:
        container.remove()
    return 0


def _ssh(options: argparse.Namespace) -> int:
    command = [*Container(options.folder).ssh_command(), *options.command]
    sys.stdout.flush()
    os.execvp(command[0], command)  # noqa: S606


def _obstacle(_options: argparse.Namespace) -> int:
    found = obstacle()
    print(found, end="\n" if found else "")
    return int(bool(found))


def _say(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", flush=True)
