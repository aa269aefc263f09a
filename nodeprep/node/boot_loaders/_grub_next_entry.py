"""GRUB's one-shot choice: next_entry in its environment block, which GRUB clears before it boots."""

from __future__ import annotations

from typing import Dict

from ..paths import exists, under
from . import _grub_cfg, _grubenv, _one_shot
from ._boot_loader import Refusal
from ._grub_cfg import GrubCfg
from ._tools import TIMEOUT_S, Run

_WAITS = "-1"

# SUSE keeps the variables in the header of btrfs; the block then only says where.
_ELSEWHERE = "env_block"


class NextEntry:
    """The choice of one entry for one boot.

    Attributes:
        entry: Id of nodeprep's entry.
        env: Path of the environment block.
    """

    def __init__(self, root: str, cfg: str, env: str, *, prefix: str, entry: str, run: Run) -> None:
        """Args: prefix is what programs begin with: "grub" or "grub2"."""
        self._root = root
        self._cfg = cfg
        self._editenv = f"{prefix}-editenv"
        self._run = run
        self.entry = entry
        self.env = env

    def environment(self) -> Dict[str, str]:
        """GRUB's variables that last.

        Raises:
            OSError, ValueError, ToolError: They cannot be read.
            Refusal: Only GRUB's own program could read them, and this root is a simulated one.
        """
        found = _grubenv.read(self._root, self.env)
        if _ELSEWHERE not in found:
            return found
        listed = self._run([self._editenv, under(self._root, self.env), "list"], TIMEOUT_S)
        return dict(line.partition("=")[::2] for line in listed.splitlines())

    def obstacle(self, config: GrubCfg, environment: Dict[str, str], custom: str) -> str:
        """Why GRUB would not take an entry for one boot only, "" when it would.

        Args:
            config: grub.cfg.
            environment: GRUB's variables that last.
            custom: Path of the custom.cfg that grub.cfg may read.

        Raises:
            OSError, ValueError: It cannot be told.
        """
        chooses = any("${next_entry}" in value for value in config.assigned("default"))
        if not chooses or not config.runs("save_env", "next_entry"):
            return f"{self._cfg} has no code for a one-shot entry (next_entry)"
        if environment.get("initrdfail"):
            return f"{self.env} says that the last boot without initrd failed, so the next one is not free"
        if environment.get("boot_counter"):
            return (
                f"{self.env} counts failed boots (boot_counter), and GRUB may choose another entry for that"
            )
        if _WAITS in [value.strip("\"'") for value in config.assigned("timeout")]:
            return "GRUB waits at its menu without end (its timeout is -1), so no boot comes up by itself"
        return self._overruled(config, custom) or _one_shot.obstacle(self._root, self.env)

    def _overruled(self, config: GrubCfg, custom: str) -> str:
        """What else sets the default entry after the code for next_entry, "" for nothing."""
        there = config.reads_custom() and exists(self._root, custom)
        if there and _grub_cfg.read(self._root, custom).overrules_next_entry():
            return f"{custom} sets the default boot entry, whatever one-shot entry (next_entry) was chosen"
        if config.overrules_next_entry():
            return (
                f"{self._cfg} sets the default boot entry after its code for a one-shot entry (next_entry); "
                "a script in /etc/grub.d such as 40_custom does that"
            )
        return ""

    def choose(self) -> None:
        """Chooses nodeprep's entry for the next boot, and reads it back.

        Raises:
            Refusal: Another one-shot entry is chosen, or the choice was not written.
            OSError, ValueError, ToolError: It cannot be read or written.
        """
        chosen = self.environment().get("next_entry", "")
        if chosen not in ("", self.entry):
            raise Refusal(
                f"the next boot is already promised to the entry {chosen!r}",
                f"boot it first, or take it back: {self._editenv} {self.env} unset next_entry",
            )
        self.write("set", f"next_entry={self.entry}")
        if not self.chosen():
            raise Refusal(f"{self.env} does not hold the one-shot entry after it was written")

    def chosen(self) -> bool:
        """Whether the next boot takes nodeprep's entry.

        Raises:
            OSError, ValueError, ToolError: It cannot be read.
        """
        return self.environment().get("next_entry") == self.entry

    def take_back(self) -> None:
        """Takes the choice back, if it is nodeprep's.

        Raises:
            OSError, ValueError, ToolError: It cannot be read or written.
            Refusal: It was not taken back.
        """
        if not self.chosen():
            return
        self.write("unset", "next_entry")
        if self.chosen():
            raise Refusal(f"{self.env} still holds the one-shot entry after it was taken back")

    def write(self, *arguments: str) -> None:
        """Changes the environment block with GRUB's own program.

        Raises:
            ToolError: It failed.
        """
        self._run([self._editenv, under(self._root, self.env), *arguments], TIMEOUT_S)


def must_be_possible(obstacle: str) -> None:
    """Raises: Refusal: There is an obstacle to a one-shot boot."""
    if obstacle:
        raise Refusal(
            f"a one-shot boot is not possible here: {obstacle}",
            "remove the obstacle, or set the arguments by hand while somebody can reach the console",
        )


def cannot_tell(problem: Exception) -> str:
    """An obstacle, because it is not known whether there is one."""
    return f"it cannot be told whether GRUB would take an entry for one boot only: {problem}"
