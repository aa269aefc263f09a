"""Init: an example site to start from."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from nodeprep.errors import UsageError
from nodeprep.model.outputs import Created

_FILES = {"inventory.yml": "hosts.yml", "group_vars/gpu_nodes.yml": "policy.yml"}


def write_site(folder: Path) -> Created:
    """Writes the inventory and its policy; refuses to touch files that are there.

    Raises:
        UsageError: One of the files exists, or the folder cannot be written.
    """
    there = [name for name in _FILES if (folder / name).exists()]
    if there:
        raise UsageError(f"{folder / there[0]} exists already", hint="name another folder: nodeprep init DIR")
    templates = resources.files("nodeprep.workflows") / "site"
    try:
        for name, template in _FILES.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("x") as file:
                file.write((templates / template).read_text())
    except OSError as error:
        raise UsageError(f"cannot write {error.filename}: {error.strerror}") from error
    return Created(
        folder=str(folder),
        files=tuple(str(folder / name) for name in _FILES),
        next=f"edit them, then: nodeprep inspect -i {folder / 'inventory.yml'}",
    )
