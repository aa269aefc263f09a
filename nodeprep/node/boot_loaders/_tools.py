"""Programs of the boot loaders, run with a limit on time; what they say on failure is kept."""

from __future__ import annotations

import os
import subprocess
from typing import Callable, Sequence

# Seconds. grub-mkconfig asks every disk; on a node with many of them that takes minutes.
GENERATE_TIMEOUT_S = 600
TIMEOUT_S = 60

# A login without root's PATH, as some Ansible become methods have, does not find update-grub.
_FOLDERS = ("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/bin", "/bin")
_LONGEST_WORDS = 2000

Run = Callable[[Sequence[str], float], str]


class ToolError(Exception):
    """A program failed, is missing or took too long; the message holds its own words."""


def run(argv: Sequence[str], timeout_s: float = TIMEOUT_S) -> str:
    """What a program prints on its standard output.

    Raises:
        ToolError: It failed, is missing or took longer than timeout_s seconds.
    """
    environment = dict(os.environ)
    environment["PATH"] = os.pathsep.join([*environment.get("PATH", "").split(os.pathsep), *_FOLDERS])
    command = " ".join(argv)
    try:
        done = subprocess.run(
            list(argv),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            check=False,
            env=environment,
        )
    except FileNotFoundError as error:
        raise ToolError(f"{argv[0]}: there is no such program on this node") from error
    except subprocess.TimeoutExpired as error:
        raise ToolError(f"{command}: no end after {timeout_s:.0f} s") from error
    except OSError as error:
        raise ToolError(f"{command}: {error}") from error
    output = done.stdout.decode("utf-8", "replace")
    if done.returncode:
        words = done.stderr.decode("utf-8", "replace").strip() or output.strip()
        raise ToolError(f"{command}: {words[-_LONGEST_WORDS:] or f'exit status {done.returncode}'}")
    return output
