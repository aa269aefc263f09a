"""The committed JSON Schemas are those of the types, and documents hold to them."""

from __future__ import annotations

import inspect
import json
from dataclasses import fields, is_dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from nodeprep.knobs import build_plan
from nodeprep.model import certificate, facts, outputs, plan, probe, result, run, schemas
from nodeprep.model.codec import decode, encode
from nodeprep.model.facts import NodeFacts
from nodeprep.profiles import SiteSettings, resolve

ROOT = Path(__file__).parents[2]
FACTS = ROOT / "tests" / "cases" / "knobs" / "facts.json"
FOLDER = Path(schemas.__file__).parent


@pytest.mark.parametrize("document", schemas.DOCUMENTS)
def test_the_committed_schema_is_up_to_date(document: str) -> None:
    committed = (FOLDER / schemas.file_name(document)).read_text()
    assert committed == schemas.render(document), "run: python -m nodeprep.model.schemas"


def test_no_schema_without_a_document() -> None:
    names = {schemas.file_name(document) for document in schemas.DOCUMENTS}
    assert {file.name for file in FOLDER.glob("*.json")} == names


@pytest.mark.parametrize("document", schemas.DOCUMENTS)
def test_every_schema_is_a_schema(document: str) -> None:
    schema = schemas.load(document)
    Draft202012Validator.check_schema(schema)
    assert schema["title"] == document


def test_every_document_type_has_a_schema() -> None:
    modules = (certificate, facts, outputs, plan, probe, result, run)
    named = {
        field.default
        for module in modules
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if is_dataclass(kind)
        for field in fields(kind)
        if field.name == "schema"
    }
    assert named <= set(schemas.DOCUMENTS)
    assert len(named) > 5


@pytest.mark.parametrize("document", schemas.DOCUMENTS)
def test_a_document_that_says_its_schema_must_say_it(document: str) -> None:
    kind = schemas.DOCUMENTS[document].kind
    top = schemas.load(document)["$defs"][kind.__name__]
    assert ("schema" in top["properties"]) == ("schema" in top["required"])


def errors(document: str, value: Any) -> list[str]:
    found = Draft202012Validator(schemas.load(document)).iter_errors(value)
    return sorted(error.json_path for error in found)


def test_documents_hold_to_their_schemas() -> None:
    node = decode(FACTS.read_bytes(), NodeFacts, source="facts")
    spec = resolve(node.host, SiteSettings(), node, today=date(2026, 11, 30))
    assert errors("nodeprep.facts/1", json.loads(encode(node))) == []
    assert errors("nodeprep.plan/1", json.loads(encode(build_plan(spec, node)))) == []
    assert errors("nodeprep.policy/1", json.loads(encode(spec.policy))) == []


def test_a_wrong_document_does_not_hold() -> None:
    node = json.loads(FACTS.read_text())
    node["boot"]["boot_id"]["state"] = "fine"
    del node["schema"]
    assert errors("nodeprep.facts/1", node) == ["$", "$.boot.boot_id.state"]


def test_a_policy_may_not_say_more_and_facts_may() -> None:
    assert errors("nodeprep.policy/1", {"gpu": {"cuont": 8}}) == ["$.gpu"]
    node = json.loads(FACTS.read_text())
    node["later_addition"] = 1
    assert errors("nodeprep.facts/1", node) == []


def test_there_is_no_such_document() -> None:
    with pytest.raises(KeyError, match=r"nodeprep\.nothing/1"):
        schemas.load("nodeprep.nothing/1")
