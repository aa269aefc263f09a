"""Every story of the demo, told by the node's own code without Ansible: right verdict, right reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from node_side import certify_node

from nodeprep.sim.cast import Role, cast
from nodeprep.sim.rack import RackInventory, build_node
from nodeprep.sim.stories import check_stories

CAST = list(enumerate(cast(7), start=1))


@pytest.mark.parametrize(
    ("number", "role"), CAST, ids=[f"{role.fault or 'healthy'}-{number}" for number, role in CAST]
)
def test_the_story_is_told_right(number: int, role: Role, tmp_path: Path) -> None:
    node = build_node(tmp_path / f"node{number:02d}", role)
    told = certify_node(node, tmp_path / "probe", "--duration-s", "1.2")
    rack = RackInventory(folder=tmp_path, inventory=tmp_path / "inventory.yml", nodes=(node,))
    (story,) = check_stories(rack, {node.name: told.certificate})
    assert story.told_right, story.detail
