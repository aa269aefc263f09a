"""Where nodeprep keeps runs and keys on the controller."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Home:
    """The controller's own folder.

    Attributes:
        path: NODEPREP_HOME, else $XDG_STATE_HOME/nodeprep, else ~/.local/state/nodeprep.
    """

    path: Path

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Home:
        """The folder the environment names; nothing is created."""
        env = os.environ if environment is None else environment
        if env.get("NODEPREP_HOME"):
            return cls(Path(env["NODEPREP_HOME"]).expanduser())
        state = env.get("XDG_STATE_HOME") or "~/.local/state"
        return cls(Path(state).expanduser() / "nodeprep")

    @property
    def runs(self) -> Path:
        """One folder a run."""
        return self.path / "runs"

    @property
    def keys(self) -> Path:
        """Signing keys; made with mode 0700."""
        return self.path / "keys"
