"""Stands in for systemctl on a real machine, for tests of node code that sets up units."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from nodeprep.node import durable, power_unit

SILENT = ("is-active", "is-failed")


class Systemctl:
    """Keeps what systemd would know of nodeprep's unit; what it is told to refuse fails with those words.

    Attributes:
        calls: The arguments of each call.
        refuses: Subcommand to its error.
        unit: "inactive", "active" or "failed".
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, root: str, **refuses: str) -> None:
        self.root = root
        self.calls: list[list[str]] = []
        self.refuses = {name.replace("_", "-"): error for name, error in refuses.items()}
        self.unit = "inactive"
        monkeypatch.setattr(power_unit, "is_real", lambda _root: True)
        monkeypatch.setattr("nodeprep.node.power_rollback.is_real", lambda _root: True)
        monkeypatch.setattr(subprocess, "run", self.run)

    def run(self, command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        self.calls.append(command[1:])
        verb, error = command[1], self.refuses.get(command[1], "")
        if verb in SILENT:
            return subprocess.CompletedProcess(command, int(verb != f"is-{self.unit}" or bool(error)), "", "")
        if command[-1] == power_unit.UNIT:
            self._carry_out(verb, bool(error))
        return subprocess.CompletedProcess(command, 1 if error else 0, "", error)

    def _carry_out(self, verb: str, fails: bool) -> None:
        link = Path(self.root + power_unit.ENABLED_LINK)
        if verb == "restart":
            self.unit = "failed" if fails else "active"
        elif fails:
            return
        elif verb == "enable":
            link.parent.mkdir(parents=True, exist_ok=True)
            if not os.path.lexists(link):
                link.symlink_to(f"../{power_unit.UNIT}")
        elif verb == "disable":
            durable.put(self.root, power_unit.ENABLED_LINK, None)
        elif verb == "reset-failed" or (verb == "stop" and self.unit == "active"):
            self.unit = "inactive"
