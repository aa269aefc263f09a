"""events.jsonl: one short line for each thing that happened, for `watch` and for whoever looks later.

ansible-runner's own event files hold whole results (facts are 200 KB a host) and task arguments;
they are gone when a phase ends. This file holds neither.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nodeprep.fleet.disk import explained
from nodeprep.fleet.events import FleetEvent

FILE = "events.jsonl"


class Journal:
    """Appends to events.jsonl; every line is flushed, so that a reader can follow it live."""

    def __init__(self, run_dir: Path, phase: str) -> None:
        self._path = run_dir / FILE
        self._phase = phase
        with explained(self._path):
            self._file = self._path.open("a", encoding="utf-8")

    def add(self, event: FleetEvent) -> None:
        """Appends one event.

        Raises:
            DiskError: The disk is full or gone.
        """
        self._write(
            {"host": event.host, "kind": event.kind, "message": event.message, "data": dict(event.data)}
        )

    def note(self, message: str) -> None:
        """Appends a remark about the phase as a whole."""
        self._write({"host": "", "kind": "note", "message": message, "data": {}})

    def close(self) -> None:
        """Closes the file."""
        with explained(self._path):
            self._file.close()

    def _write(self, fields: Mapping[str, Any]) -> None:
        line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "phase": self._phase, **fields}
        with explained(self._path):
            self._file.write(json.dumps(line, separators=(",", ":"), default=str) + "\n")
            self._file.flush()
