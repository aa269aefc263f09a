"""Every named fault leads to what it says a correct tool must conclude, and to nothing else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from node_side import certify_node

from nodeprep.sim.conclusion import disagreements
from nodeprep.sim.faults import FAULTS
from nodeprep.sim.rack import RackNode

# The length of the measured part; faults that grow with time have their rates set for it.
SECONDS = "0.8"


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_the_fault_is_concluded(fault: str, make_node: Callable[..., RackNode], tmp_path: Path) -> None:
    node = make_node(fault)
    told = certify_node(node, tmp_path / "probe", "--duration-s", SECONDS)
    assert disagreements(node.conclusion, told.certificate) == ()
    # Whatever the verdict: nothing here may look like real hardware.
    assert told.certificate.simulated
    assert told.before.simulated
    assert told.after is None or told.after.simulated
    assert told.probe is None or (told.probe.simulated and told.probe.backend == "numpy")
