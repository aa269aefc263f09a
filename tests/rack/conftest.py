"""Simulated nodes for the tests of this folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nodeprep.sim.cast import Role
from nodeprep.sim.rack import RackNode, build_node


@pytest.fixture
def make_node(tmp_path: Path) -> Callable[..., RackNode]:
    """Builds a node with a fault ("" for none) on GPU 1 of three."""

    def make(fault: str = "", *, gpu: int = 1, gpus: int = 3) -> RackNode:
        return build_node(tmp_path / "node01", Role(fault, gpu), gpus=gpus)

    return make
