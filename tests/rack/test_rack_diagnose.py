"""`diagnose --host` on a simulated node: Ansible brings the evidence home, and the same engine reads it."""

from __future__ import annotations

import json
from pathlib import Path

from commands import Cli

from nodeprep.sim.rack import build_rack


def test_an_xid_in_the_kernel_log_of_a_live_node_is_diagnosed(tmp_path: Path) -> None:
    rack = build_rack(tmp_path / "rack", nodes=1, gpus=2)
    (node,) = rack.nodes
    log = node.root / "dev" / "kmsg"
    last = int(log.read_bytes().splitlines()[-1].split(b",")[1])
    with log.open("a") as out:
        out.write(f"3,{last + 1},7200000000,-;NVRM: Xid (PCI:0000:17:00): 79, GPU has fallen off the bus.\n")
    run = tmp_path / "run"
    said = Cli(tmp_path / "home")(
        "diagnose", "--host", "all", "-i", rack.inventory, "-o", run, "--json", timeout_s=400
    )
    assert said.code == 20, said.stderr
    found = said.document
    assert (found["schema"], found["simulated"]) == ("nodeprep.diagnosis/1", True)
    assert [incident["xids"] for incident in found["incidents"]] == [[79]]
    assert found["incidents"][0]["evidence"][0]["source"] == f"{node.name}.tar.gz/kernel.log"
    # Nothing but the node's own parts is missing: facts, kernel log and manifest were read to their end.
    assert {each["format"] for each in found["inputs"]} == {"node_facts", "kmsg", "evidence_manifest"}
    assert [each["gaps"] for each in found["inputs"]] == [[], [], []]
    assert json.loads((run / "diagnosis" / f"{node.name}.json").read_text()) == found
