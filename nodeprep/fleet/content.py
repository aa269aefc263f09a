"""Where the Ansible content is, in a checkout and in an installed wheel alike."""

from __future__ import annotations

import shutil
import sys
from importlib import resources
from pathlib import Path

from nodeprep.errors import NodeprepError

COLLECTION = ("ansible_collections", "nodeprep", "rack")


def collections_path() -> Path:
    """The folder that holds ansible_collections/."""
    return Path(str(resources.files("nodeprep")))


def playbook_path(name: str) -> Path:
    """A playbook of the collection, for example "inspect.yml".

    Raises:
        NodeprepError: The installation lacks it.
    """
    path = collections_path().joinpath(*COLLECTION, "playbooks", name)
    if not path.is_file():
        raise NodeprepError(
            f"the playbook {name} is missing from this installation ({path})",
            hint="reinstall nodeprep; a checkout needs its symbolic links (git config core.symlinks true)",
        )
    return path


def program(name: str) -> str:
    """Path of an Ansible program: beside this Python first, then on PATH.

    Raises:
        NodeprepError: Neither has it.
    """
    # A virtual environment used by its full path (.venv/bin/nodeprep) is not on PATH.
    beside = Path(sys.executable).with_name(name)
    if beside.is_file():
        return str(beside)
    found = shutil.which(name)
    if found is None:
        raise NodeprepError(
            f"{name} was found neither beside {sys.executable} nor on PATH",
            hint="install ansible-core into the same environment: `pip install ansible-core`",
        )
    return found
