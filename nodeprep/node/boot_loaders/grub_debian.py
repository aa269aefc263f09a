"""GRUB as Debian and Ubuntu set it up: grub-mkconfig with drop-ins in /etc/default/grub.d.

Permanent arguments live in one drop-in that edits what the others have set.
"""

from __future__ import annotations

from typing import Any, Dict

from ..kernel_cmdline import Edit
from ..paths import exists, read_text
from . import _grub_drop_in as drop_in
from ._boot_loader import Entry, Refusal, difference, program
from ._grub_mkconfig import Files, GrubMkconfig


class GrubDebian(GrubMkconfig):
    """update-grub with drop-ins."""

    id = "grub_debian"
    folder = "/boot/grub"
    prefix = "grub"

    @classmethod
    def recognise(cls, root: str) -> str:
        """The program update-grub, which only Debian and its descendants have."""
        found = program(root, "update-grub")
        return (
            f"{found} and {cls.folder}/grub.cfg" if found and exists(root, f"{cls.folder}/grub.cfg") else ""
        )

    def _must_be_editable(self) -> None:
        generator = program(self.root, "grub-mkconfig")
        if not generator or "default/grub.d" not in read_text(self.root, generator):
            raise Refusal(
                "grub-mkconfig does not read /etc/default/grub.d on this node",
                "a grub-mkconfig of another distribution is in the way; install grub-common of this one",
            )

    def _edited(self, edit: Edit) -> Files:
        old = drop_in.files(self.root)
        earlier = drop_in.edit_in(old)
        path, text = drop_in.file_for(self.root, drop_in.together(earlier, edit) if earlier else edit)
        return {**dict.fromkeys(old), path: text}

    def _settings(self) -> Any:
        return drop_in.files(self.root)

    def _restored(self, settings: Any) -> Files:
        return {**dict.fromkeys(drop_in.files(self.root)), **settings}

    def _judge_restored(self, after: Entry, snapshot: Dict[str, Any]) -> None:
        edit = drop_in.edit_in(snapshot["settings"])
        if edit is not None and not edit.satisfied(after.cmdline):
            raise Refusal(
                f"the default boot entry would not have the arguments of the restore point: "
                f"{difference(snapshot['cmdline'], after.cmdline)}",
                "another file in /etc/default/grub.d undoes them; look there",
            )
