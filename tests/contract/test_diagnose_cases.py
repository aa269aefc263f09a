"""Every recorded case gets the answer an expert gives: tests/cases/diagnose/ID/case.yaml, inputs beside it.

`incidents` lists all incidents that the answer must have; those above info may be no others. A key that
is not given is not judged; `quotes` and `steps` are parts of the evidence and of the actions.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from nodeprep.diagnose.engine import diagnose
from nodeprep.diagnose.inputs import find_inputs
from nodeprep.model.codec import encode
from nodeprep.model.diagnosis import Diagnosis, Incident

CASES = Path(__file__).parents[1] / "cases" / "diagnose"
SHARED = Path(__file__).parents[2].parent / "shared" / "cases"
SHARED_CASES = sorted((SHARED / "diagnose").glob("*.json")) if SHARED.exists() else []
KEYS = {
    *("layer", "severity", "device", "root_device", "root_event", "xids", "action", "steps"),
    *("quotes", "count", "summary", "why", "host"),
}


@pytest.mark.parametrize("case_id", sorted(path.parent.name for path in CASES.glob("*/case.yaml")))
def test_case(case_id: str) -> None:
    case = yaml.safe_load((CASES / case_id / "case.yaml").read_text())
    assert set(case) == {"title", "source", "healthy", "incidents"}
    found = diagnose(find_inputs([str(CASES / case_id / "inputs")]))
    left = list(found.incidents)
    for wanted in case["incidents"]:
        assert set(wanted) <= KEYS
        met = next((incident for incident in left if not differences(wanted, incident)), None)
        assert met is not None, [(differences(wanted, incident), incident.summary) for incident in left]
        left.remove(met)
    assert [incident.summary for incident in left if incident.severity != "info"] == []
    assert found.healthy is case["healthy"], [each.gaps for each in found.inputs]


def differences(wanted: dict[str, Any], incident: Incident) -> list[str]:
    have = {
        "layer": incident.layer,
        "severity": incident.severity,
        "device": incident.device,
        "root_device": incident.root.device,
        "root_event": incident.root.event,
        "xids": list(incident.xids),
        "action": incident.action,
        "count": incident.count,
        "host": incident.host,
    }
    out = [f"{key} is {have[key]!r}" for key in have if key in wanted and wanted[key] != have[key]]
    out += [f"no step {step}" for step in wanted.get("steps", ()) if step not in incident.actions]
    quoted = "\n".join(line.text for line in incident.evidence)
    out += [f"no quote {quote}" for quote in wanted.get("quotes", ()) if quote not in quoted]
    for key, text in (("summary", incident.summary), ("why", incident.why)):
        if wanted.get(key, "") not in text:
            out.append(f"{key} is {text!r}")
    return out


@pytest.mark.skipif(not SHARED_CASES, reason="../shared/cases is not here")
@pytest.mark.parametrize("path", SHARED_CASES, ids=lambda path: path.stem)
def test_shared_case(path: Path, tmp_path: Path) -> None:
    case = json.loads(path.read_text())
    for name, text in case["inputs"].items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    document = json.loads(encode(diagnose(find_inputs([str(tmp_path)]))))
    assert _checker().judge(case["expect"], document) == []


def _checker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_cases", SHARED / "check_cases.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["check_cases"] = module
    spec.loader.exec_module(module)
    return module


def _everything() -> list[Diagnosis]:
    return [diagnose(find_inputs([str(path.parent / "inputs")])) for path in CASES.glob("*/case.yaml")]


def test_what_holds_for_every_answer() -> None:
    """Each incident quotes lines in order of what is known, and every step has words."""
    from nodeprep.diagnose import catalog

    for found in _everything():
        for incident in found.incidents:
            assert incident.evidence
            assert incident.summary
            assert incident.why
            assert incident.actions[0] == incident.action
            assert all(catalog.step(step) for step in incident.actions)
            assert incident.count >= 1
