"""Every knob has its cases and its page, and does in each case what the case says."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from nodeprep.knobs import all_knobs, build_plan
from nodeprep.model.codec import decode
from nodeprep.model.facts import NodeFacts
from nodeprep.model.plan import Change
from nodeprep.profiles import resolve, settings_from_variables

ROOT = Path(__file__).parents[2]
CASES = ROOT / "tests" / "cases" / "knobs"
FILES = sorted(CASES.glob("*/*.yaml"))
KNOBS = {knob.id: knob for knob in all_knobs()}

# What a plan can say of a knob, each of which needs a case.
KINDS = {
    "bios": {"ok", "change", "refused", "unsupported", "unknown"},
    "gpu_ecc": {"ok", "unsupported", "unknown"},
    "gpu_persistence": {"ok", "change", "unknown"},
    "gpu_power_boot": {"ok", "change", "refused", "unsupported", "unknown"},
    "gpu_power_limit": {"ok", "change", "unsupported", "refused", "unknown"},
    "kernel_args": {"ok", "change", "unsupported", "refused", "unknown"},
    "pcie_link": {"ok", "change", "refused", "unsupported", "unknown"},
}


def load_case(file: Path) -> dict[str, Any]:
    return yaml.safe_load(file.read_text())


def facts_of(case: dict[str, Any]) -> NodeFacts:
    document = json.loads((CASES / "facts.json").read_text())
    for pointer, value in case.get("facts", {}).items():
        *path, last = pointer.lstrip("/").split("/")
        part: Any = document
        for step in path:
            part = part[int(step)] if isinstance(part, list) else part[step]
        if last not in part:
            raise KeyError(f"{pointer} is not in the facts")
        part[last] = value
    return decode(json.dumps(document), NodeFacts, source="case")


def changes_of(case: dict[str, Any], knob: str) -> list[Change]:
    facts = facts_of(case)
    variables = {"nodeprep_profile": case.get("profile", "auto"), "nodeprep_policy": case["policy"]}
    settings = settings_from_variables(variables, source="case", known_checks=())
    spec = resolve(facts.host, settings, facts, today=date(2026, 11, 30))
    return [change for change in build_plan(spec, facts).changes if change.knob == knob]


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_case(file: Path) -> None:
    case = load_case(file)
    changes = changes_of(case, file.parent.name)
    seen = [(change.subject, change.status, change.old, change.new) for change in changes]
    assert seen == [(one["subject"], one["status"], one["old"], one["new"]) for one in case["expect"]]
    for change, wanted in zip(changes, case["expect"], strict=True):
        assert wanted.get("reason", "") in change.reason
        assert not wanted.get("risk") or any(wanted["risk"] in risk for risk in change.risks), change.risks
        assert "no_risk" not in wanted or not any(wanted["no_risk"] in risk for risk in change.risks)


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}-{file.stem}")
def test_what_is_not_as_wanted_says_why(file: Path) -> None:
    for change in changes_of(load_case(file), file.parent.name):
        assert change.why
        assert change.status in ("ok", "change") or change.reason
        assert not (change.status == "ok" and (change.reason or change.risks or change.needs_reboot))


@pytest.mark.parametrize("knob", KNOBS)
def test_every_kind_of_answer_has_a_case(knob: str) -> None:
    told = {one["status"] for file in FILES if file.parent.name == knob for one in load_case(file)["expect"]}
    assert told == KINDS[knob]


def test_no_cases_of_knobs_that_do_not_exist() -> None:
    assert {file.parent.name for file in FILES} == set(KNOBS)


@pytest.mark.parametrize("knob", KNOBS)
def test_every_knob_has_a_page(knob: str) -> None:
    page = (ROOT / "docs" / "knobs" / f"{knob}.md").read_text()
    assert page.startswith(f"# {KNOBS[knob].title} (`{knob}`)\n")
    for risk in KNOBS[knob].risks:
        assert risk in page.replace("\n", " ")


def test_no_page_of_a_knob_that_does_not_exist() -> None:
    pages = {page.stem for page in (ROOT / "docs" / "knobs").glob("*.md")} - {"README"}
    assert pages == set(KNOBS)
