"""Boot loaders: where kernel arguments live on this node, and how to try them for one boot."""

from __future__ import annotations

from typing import Optional, Tuple, Type

from ._boot_loader import TRIAL_ID, BootLoader, Entry, Refusal
from ._tools import Run, ToolError
from .bootc import Bootc
from .grub_debian import GrubDebian
from .grubby import Grubby
from .netboot import Netboot
from .rpm_ostree import RpmOstree
from .suse import Suse
from .systemd_boot import SystemdBoot
from .uki import Uki

__all__ = ["BACK_ENDS", "TRIAL_ID", "BootLoader", "Entry", "Refusal", "Run", "ToolError", "find"]

# In the order in which they are looked for. What is refused comes before the loaders whose files may
# lie on the disk without being read: an image over the network, or sealed in one file.
BACK_ENDS: Tuple[Type[BootLoader], ...] = (
    Bootc, RpmOstree, Netboot, Uki, SystemdBoot, Grubby, GrubDebian, Suse,
)  # fmt: skip

_LOOKED_FOR = (
    "/run/ostree-booted, network boot in /proc/cmdline, the EFI variables StubInfo and LoaderInfo, "
    "grubby with /boot/loader/entries, update-grub with /boot/grub/grub.cfg, update-bootloader"
)


def find(root: str, run: Optional[Run] = None) -> BootLoader:
    """The boot loader in charge of this node, also one that is only recognised.

    Args:
        root: "/" or a simulated root.
        run: How programs are run; tests bring their own.

    Raises:
        Refusal: None is known.
        OSError: It cannot be known.
    """
    for back_end in BACK_ENDS:
        if back_end.recognise(root):
            return back_end(root, run)
    raise Refusal(
        f"no boot loader was recognised; looked for {_LOOKED_FOR}",
        "set the kernel arguments by hand, and leave kernel_args out of the policy",
    )
