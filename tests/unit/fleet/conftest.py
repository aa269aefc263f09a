"""An inventory of this machine under several names, and a fleet over it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from nodeprep.fleet import Fleet, FleetEvent

LOCAL = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    return folder


@pytest.fixture
def write_inventory(tmp_path: Path) -> Callable[[dict[str, dict[str, Any]]], Path]:
    """Writes hosts with their variables; every host is local and has an empty root of its own."""

    def write(hosts: dict[str, dict[str, Any]]) -> Path:
        for name in hosts:
            (tmp_path / "roots" / name).mkdir(parents=True, exist_ok=True)
        data = {
            name: {**LOCAL, "nodeprep_root": str(tmp_path / "roots" / name), **variables}
            for name, variables in hosts.items()
        }
        path = tmp_path / "inventory.yml"
        path.write_text(yaml.safe_dump({"all": {"children": {"rack": {"hosts": data}}}}))
        return path

    return write


@pytest.fixture
def events() -> list[FleetEvent]:
    return []


@pytest.fixture
def make_fleet(run_dir: Path, events: list[FleetEvent]) -> Callable[..., Fleet]:
    def make(inventory: Path | None = None, **options: Any) -> Fleet:
        return Fleet(run_dir=run_dir, inventory=inventory, **{"on_event": events.append, **options})

    return make
