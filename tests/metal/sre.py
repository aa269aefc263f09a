"""nodeprep's own commands, run on a rack as an operator runs them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nodeprep.checks import Context, all_checks
from nodeprep.model.codec import decode
from nodeprep.model.facts import NodeFacts
from nodeprep.model.result import CheckResult
from nodeprep.model.spec import NodeSpec
from nodeprep.profiles import resolve, settings_from_text
from nodeprep.sim.vm import Rack

# Of a reboot on a busy machine without KVM, twice.
_TIMEOUT_S = 1800


@dataclass(frozen=True)
class Told:
    """What a command said.

    Attributes:
        folder: Of the run, with its documents.
        text: Both streams, for people.
    """

    code: int
    folder: Path
    text: str

    def document(self, path: str) -> dict[str, Any]:
        """A document of the run."""
        found: dict[str, Any] = json.loads((self.folder / path).read_text())
        return found

    def facts(self, host: str, label: str = "now") -> NodeFacts:
        """What a machine was seen to be."""
        path = self.folder / f"facts/{host}.{label}.json"
        return decode(path.read_bytes(), NodeFacts, source=str(path))


def nodeprep(rack: Rack, verb: str, host: str, *words: str, policy: Mapping[str, Any] | None = None) -> Told:
    """Run `nodeprep VERB HOST -b`; what it said is printed, and shown when the test fails."""
    place = Path(tempfile.mkdtemp(dir=rack.folder, prefix=f"{verb}-"))
    folder = place / "run"
    command = [str(Path(sys.executable).with_name("nodeprep")), verb, host, "-b", *words]
    command += ["-i", str(rack.inventory), "-o", str(folder)]
    if policy is not None:
        (place / "policy.yml").write_text(_text(policy))
        command += ["--policy", str(place / "policy.yml")]
    # Ansible gives sudo 12 seconds to ask, which a busy machine without KVM can need for sudo alone.
    more = {"NODEPREP_HOME": str(rack.folder / "home"), "COLUMNS": "400", "ANSIBLE_TIMEOUT": "60"}
    done = subprocess.run(
        command,
        env={**os.environ, **more},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    text = done.stdout + done.stderr
    print(f"{' '.join(command)}: exit status {done.returncode}\n{text}")
    return Told(done.returncode, folder, text)


def spec(facts: NodeFacts, policy: Mapping[str, Any]) -> NodeSpec:
    """What a machine should be by a policy."""
    settings = settings_from_text(_text(policy), source="policy")
    return resolve(facts.host, settings, facts, today=datetime.now(UTC).date())


def run_check(
    name: str, wanted: NodeSpec, before: NodeFacts, after: NodeFacts | None = None
) -> dict[str, CheckResult]:
    """Results of one check by subject. A check of the load gets facts from before and after, and no probe."""
    results = all_checks()[name].evaluate(Context(spec=wanted, before=before, after=after))
    return {result.subject: result for result in results}


def _text(policy: Mapping[str, Any]) -> str:
    """JSON is YAML."""
    return json.dumps({"nodeprep_profile": "generic", "nodeprep_policy": policy})
