"""What may import what, and what the nodes' Python can read."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import nodeprep

PACKAGE = Path(nodeprep.__file__).parent
COLLECTION = PACKAGE / "ansible_collections" / "nodeprep" / "rack" / "plugins"
# Ansible packs module_utils and modules for the node; action plugins stay on the controller.
ON_NODES = {
    "node": PACKAGE / "node",
    "probe": PACKAGE / "probe",
    "modules": COLLECTION / "modules",
    "module_utils": COLLECTION / "module_utils",
}
ALLOWED: dict[str, set[str]] = {
    "node": set(),
    # Only where they are used, inside the backends.
    "probe": {"torch", "numpy", "triton", "tensorrt"},
    "modules": {"ansible.module_utils.basic"},
    "module_utils": set(),
}
OLDEST = (3, 8)


def sources(part: str) -> list[Path]:
    folder = ON_NODES[part]
    found = [path for path in sorted(folder.rglob("*.py")) if "vendor" not in path.parts]
    # The link to the node code is looked at under its own name.
    return [path for path in found if (COLLECTION / "module_utils" / "node") not in path.parents]


def imported(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every imported module with its level: 0 is absolute."""
    for statement in ast.walk(tree):
        if isinstance(statement, ast.Import):
            yield from ((alias.name, 0) for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            yield statement.module or "", statement.level


@pytest.mark.parametrize("part", ON_NODES)
def test_node_code_is_readable_by_the_oldest_python(part: str) -> None:
    files = sources(part)
    assert files
    for path in files:
        ast.parse(path.read_text(), str(path), feature_version=OLDEST)


@pytest.mark.parametrize("part", ON_NODES)
def test_node_code_imports_the_standard_library_and_its_own_neighbours(part: str) -> None:
    foreign = {
        (str(path.relative_to(PACKAGE)), name)
        for path in sources(part)
        for name, level in imported(ast.parse(path.read_text()))
        if level == 0
        and name.split(".")[0] not in sys.stdlib_module_names
        and not {name, name.split(".")[0]} & ALLOWED[part]
    }
    assert foreign == set()


def test_only_the_fleet_knows_ansible_runner() -> None:
    knowing = {
        path.relative_to(PACKAGE).parts[0]
        for path in PACKAGE.rglob("*.py")
        for name, _ in imported(ast.parse(path.read_text()))
        if name.split(".")[0] == "ansible_runner"
    }
    assert knowing == {"fleet"}


def test_the_controller_never_imports_ansible_itself() -> None:
    """It is run as a program: its Python interface is not stable, and its licence is another one."""
    inside = {
        path.relative_to(PACKAGE).parts[0]
        for path in PACKAGE.rglob("*.py")
        for name, _ in imported(ast.parse(path.read_text()))
        if name.split(".")[0] == "ansible"
    }
    assert inside == {"ansible_collections"}


def test_the_links_of_the_collection() -> None:
    rack = COLLECTION.parent
    assert (rack / "plugins" / "module_utils" / "node").resolve() == (PACKAGE / "node").resolve()
    for name in ("roles", "playbooks"):
        assert (rack / name).is_dir(), f"{name} is missing from the collection"
