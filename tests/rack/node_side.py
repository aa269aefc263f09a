"""The node's side of certify, run directly: no Ansible in between, everything else real."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from nodeprep.certify.certificate import build_certificate
from nodeprep.certify.judge import Judgement, judge
from nodeprep.fleet import archive
from nodeprep.model.certificate import Certificate
from nodeprep.model.codec import decode, from_builtins
from nodeprep.model.facts import NodeFacts
from nodeprep.model.probe import ProbeResult
from nodeprep.model.spec import NodeSpec
from nodeprep.node import gpu_power, observe
from nodeprep.node.power_unit import NODE_PYZ
from nodeprep.profiles import resolve, settings_from_variables
from nodeprep.sim.rack import RackNode, rack_variables

NVML_DEADLINE_S = 1.5
NOW = datetime.now(UTC)


def observe_node(node: RackNode, since: dict[str, Any] | None = None) -> tuple[NodeFacts, dict[str, Any]]:
    """Facts as the controller would have them, and as the node sent them."""
    raw = observe.collect(str(node.root), nvml_deadline_s=NVML_DEADLINE_S, since=since)
    raw = json.loads(json.dumps({**raw, "host": node.name}))
    return from_builtins(raw, NodeFacts, source=node.name), raw


def probe_command(node: RackNode, out: Path, *arguments: str) -> list[str]:
    """How the probe is started on a node."""
    return [
        sys.executable, "-m", "nodeprep.probe", "run", "--root", str(node.root),
        "--workload", "tiny", "--level", "quick", "--out", str(out), *arguments,
    ]  # fmt: skip


def set_power_limit(node: RackNode) -> dict[str, Any]:
    """What apply does on a node: the program for the boot unit, then the settings."""
    program = node.root / NODE_PYZ.lstrip("/")
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_bytes(node_program())
    return gpu_power.apply(
        str(node.root), limit="93%", persistence=True, check_mode=False, deadline_s=NVML_DEADLINE_S
    )


@cache
def node_program() -> bytes:
    """The node's program, packed once."""
    return archive.build("node").data


@dataclass(frozen=True)
class Told:
    """Everything one node said."""

    before: NodeFacts
    after: NodeFacts | None
    probe: ProbeResult | None
    certificate: Certificate


def node_spec(node: RackNode, facts: NodeFacts) -> NodeSpec:
    """What the rack's policy wants of a node."""
    own = {key: value for key, value in rack_variables().items() if key.startswith("nodeprep_")}
    return resolve(node.name, settings_from_variables(own, source=node.name), facts, today=NOW.date())


def judge_node(node: RackNode, probe: ProbeResult) -> Judgement:
    """The verdict on a probe that ran by itself."""
    set_power_limit(node)
    before, raw = observe_node(node)
    after, _ = observe_node(node, since=raw["log_cursor"])
    return judge(node_spec(node, before), before, after=after, probe=probe)


def certify_node(node: RackNode, out: Path, *probe_arguments: str) -> Told:
    """Power limit, facts, probe, facts, verdict: what certify does, on one node."""
    set_power_limit(node)
    before, raw = observe_node(node)
    probe, after, absent = None, None, ""
    if before.nvml.gpus.value:
        ended = subprocess.run(
            probe_command(node, out, *probe_arguments),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert ended.returncode in (0, 4), ended.stderr
        file = out / "result.json"
        probe = decode(file.read_bytes(), ProbeResult, source=str(file))
        after, _ = observe_node(node, since=raw["log_cursor"])
    else:
        absent = f"the GPUs could not be read: {before.nvml.gpus.detail}"
    spec = node_spec(node, before)
    judgement = judge(spec, before, after=after, probe=probe, probe_absent_reason=absent)
    certificate = build_certificate(
        run="r",
        spec=spec,
        judgement=judgement,
        before=before,
        after=after,
        probe=probe,
        level="quick",
        workload="tiny",
        issued=NOW,
        expires=NOW + timedelta(days=90),
        digests={"policy": "0" * 64, "content": "0" * 64},
    )
    return Told(before, after, probe, certificate)
