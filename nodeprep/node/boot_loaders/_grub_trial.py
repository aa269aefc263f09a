"""The one-shot boot entry of GRUB: a block in custom.cfg, chosen for one boot by next_entry.

grub.cfg itself is left alone until the arguments are proven: a damaged custom.cfg costs the trial,
a damaged grub.cfg the node.
"""

from __future__ import annotations

import os
import stat
from typing import List, Optional, Tuple

from .. import durable
from ..kernel_cmdline import parse_word, split
from ..paths import exists, under
from . import _grub_cfg
from ._boot_loader import TRIAL_ID, TRIAL_TITLE, Entry, Refusal, kernel_release, program, same_arguments
from ._grub_cfg import GrubCfg, MenuEntry
from ._grub_next_entry import NextEntry, cannot_tell, must_be_possible
from ._grub_script import expand, kernel_words, quote
from ._tools import TIMEOUT_S, Run, ToolError

_BEGIN = "# BEGIN nodeprep trial: one boot with new kernel arguments. nodeprep writes and removes this."
_END = "# END nodeprep trial"


class GrubFolder:
    """grub.cfg, custom.cfg and grubenv in one folder, such as /boot/grub.

    Attributes:
        cfg: Path of grub.cfg.
        custom: Path of custom.cfg.
        next_entry: The one-shot choice.
    """

    def __init__(self, root: str, folder: str, prefix: str, run: Run) -> None:
        """Args: prefix is what programs begin with: "grub" or "grub2"."""
        self._root = root
        self._prefix = prefix
        self._run = run
        self.cfg = f"{folder}/grub.cfg"
        self.custom = f"{folder}/custom.cfg"
        self.next_entry = NextEntry(
            root, self.cfg, f"{folder}/grubenv", prefix=prefix, entry=TRIAL_ID, run=run
        )

    def default(self, cfg: str = "") -> Tuple[MenuEntry, Entry]:
        """The entry of a plain boot.

        Args:
            cfg: Another file than grub.cfg, which would take its place.

        Raises:
            OSError: A file cannot be read.
            ValueError: It cannot be told.
        """
        config = self._config(cfg)
        environment = self.next_entry.environment()
        chosen = config.default(environment)
        if chosen.id == TRIAL_ID:
            raise ValueError("the default boot entry of GRUB is nodeprep's one-shot entry")
        kernel, cmdline = chosen.kernel(config.variables(environment))
        release = kernel_release(self._root, kernel)
        return chosen, Entry(chosen.title, release, cmdline, cfg or self.cfg)

    def obstacle(self) -> str:
        """Why a one-shot entry cannot be trusted here, "" when it can."""
        try:
            config = self._config()
            if not config.reads_custom():
                return f"{self.cfg} does not read custom.cfg (41_custom is switched off)"
            environment = self.next_entry.environment()
            chosen = config.default(environment)
            if config.assigned("superusers") and chosen.restricted():
                return "GRUB asks for a password before every boot entry, so no boot comes up by itself"
            return self.next_entry.obstacle(config, environment, self.custom)
        except (OSError, ValueError, ToolError, Refusal) as problem:
            return cannot_tell(problem)

    def stage(self, cmdline: str) -> None:
        """Writes the one-shot entry.

        Raises:
            Refusal: It cannot be trusted, or GRUB would not understand it.
            OSError, ValueError, ToolError: A file cannot be read or written, or does not tell.
        """
        must_be_possible(self.obstacle())
        chosen, _ = self.default()
        text = chosen.copied(TRIAL_TITLE, TRIAL_ID, grub_arguments(cmdline))
        before = durable.content(self._root, self.custom)
        mode = self._custom_mode()
        block = f"{_BEGIN}\n{text}{_END}\n"
        durable.put(self._root, self.custom, _joined(_without_block(before or ""), block), mode)
        try:
            self._check(cmdline)
        except BaseException:
            durable.put(self._root, self.custom, before, mode)
            raise

    def staged(self) -> Optional[str]:
        """Command line of the one-shot entry, None when there is none.

        Raises:
            OSError, ValueError: custom.cfg cannot be read or understood.
        """
        block = _block(durable.content(self._root, self.custom) or "")
        if not block:
            return None
        entry = next(iter(_grub_cfg.parse(block).entries), None)
        if entry is None or entry.id != TRIAL_ID:
            raise ValueError(f"the block of nodeprep in {self.custom} is damaged")
        return entry.kernel({})[1]

    def arm(self) -> None:
        """Chooses the one-shot entry for the next boot.

        Raises:
            Refusal: Nothing is staged, another one-shot entry is chosen, or GRUB could not undo it.
            OSError, ValueError, ToolError: It cannot be read or written.
        """
        if self.staged() is None:
            raise Refusal("there is no one-shot boot entry to arm", "stage it first")
        must_be_possible(self.obstacle())
        self.next_entry.choose()

    def unstage(self) -> None:
        """Takes the choice back and removes the entry, and custom.cfg when nothing else is in it.

        Raises:
            OSError, ValueError, ToolError: It cannot be written.
            Refusal: The choice was not taken back.
        """
        self.next_entry.take_back()
        text = durable.content(self._root, self.custom)
        if text is not None and _block(text):
            durable.put(self._root, self.custom, _without_block(text) or None, self._custom_mode())

    def _custom_mode(self) -> int:
        """As it is now: a file with password hashes is nobody else's to read."""
        path = under(self._root, self.custom)
        return stat.S_IMODE(os.stat(path).st_mode) if os.path.exists(path) else 0o644

    def _config(self, cfg: str = "") -> GrubCfg:
        config = _grub_cfg.read(self._root, cfg or self.cfg)
        if config.reads_custom() and exists(self._root, self.custom):
            custom = _grub_cfg.read(self._root, self.custom)
            config.entries.extend(custom.entries)
            config.commands.extend(custom.commands)
        return config

    def _check(self, cmdline: str) -> None:
        """Reads back what was written, with GRUB's own parser where it is installed."""
        if program(self._root, f"{self._prefix}-script-check"):
            self._run([f"{self._prefix}-script-check", under(self._root, self.custom)], TIMEOUT_S)
        written = self.staged()
        if written is None or not same_arguments(written, cmdline):
            raise Refusal(f"the one-shot entry would give the kernel other arguments: {written}")


def grub_arguments(cmdline: str) -> List[str]:
    """What GRUB must give its linux command so that the kernel reads this command line.

    Raises:
        Refusal: GRUB would change a word: it puts a backslash before quotes and backslashes.
    """
    kernel, init = split(cmdline)
    arguments = []
    for word in [*kernel, *init]:
        argument = word.replace('"', "")
        if parse_word(kernel_words(expand(quote(argument), {}))) != parse_word(word):
            raise Refusal(
                f"GRUB cannot pass on the kernel argument {word}",
                "it puts a backslash before every quote and backslash; write the argument without them",
            )
        arguments.append(argument)
    return arguments


def _block(text: str) -> str:
    start, end = text.find(_BEGIN), text.find(_END)
    return text[start:end] if 0 <= start < end else ""


def _without_block(text: str) -> str:
    start, end = text.find(_BEGIN), text.find(_END)
    if not 0 <= start < end:
        return text
    return text[:start] + text[end + len(_END) + 1 :]


def _joined(others: str, block: str) -> str:
    return others + ("\n" if others and not others.endswith("\n") else "") + block
