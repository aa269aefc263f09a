"""GRUB whose grub.cfg is generated from settings: what Debian's and SUSE's back ends share.

grub.cfg is generated beside the old one, judged, and only then put in its place: the node never has
a grub.cfg that nobody has looked at. The trial's entry does not go through grub.cfg at all.
"""

from __future__ import annotations

import os
import stat
from abc import abstractmethod
from typing import Any, Callable, Dict, List, Optional, Sequence

from .. import durable
from ..kernel_cmdline import Edit, parse
from ..paths import under
from . import _tools
from ._boot_loader import BootLoader, Entry, Refusal, difference, same_arguments, same_effect
from ._grub_trial import GrubFolder

# Path to content; None for no file.
Files = Dict[str, Optional[str]]


class GrubMkconfig(BootLoader):
    """grub-mkconfig with settings in files.

    Attributes:
        folder: Where grub.cfg lies.
        prefix: What the names of GRUB's programs begin with.
    """

    folder = ""
    prefix = ""

    def __init__(self, root: str, run: Optional[_tools.Run] = None) -> None:
        super().__init__(root, run)
        self._grub = GrubFolder(root, self.folder, self.prefix, self._run)
        self._candidate = f"{self.folder}/nodeprep-candidate.cfg"

    def default_entry(self) -> Entry:
        """What grub.cfg and saved_entry choose."""
        return self._grub.default()[1]

    def one_shot_obstacle(self) -> str:
        """Why GRUB could not take back a one-shot choice."""
        return self._grub.obstacle()

    def stage_trial(self, cmdline: str) -> None:
        """Writes the entry into custom.cfg, if generating grub.cfg would change nothing else later."""
        self._must_be_writable()
        self._must_be_editable()
        self._must_have_no_pending_changes()
        self._grub.stage(cmdline)

    def staged(self) -> Optional[str]:
        """From custom.cfg."""
        return self._grub.staged()

    def arm(self) -> None:
        """Sets next_entry in grubenv."""
        self._must_be_writable()
        self._grub.arm()

    def armed(self) -> bool:
        """From grubenv."""
        return self._grub.next_entry.chosen()

    def disarm(self) -> None:
        """Takes next_entry away when it is nodeprep's."""
        self._must_be_writable()
        self._grub.next_entry.take_back()

    def unstage(self) -> None:
        """Takes the entry out of custom.cfg."""
        self._must_be_writable()
        self._grub.unstage()

    def commit(self, edit: Edit) -> None:
        """Writes the settings and has grub.cfg generated; both or neither."""
        self._must_be_writable()
        self._must_be_editable()
        before = self.default_entry()
        new = self._edited(edit)
        if edit.satisfied(before.cmdline) and not self._changes(new):
            return
        expected = edit.apply(before.cmdline)

        def judge(after: Entry) -> None:
            if not edit.satisfied(after.cmdline):
                raise Refusal(
                    f"the default boot entry {after.title!r} would not take the arguments "
                    f"({difference(expected, after.cmdline)})",
                    "a script in /etc/grub.d writes this entry with arguments of its own; edit it by hand",
                )
            if after.kernel_release != before.kernel_release or not same_arguments(after.cmdline, expected):
                wanted = Entry(before.title, before.kernel_release, expected, before.source)
                raise self._pending(wanted, after)

        self._regenerate(new, judge)

    def snapshot(self) -> Dict[str, Any]:
        """The settings as they are, and what the default entry gives the kernel."""
        return {"back_end": self.id, "cmdline": self.default_entry().cmdline, "settings": self._settings()}

    def restore(self, snapshot: Dict[str, Any], _edits: Sequence[Edit] = ()) -> None:
        """Puts nodeprep's share of the settings back, and has grub.cfg generated where it must change.

        What others changed and never booted would become permanent with it: then it is refused, before
        anything is written.
        """
        self._must_be_mine(snapshot)
        self._must_be_writable()
        before = self.default_entry()
        new = self._restored(snapshot["settings"])
        if same_effect(before.cmdline, snapshot["cmdline"]):
            # A commit that died before its grub.cfg was in place, for instance: it is as it should be.
            self._put(new)
            self._forget_candidate()
            return
        if self._changes(new):
            self._must_have_no_pending_changes()

        def judge(after: Entry) -> None:
            self._judge_undone(before, after, snapshot)
            self._judge_restored(after, snapshot)

        self._regenerate(new, judge)

    def _must_be_editable(self) -> None:
        """Raises: Refusal: This node's settings cannot be edited by the back end."""

    @abstractmethod
    def _edited(self, edit: Edit) -> Files:
        """The settings' files with an edit made."""

    @abstractmethod
    def _settings(self) -> Any:
        """What `_restored` needs; can be stored as JSON."""

    @abstractmethod
    def _restored(self, settings: Any) -> Files:
        """The settings' files with nodeprep's share as it was."""

    def _judge_restored(self, after: Entry, snapshot: Dict[str, Any]) -> None:
        """Raises: Refusal: This is not what the restore point says."""

    def _judge_undone(self, before: Entry, after: Entry, snapshot: Dict[str, Any]) -> None:
        """Raises: Refusal: Something else would change than what leads back to the restore point."""
        then, old, new = (
            [str(each) for each in parse(cmdline)]
            for cmdline in (snapshot["cmdline"], before.cmdline, after.cmdline)
        )
        others = [f"-{each}" for each in old if each not in new and each in then]
        others += [f"+{each}" for each in new if each not in old and each not in then]
        if others or after.kernel_release != before.kernel_release:
            raise self._pending(before, after, " ".join(others))

    def _changes(self, files: Files) -> bool:
        return any(durable.content(self.root, path) != text for path, text in files.items())

    def _regenerate(self, new: Files, judge: Callable[[Entry], None]) -> None:
        """Puts files in place and grub.cfg with them, if judge does not raise."""
        old = {path: durable.content(self.root, path) for path in new}
        try:
            self._put(new)
            judge(self._generated())
            self._install()
        except BaseException:
            self._put(old)
            raise
        finally:
            self._forget_candidate()
        judge(self.default_entry())

    def _put(self, files: Files) -> None:
        for path, text in files.items():
            if durable.content(self.root, path) != text:
                durable.put(self.root, path, text)

    def _generated(self) -> Entry:
        """The default entry of a grub.cfg generated now, which lies beside the one in use."""
        output = under(self.root, self._candidate)
        self._run([f"{self.prefix}-mkconfig", "-o", output], _tools.GENERATE_TIMEOUT_S)
        return self._grub.default(self._candidate)[1]

    def _install(self) -> None:
        """The generated file becomes grub.cfg, whole and at once, with the old one's owner and mode."""
        candidate = under(self.root, self._candidate)
        target = os.path.realpath(under(self.root, self._grub.cfg))
        now = os.stat(target)
        os.chmod(candidate, stat.S_IMODE(now.st_mode))
        os.chown(candidate, now.st_uid, now.st_gid)
        descriptor = os.open(candidate, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.replace(candidate, target)
        # The name too: GRUB reads the disk without the kernel's memory.
        os.sync()

    def _forget_candidate(self) -> None:
        for path in (self._candidate, self._candidate + ".new"):
            if os.path.lexists(under(self.root, path)):
                os.unlink(under(self.root, path))

    def _must_have_no_pending_changes(self) -> None:
        """Changes of others that wait for the next generation would become permanent untried."""
        now = self.default_entry()
        try:
            then = self._generated()
        finally:
            self._forget_candidate()
        if then.kernel_release != now.kernel_release or not same_arguments(then.cmdline, now.cmdline):
            raise self._pending(now, then)

    def _pending(self, now: Entry, then: Entry, arguments: Optional[str] = None) -> Refusal:
        """Args: arguments says which ones would change unasked; all that differ if not given."""
        if arguments is None:
            same = same_arguments(now.cmdline, then.cmdline)
            arguments = "" if same else difference(now.cmdline, then.cmdline)
        changes: List[str] = [arguments] if arguments else []
        if now.kernel_release != then.kernel_release:
            changes.append(f"kernel {then.kernel_release} instead of {now.kernel_release}")
        command = f"{self.prefix}-mkconfig -o {self._grub.cfg}"
        return Refusal(
            f"generating grub.cfg would also change the default boot entry otherwise: {', '.join(changes)}",
            f"someone changed the settings or the kernels: run `{command}`, reboot, and start again",
        )
