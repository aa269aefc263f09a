"""GRUB as SLES 12 and 15 and openSUSE Leap set it up: grub2-mkconfig from /etc/default/grub.

`update-bootloader --add-option` edits the same line, but by name: a second console= would replace the
first, and older versions ignore the option without a word. So the line is edited here, in the form in
which update-bootloader and YaST write it.
SLES 16 keeps entries in files of their own, made by sdbootutil, and may have sealed the disk's key to
the arguments: that is recognised and refused.

Not run against a real SLES in nodeprep's tests: GRUB's own programs and shell are, its grub2-mkconfig is not.
Source: pbl and include/library of SUSE's perl-bootloader and update-bootloader.
"""

from __future__ import annotations

from typing import Any, Optional

from ..kernel_cmdline import Edit
from ..paths import exists, read_text
from . import _default_grub
from ._boot_loader import Entry, Refusal, program
from ._grub_mkconfig import Files, GrubMkconfig

_SYSCONFIG = "/etc/sysconfig/bootloader"
_BLS_LOADERS = ("grub2-bls", "systemd-boot")


class Suse(GrubMkconfig):
    """grub2-mkconfig with one settings file."""

    id = "suse"
    folder = "/boot/grub2"
    prefix = "grub2"

    @classmethod
    def recognise(cls, root: str) -> str:
        """The program update-bootloader or pbl."""
        return program(root, "update-bootloader") or program(root, "pbl")

    def refusal(self) -> Optional[Refusal]:
        """SLES 16 and Tumbleweed, where sdbootutil makes the entries."""
        loader = _loader_type(self.root)
        if loader not in _BLS_LOADERS and not program(self.root, "sdbootutil"):
            return None
        return Refusal(
            f"the boot entries of this node are made by sdbootutil ({loader or 'no loader type is set'})",
            "edit /etc/kernel/cmdline, then run `sdbootutil update-all-entries`; "
            "with a disk key sealed by the TPM, `sdbootutil update-predictions` too",
        )

    def default_entry(self) -> Entry:
        """What grub.cfg and saved_entry choose."""
        self._must_be_editable()
        return super().default_entry()

    def one_shot_obstacle(self) -> str:
        """Why GRUB could not take back a one-shot choice."""
        refusal = self.refusal()
        return str(refusal) if refusal else super().one_shot_obstacle()

    def _must_be_editable(self) -> None:
        refusal = self.refusal()
        if refusal:
            raise refusal

    def _edited(self, edit: Edit) -> Files:
        return {_default_grub.PATH: _default_grub.edited(self.root, self._run, edit)}

    def _settings(self) -> Any:
        return _default_grub.lines(self.root)

    def _restored(self, settings: Any) -> Files:
        return {_default_grub.PATH: _default_grub.with_lines(self.root, settings)}


def _loader_type(root: str) -> str:
    if not exists(root, _SYSCONFIG):
        return ""
    settings = (line.partition("=") for line in read_text(root, _SYSCONFIG).splitlines())
    return next((value.strip("\"' ") for name, _, value in settings if name.strip() == "LOADER_TYPE"), "")
