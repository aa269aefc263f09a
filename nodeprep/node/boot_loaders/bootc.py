"""bootc: the operating system is a container image, and its arguments come with it."""

from __future__ import annotations

from typing import List

from ..paths import exists, list_folder, read_text
from ._boot_loader import program
from ._recognised import Recognised

_DEPLOYMENTS = "/ostree/deploy"


class Bootc(Recognised):
    """An ostree deployment made from a container image."""

    id = "bootc"
    what = "this node runs a bootc image, and its kernel arguments belong to the image"
    instead = (
        'put them into the image, as kargs = ["KEY=VALUE"] in /usr/lib/bootc/kargs.d/10-nodeprep.toml, '
        "then run `bootc upgrade` and reboot; edits of boot entries on the node are lost"
    )

    @classmethod
    def recognise(cls, root: str) -> str:
        """The program bootc, and a deployment that says it came from an image."""
        if not exists(root, "/run/ostree-booted") or not program(root, "bootc"):
            return ""
        return next(
            (path for path in _origins(root) if "container-image-reference" in read_text(root, path)), ""
        )


def _origins(root: str) -> List[str]:
    found = []
    for stateroot in list_folder(root, _DEPLOYMENTS) if exists(root, _DEPLOYMENTS) else []:
        folder = f"{_DEPLOYMENTS}/{stateroot}/deploy"
        names = list_folder(root, folder) if exists(root, folder) else []
        found += [f"{folder}/{name}" for name in names if name.endswith(".origin")]
    return found
