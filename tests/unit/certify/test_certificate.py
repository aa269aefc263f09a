"""What a certificate says, and what its subject is."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest
from certify_samples import NOW, certificate_for, passed

from nodeprep.certify.certificate import build_certificate
from nodeprep.certify.identity import identity_digest, identity_of
from nodeprep.certify.judge import Judgement
from nodeprep.certify.signing import SigningKey
from nodeprep.certify.statement import build_statement, read_unverified, sign_certificate
from nodeprep.checks import Context
from nodeprep.errors import DocumentError, NodeprepError, UsageError
from nodeprep.model.certificate import Certificate
from nodeprep.model.codec import digest, encode_pretty


def test_the_statement_is_in_toto_v1_about_the_hardware(certificate: Certificate) -> None:
    statement = build_statement(certificate)
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["subject"] == [
        {"name": "node07", "digest": {"sha256": identity_digest(certificate.identity)}}
    ]
    assert statement["predicateType"] == "https://nodeprep.dev/certificate/v1"
    assert statement["predicate"]["schema"] == "nodeprep.certificate/1"
    assert statement["predicate"]["verdict"] == "certified"


def test_the_evidence_is_named_by_digest(context: Context, certificate: Certificate) -> None:
    assert context.probe is not None
    assert certificate.digests == {
        "policy": context.spec.policy_digest,
        "content": "c" * 64,
        "facts_before": digest(context.before),
        "facts_after": digest(context.after),
        "probe": context.probe.probe_digest,
        "workload": context.probe.workload.digest,
        "probe_result": digest(context.probe),
    }


def test_the_probe_in_a_few_numbers(certificate: Certificate) -> None:
    assert certificate.probe is not None
    summary = certificate.probe.gpus["0000:17:00.0"]
    assert summary["bitwise_mismatches"] == 0
    assert summary["achieved_tflops"] == 570.0
    assert summary["mean_power_w"] == 645.0
    assert summary["min_link_width_lanes"] == 16.0


def test_what_was_not_measured_is_left_out_and_not_zero(context: Context, probe: Any) -> None:
    partial = probe({"/gpus/0/achieved_tflops": {"state": "error", "detail": "no iteration"}})
    certificate = certificate_for(replace(context, probe=partial), (passed("a"),))
    assert certificate.probe is not None
    assert "achieved_tflops" not in certificate.probe.gpus["0000:17:00.0"]


def test_the_configuration_is_flat_and_readable(certificate: Certificate) -> None:
    values = certificate.configuration.values
    assert values["gpu.0000:17:00.0.power_limit_w"] == "650"
    assert values["gpu.0000:17:00.0.persistence"] == "true"
    assert values["pci.0000:16:01.0.aspm"] == "off"
    assert values["pci.0000:17:00.0.path"] == "0000:16:01.0 > 0000:17:00.0"
    assert "pcie_aspm=off" in values["kernel.cmdline"]
    assert values["driver.version"] == "580.159.04"


def test_the_configuration_is_that_of_after_the_load(context: Context, facts: Any) -> None:
    after = facts({"/nvml/gpus/value/0/remap/correctable_rows": {"state": "ok", "value": 1}})
    certificate = certificate_for(replace(context, after=after), (passed("a"),))
    assert certificate.configuration.values["gpu.0000:17:00.0.remapped_rows_correctable"] == "1"


SAME = {
    "a BIOS upgrade": {"/dmi/bios_version": {"state": "ok", "value": "9.9"}},
    "a VBIOS upgrade": {"/nvml/gpus/value/0/vbios_version": {"state": "ok", "value": "97.00"}},
    "another bus number": {"/nvml/gpus/value/0/pci_address": "0000:99:00.0"},
    "fewer CPUs": {"/cpu/present": {"state": "ok", "value": 112}},
    "another host name": {"/host": "renamed"},
}
OTHER = {
    "a swapped GPU": {"/nvml/gpus/value/0/uuid": {"state": "ok", "value": "GPU-other"}},
    "another GPU serial": {"/nvml/gpus/value/0/serial": {"state": "ok", "value": "1"}},
    "another machine": {"/dmi/product_serial": {"state": "ok", "value": "SN-0008"}},
    "another board": {"/dmi/board_serial": {"state": "ok", "value": "BSN-0008"}},
}


@pytest.mark.parametrize("changes", SAME.values(), ids=SAME)
def test_what_does_not_make_it_another_machine(facts: Any, changes: dict[str, Any]) -> None:
    assert identity_digest(identity_of(facts(changes))) == identity_digest(identity_of(facts()))


@pytest.mark.parametrize("changes", OTHER.values(), ids=OTHER)
def test_what_makes_it_another_machine(facts: Any, changes: dict[str, Any]) -> None:
    assert identity_digest(identity_of(facts(changes))) != identity_digest(identity_of(facts()))


def test_the_wording_of_what_is_missing_is_no_identity(facts: Any) -> None:
    ways = [
        {"state": "error", "detail": "Permission denied"},
        {"state": "error", "detail": "Input/output error"},
        {"state": "not_supported", "detail": "firmware gives none"},
        {"state": "ok", "value": "Default string"},
        {"state": "ok", "value": "0000-00"},
    ]
    digests = {identity_digest(identity_of(facts({"/dmi/board_serial": way}))) for way in ways}
    assert len(digests) == 1


def test_a_gpu_that_nvml_does_not_know_is_in_the_identity(facts: Any) -> None:
    hung = identity_of(facts({"/nvml/gpus": {"state": "error", "detail": "NVML hung"}}))
    assert [(gpu.pci_address, gpu.uuid) for gpu in hung.gpus] == [
        ("0000:17:00.0", "unreadable: NVML hung"),
        ("0000:3b:00.0", "unreadable: NVML hung"),
    ]


@pytest.mark.parametrize(
    "fault", ["no probe", "injected", "interrupted", "no after", "failed check", "reasons"]
)
def test_an_impossible_certified_verdict_is_never_built(context: Context, probe: Any, fault: str) -> None:
    checks = (replace(passed("a"), status="FAIL"),) if fault == "failed check" else (passed("a"),)
    judgement = Judgement(
        verdict="certified", checks=checks, reasons=("x",) if fault == "reasons" else (), simulated=False
    )
    probes = {
        "no probe": None,
        "injected": probe({"/injected": "flip:block=1,bit=0"}),
        "interrupted": probe({"/state": "interrupted"}),
    }
    certificate = certificate_for(context, (passed("a"),))
    with pytest.raises(NodeprepError, match="a certified verdict"):
        build_certificate(
            run="r",
            spec=context.spec,
            judgement=judgement,
            before=context.before,
            after=None if fault == "no after" else context.after,
            probe=probes.get(fault, context.probe),
            level=certificate.level,
            workload=certificate.workload,
            issued=NOW,
            expires=NOW,
            digests={},
        )


def test_a_simulated_certificate_is_not_signed_with_a_real_key(
    certificate: Certificate, key: SigningKey
) -> None:
    with pytest.raises(UsageError, match=r"is simulated and the key .* is not"):
        sign_certificate(replace(certificate, simulated=True), key)


def test_a_real_certificate_is_not_signed_with_a_simulated_key(
    certificate: Certificate, simulated_key: SigningKey
) -> None:
    with pytest.raises(UsageError, match="signs simulated certificates only"):
        sign_certificate(certificate, simulated_key)


def test_the_envelope_is_dsse(certificate: Certificate, key: SigningKey) -> None:
    envelope = sign_certificate(certificate, key)
    assert envelope["payloadType"] == "application/vnd.in-toto+json"
    assert [signature["keyid"] for signature in envelope["signatures"]] == [key.key_id]
    assert json.loads(base64.b64decode(envelope["payload"])) == json.loads(
        json.dumps(build_statement(certificate))
    )


def test_it_can_be_shown_without_a_key(certificate: Certificate, key: SigningKey) -> None:
    data = encode_pretty(sign_certificate(certificate, key))
    assert read_unverified(data, source="node07.json") == (certificate, key.key_id)


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"null"])
def test_what_is_no_certificate_cannot_be_shown(data: bytes) -> None:
    with pytest.raises(DocumentError, match=r"x\.json: not a certificate"):
        read_unverified(data, source="x.json")


def test_another_kind_of_statement_cannot_be_shown(certificate: Certificate, key: SigningKey) -> None:
    statement = {**build_statement(certificate), "predicateType": "https://slsa.dev/provenance/v1"}
    data = encode_pretty(key.sign(json.dumps(statement).encode(), "application/vnd.in-toto+json"))
    with pytest.raises(DocumentError, match="not a certificate of a node"):
        read_unverified(data, source="x.json")
