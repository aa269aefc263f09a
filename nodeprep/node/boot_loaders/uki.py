"""Unified kernel images: kernel, initrd and arguments in one file, signed as a whole."""

from __future__ import annotations

from . import _efi_variables
from ._recognised import Recognised


class Uki(Recognised):
    """A kernel image that was started by systemd-stub."""

    id = "uki"
    what = "this node boots a unified kernel image, with its kernel arguments sealed inside"
    instead = (
        "put them where the image is built from (/etc/kernel/cmdline, or the build of the image), build and "
        "sign it anew, and reboot; with secure boot, arguments from outside are ignored"
    )

    @classmethod
    def recognise(cls, root: str) -> str:
        """What the stub inside the image told."""
        return _efi_variables.text(root, "StubInfo") or ""
