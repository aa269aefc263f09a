"""What every boot loader back end can do, and how it says that it will not."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Dict, Optional, Sequence

from ..kernel_cmdline import Edit, parse
from ..paths import exists, is_real, under
from . import _tools

# The one-shot entry's name in every boot loader.
TRIAL_ID = "nodeprep-trial"
TRIAL_TITLE = "nodeprep: one boot with new kernel arguments"

_PROGRAM_FOLDERS = ("/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin")


class Refusal(Exception):
    """Nothing was changed, or what was changed has been put back; the message says why.

    Attributes:
        hint: What to do instead.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True)
class Entry:
    """A boot entry.

    Attributes:
        title: As the menu shows it.
        kernel_release: As `uname -r` will print it, "" when the file name does not tell it.
        cmdline: Arguments the kernel will be given, without what the boot loader adds itself.
        source: File the entry comes from.
    """

    title: str
    kernel_release: str
    cmdline: str
    source: str


class BootLoader(ABC):
    """One boot loader on one node.

    A back end that lacks something cannot be made at all: on a node it would be missed amid a commit.

    Attributes:
        id: Name of the back end.
        root: "/" or a simulated root.
    """

    id = ""

    def __init__(self, root: str, run: Optional[_tools.Run] = None) -> None:
        self.root = root
        # In a simulated root nothing is run and nothing is written, unless a test brings its programs.
        self._run_program: Optional[_tools.Run] = run or (_tools.run if is_real(root) else None)

    @classmethod
    @abstractmethod
    def recognise(cls, root: str) -> str:
        """What shows that this boot loader is in charge here, "" when nothing does.

        Raises:
            OSError: It cannot be known.
        """

    def refusal(self) -> Optional[Refusal]:
        """Why kernel arguments cannot be changed on this node at all, None when they can.

        Raises:
            OSError: It cannot be known.
        """
        return None

    @abstractmethod
    def default_entry(self) -> Entry:
        """What the next plain boot would take.

        Raises:
            OSError: A file of the boot loader cannot be read.
            ValueError: Its content does not tell.
            Refusal: This back end is recognised only.
        """

    @abstractmethod
    def one_shot_obstacle(self) -> str:
        """Why a one-shot entry cannot be trusted on this node, "" when it can."""

    @abstractmethod
    def stage_trial(self, cmdline: str) -> None:
        """Writes the one-shot entry: the default entry with this command line. Does not arm it.

        Raises:
            Refusal: It cannot be done safely; nothing has changed.
            OSError, ValueError, ToolError: As `default_entry`, or a file cannot be written.
        """

    @abstractmethod
    def staged(self) -> Optional[str]:
        """Command line of the one-shot entry, None when there is none."""

    @abstractmethod
    def arm(self) -> None:
        """Lets the next boot, and only that one, take the one-shot entry; read back afterwards.

        Raises:
            Refusal: It cannot be trusted here, or nothing is staged.
            OSError, ToolError: It cannot be written.
        """

    @abstractmethod
    def armed(self) -> bool:
        """Whether the next boot would take the one-shot entry."""

    @abstractmethod
    def disarm(self) -> None:
        """Lets the next boot be a plain one; does nothing when it already is."""

    @abstractmethod
    def unstage(self) -> None:
        """Removes the one-shot entry; does nothing when there is none. Disarms first."""

    @abstractmethod
    def commit(self, edit: Edit) -> None:
        """Makes an edit permanent, also for kernels installed later; read back afterwards.

        Raises:
            Refusal: The boot loader would not do what was asked; everything is as it was before.
            OSError, ValueError, ToolError: A file or a program failed; everything is as it was before.
        """

    @abstractmethod
    def snapshot(self) -> Dict[str, Any]:
        """All that `restore` needs to take back later commits; can be stored as JSON."""

    @abstractmethod
    def restore(self, snapshot: Dict[str, Any], edits: Sequence[Edit] = ()) -> None:
        """Permanent arguments as at the snapshot; what others changed since is kept where possible.

        Args:
            snapshot: From before the commits that are taken back.
            edits: Theirs, in their order. Back ends that keep their own share in a file of its own need none.

        Raises:
            Refusal: The snapshot is of another back end, or the result is not what it should be.
            OSError, ValueError, ToolError: As `commit`.
        """

    def _run(self, argv: Sequence[str], timeout_s: float = _tools.TIMEOUT_S) -> str:
        self._must_be_writable()
        assert self._run_program is not None  # noqa: S101
        return self._run_program(argv, timeout_s)

    def _must_be_writable(self) -> None:
        if self._run_program is None:
            raise Refusal(
                f"{self.root} is a simulated root: its boot loader is only read",
                "kernel arguments are changed on the node itself",
            )

    def _must_be_mine(self, snapshot: Dict[str, Any]) -> None:
        if snapshot.get("back_end") != self.id:
            raise Refusal(
                f"the restore point is of the boot loader {snapshot.get('back_end')!r}, this is {self.id!r}",
                "the node was reinstalled or moved to another boot loader since; set the arguments by hand",
            )


def program(root: str, name: str) -> str:
    """Where a program lies below the root, "" when it is nowhere.

    Raises:
        OSError: A folder on the way may not be entered.
    """
    return next((f"{folder}/{name}" for folder in _PROGRAM_FOLDERS if exists(root, f"{folder}/{name}")), "")


def kernel_release(root: str, kernel: str) -> str:
    """Release from the name of a kernel's file, "" when the name does not tell it.

    Raises:
        OSError: A folder on the way may not be entered.
    """
    name = kernel.rpartition("/")[2]
    for folder in ("/boot", ""):
        # A plain name is a link to the file whose name tells.
        if "-" not in name and exists(root, f"{folder}/{name}"):
            name = os.path.basename(os.path.realpath(under(root, f"{folder}/{name}")))
    for start in ("vmlinuz-", "vmlinux-", "Image-", "kernel-"):
        if name.startswith(start):
            release = name[len(start) :]
            return release[: -len(".efi.signed")] if release.endswith(".efi.signed") else release
    return ""


def same_arguments(one: str, other: str) -> bool:
    """Whether two command lines hold the same arguments, in any order, repeats counted."""
    return sorted(map(str, parse(one))) == sorted(map(str, parse(other)))


def same_effect(one: str, other: str) -> bool:
    """Whether they also hold the values of each key in the same order: of several, the last one counts."""
    first, second = (sorted(parse(each), key=lambda argument: argument.key) for each in (one, other))
    return first == second


def difference(before: str, after: str) -> str:
    """The arguments that two command lines do not share, in words."""
    old, new = list(map(str, parse(before))), list(map(str, parse(after)))
    gone = [f"-{each}" for each in old if each not in new]
    come = [f"+{each}" for each in new if each not in old]
    return " ".join([*gone, *come]) or "the same arguments in other numbers"
