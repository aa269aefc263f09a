"""Runs the command line as a user would: a process of its own, with a home of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAM = [sys.executable, "-c", "from nodeprep.cli.__main__ import run; run()"]


@dataclass(frozen=True)
class Said:
    """How a command ended."""

    code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> dict[str, Any]:
        """Standard output, which must be one JSON document and nothing else."""
        return dict(json.loads(self.stdout))


@dataclass(frozen=True)
class Cli:
    """The program with its home folder."""

    home: Path

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "NODEPREP_HOME": str(self.home), "COLUMNS": "200"}

    def __call__(self, *arguments: str | Path, timeout_s: float = 150) -> Said:
        ended = subprocess.run(
            [*PROGRAM, *map(str, arguments)],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        return Said(ended.returncode, ended.stdout, ended.stderr)

    def start(self, *arguments: str | Path) -> subprocess.Popen[str]:
        """A command that the caller will interrupt."""
        return subprocess.Popen(
            [*PROGRAM, *map(str, arguments)],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # As a terminal starts it: a test runner in the background ignores SIGINT, and hands that down.
            preexec_fn=_interruptible,  # noqa: PLW1509 - the tests start no threads
        )


def _interruptible() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
