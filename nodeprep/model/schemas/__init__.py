"""JSON Schemas of every document, generated from the types and committed beside this file.

Add a document: one line in DOCUMENTS, then `python -m nodeprep.model.schemas`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType
from typing import Any

from nodeprep.model import outputs
from nodeprep.model.bios import BiosApplication, BiosPlan, BiosState
from nodeprep.model.bios_lists import BiosPlanList, BiosStateList
from nodeprep.model.bios_restore import RestorePoint
from nodeprep.model.bmc import BmcSensors
from nodeprep.model.certificate import Certificate
from nodeprep.model.codec import json_schema
from nodeprep.model.diagnosis import Diagnosis
from nodeprep.model.envelope import SignedEnvelope
from nodeprep.model.explanation import Explanation
from nodeprep.model.facts import NodeFacts
from nodeprep.model.plan import Plan
from nodeprep.model.policy import Policy
from nodeprep.model.probe import ProbeResult
from nodeprep.model.result import Verification
from nodeprep.model.run import Run, TelemetrySeries
from nodeprep.model.sighting import Sighting


@dataclass(frozen=True, slots=True)
class Document:
    """One kind of document.

    Attributes:
        kind: Its type.
        strict: Unknown keys are faults (what people write), not additions (what nodeprep writes).
    """

    kind: type
    strict: bool = False


DOCUMENTS: Mapping[str, Document] = MappingProxyType(
    {
        "nodeprep.facts/1": Document(NodeFacts),
        "nodeprep.plan/1": Document(Plan),
        "nodeprep.verification/1": Document(Verification),
        "nodeprep.probe/1": Document(ProbeResult),
        "nodeprep.telemetry/1": Document(TelemetrySeries),
        "nodeprep.certificate/1": Document(Certificate),
        "nodeprep.envelope/1": Document(SignedEnvelope, strict=True),
        "nodeprep.run/1": Document(Run),
        "nodeprep.policy/1": Document(Policy, strict=True),
        "nodeprep.facts_list/1": Document(outputs.FactsList),
        "nodeprep.plan_list/1": Document(outputs.PlanList),
        "nodeprep.apply/1": Document(outputs.Application),
        "nodeprep.apply_list/1": Document(outputs.ApplicationList),
        "nodeprep.bios/1": Document(BiosState),
        "nodeprep.bios_plan/1": Document(BiosPlan),
        "nodeprep.bios_apply/1": Document(BiosApplication),
        "nodeprep.bios_plan_list/1": Document(BiosPlanList),
        "nodeprep.bios_list/1": Document(BiosStateList),
        "nodeprep.bios_restore/1": Document(RestorePoint),
        "nodeprep.bmc_sensors/1": Document(BmcSensors),
        "nodeprep.rollback/1": Document(outputs.Rollback),
        "nodeprep.rollback_list/1": Document(outputs.RollbackList),
        "nodeprep.verification_list/1": Document(outputs.VerificationList),
        "nodeprep.certificate_list/1": Document(outputs.CertificateList),
        "nodeprep.golden_list/1": Document(outputs.GoldenList),
        "nodeprep.sighting/1": Document(Sighting),
        "nodeprep.certificate_check/1": Document(outputs.CertificateCheck),
        "nodeprep.drift/1": Document(outputs.Drift),
        "nodeprep.doctor/1": Document(outputs.Doctor),
        "nodeprep.created/1": Document(outputs.Created),
        "nodeprep.demo/1": Document(outputs.DemoResult),
        "nodeprep.report/1": Document(outputs.ReportWritten),
        "nodeprep.diagnosis/1": Document(Diagnosis),
        "nodeprep.diagnosis_list/1": Document(outputs.DiagnosisList),
        "nodeprep.explanation/1": Document(Explanation),
        "nodeprep.sim_bmc/1": Document(outputs.ReadyBmcs),
        "nodeprep.error/1": Document(outputs.ErrorDocument),
    }
)


def file_name(document: str) -> str:
    """Where a document's schema is committed: "nodeprep.facts/1" is facts-1.json."""
    return document.removeprefix("nodeprep.").replace("/", "-") + ".json"


def load(document: str) -> dict[str, Any]:
    """The committed schema of a document.

    Raises:
        KeyError: There is no such document.
    """
    if document not in DOCUMENTS:
        raise KeyError(document)
    text = (resources.files(__name__) / file_name(document)).read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def render(document: str) -> str:
    """The schema of a document as its type has it now, as the text of its file."""
    entry = DOCUMENTS[document]
    schema = json_schema(entry.kind)
    top = schema["$defs"][entry.kind.__name__]
    if "schema" in top["properties"]:
        # It has a default for those who write documents; those who read them want to see it.
        top["required"] = sorted({*top["required"], "schema"})
    if entry.strict:
        for part in schema["$defs"].values():
            if "properties" in part:
                part["additionalProperties"] = False
    return json.dumps({"title": document, **schema}, indent=1, sort_keys=True) + "\n"
