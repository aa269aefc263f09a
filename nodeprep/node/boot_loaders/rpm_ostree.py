"""rpm-ostree: Fedora CoreOS, Silverblue, RHEL for Edge. Each deployment has its own boot entry."""

from __future__ import annotations

from ..paths import exists
from ._recognised import Recognised


class RpmOstree(Recognised):
    """An ostree deployment."""

    id = "rpm_ostree"
    what = "this node runs an ostree deployment, and rpm-ostree writes its boot entries"
    instead = (
        "run `rpm-ostree kargs --append-if-missing=KEY=VALUE` and reboot; the deployment before it stays "
        "in the boot menu. For new nodes: kernel_arguments in the Butane configuration"
    )

    @classmethod
    def recognise(cls, root: str) -> str:
        """What ostree leaves in /run at boot."""
        return "/run/ostree-booted" if exists(root, "/run/ostree-booted") else ""
