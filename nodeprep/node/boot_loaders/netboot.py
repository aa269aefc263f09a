"""Kernels that come over the network: PXE, iPXE, MAAS, Ironic, xCAT, Warewulf and their kin."""

from __future__ import annotations

import re

from ..kernel_cmdline import Argument, parse
from ..paths import exists, read_text
from ._recognised import Recognised

# Source: PXELINUX (SYSAPPEND writes BOOTIF), dracut.cmdline(7), live-boot(7), casper(7), nfsroot.rst of
# Linux; xCAT and Warewulf as their own images have it.
_KEYS = frozenset({"BOOTIF", "nfsroot", "netroot", "netboot", "fetch", "httpfs", "XCAT", "wwinit.uri"})
_ROOTS = re.compile(r"(/dev/nfs|nfs4?:|live:(https?|nfs|tftp|ftp):|https?:|wwclient)")
_NETWORK_ROOTS = frozenset({"nfs", "nfs4", "9p", "ceph"})


class Netboot(Recognised):
    """A kernel that was not loaded from this node's disk."""

    id = "netboot"
    what = "this node's kernel came over the network, and no file on the node is read at boot"
    instead = (
        "set them on the server that boots this node: kernel_opts in MAAS, kernel_append_params in Ironic, "
        "addkcmdline in xCAT, the append line of PXELINUX"
    )

    @classmethod
    def recognise(cls, root: str) -> str:
        """Arguments that only network boot leaves, or a root file system on the network."""
        if not exists(root, "/proc/cmdline"):
            return ""
        for argument in parse(read_text(root, "/proc/cmdline")):
            if _tells(argument):
                return f"{argument} in /proc/cmdline"
        return _network_root(root)


def _tells(argument: Argument) -> bool:
    if argument.key == "root":
        return bool(_ROOTS.match(argument.value or ""))
    return argument.key in _KEYS


def _network_root(root: str) -> str:
    if not exists(root, "/proc/self/mountinfo"):
        return ""
    for line in read_text(root, "/proc/self/mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        if left.split()[4:5] == ["/"] and right.split()[:1] and right.split()[0] in _NETWORK_ROOTS:
            return f"the root file system is {right.split()[0]}"
    return ""
