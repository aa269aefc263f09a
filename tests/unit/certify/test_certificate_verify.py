"""Every way a certificate can be refused, each by its own name."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from certify_samples import NOW, certificate_for, passed
from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey

from nodeprep.certify.signing import SigningKey
from nodeprep.certify.statement import build_statement, sign_certificate
from nodeprep.certify.verify import Verified, verify
from nodeprep.checks import Context
from nodeprep.cli._output import Output
from nodeprep.errors import ExitCode
from nodeprep.model.certificate import Certificate
from nodeprep.model.codec import encode, encode_pretty
from nodeprep.model.policy import Waiver

Verify = Callable[..., Verified]


@pytest.fixture
def signed(certificate: Certificate, key: SigningKey) -> bytes:
    return encode_pretty(sign_certificate(certificate, key))


def sign_statement(
    statement: dict[str, Any], key: SigningKey, kind: str = "application/vnd.in-toto+json"
) -> bytes:
    return encode_pretty(key.sign(json.dumps(statement).encode(), kind))


def refused(outcome: Verified, problem: str, code: ExitCode = ExitCode.REJECTED) -> None:
    assert (outcome.check.problem, outcome.exit_code) == (problem, code), outcome.check.message
    assert not outcome.check.accepted
    assert outcome.check.message
    assert outcome.hint


def test_a_good_one_is_accepted(signed: bytes, key: SigningKey, certificate: Certificate) -> None:
    outcome = verify(signed, key.public, now=NOW, file="node07.json")
    assert outcome.exit_code == ExitCode.OK
    assert outcome.check.accepted
    assert outcome.check.signature_valid
    assert outcome.check.host == "node07"
    assert outcome.check.key_id == key.key_id
    assert outcome.certificate == certificate


def test_other_tools_verify_it_too(signed: bytes, key: SigningKey) -> None:
    public = SSlibKey.from_crypto(key.public.key._crypto_key())  # type: ignore[attr-defined]
    assert Envelope.from_dict(json.loads(signed)).verify([public], 1)


@pytest.mark.parametrize("form", [encode_pretty, encode])
@pytest.mark.parametrize("bit", [0x01, 0x20, 0xFF])
def test_no_changed_byte_is_accepted(
    certificate: Certificate, key: SigningKey, bit: int, form: Callable[[Any], bytes]
) -> None:
    public, signed = key.public, form(sign_certificate(certificate, key))
    assert verify(signed, public, now=NOW).check.accepted
    for index in range(len(signed)):
        changed = bytearray(signed)
        changed[index] ^= bit
        outcome = verify(bytes(changed), public, now=NOW)
        assert not outcome.check.accepted, (index, signed[index])
        assert outcome.exit_code == ExitCode.REJECTED


def test_no_white_space_of_any_kind_stands_for_another(signed: bytes, key: SigningKey) -> None:
    public = key.public
    for index in (index for index, byte in enumerate(signed) if byte in b" \n"):
        for other in b" \n\t\r":
            if other != signed[index]:
                changed = signed[:index] + bytes([other]) + signed[index + 1 :]
                assert not verify(changed, public, now=NOW).check.accepted, index
        assert not verify(signed[:index] + signed[index + 1 :], public, now=NOW).check.accepted, index


def test_no_other_letter_of_base64_stands_for_the_same(signed: bytes, key: SigningKey) -> None:
    envelope = json.loads(signed)
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/="
    for part, text in (("payload", envelope["payload"]), ("sig", envelope["signatures"][0]["sig"])):
        for position in range(len(text) - 4, len(text)):
            for letter in letters:
                if letter != text[position]:
                    changed = text[:position] + letter + text[position + 1 :]
                    data = signed.replace(text.encode(), changed.encode())
                    assert not verify(data, key.public, now=NOW).check.accepted, (part, position, letter)


def test_a_changed_payload(signed: bytes, key: SigningKey) -> None:
    envelope = json.loads(signed)
    payload = base64.b64decode(envelope["payload"]).replace(b'"node07"', b'"node08"')
    envelope["payload"] = base64.b64encode(payload).decode()
    outcome = verify(encode_pretty(envelope), key.public, now=NOW)
    refused(outcome, "bad_signature")
    assert outcome.certificate is None
    assert not outcome.check.signature_valid
    assert outcome.check.host == ""


REFORMATTED = {
    "other indent": lambda envelope: json.dumps(envelope, indent=4).encode(),
    "spaces": lambda envelope: json.dumps(envelope).encode(),
    "no newline": lambda envelope: encode_pretty(envelope)[:-1],
    "one more newline": lambda envelope: encode_pretty(envelope) + b"\n",
    "Windows": lambda envelope: encode_pretty(envelope).replace(b"\n", b"\r\n"),
    "another order": lambda envelope: encode_pretty(dict(reversed(envelope.items()))),
    "an escape": lambda envelope: encode_pretty(envelope).replace(b'"keyid"', b'"\\u006beyid"'),
}


@pytest.mark.parametrize("form", REFORMATTED.values(), ids=REFORMATTED)
def test_reformatted(signed: bytes, key: SigningKey, form: Callable[[dict[str, Any]], bytes]) -> None:
    outcome = verify(form(json.loads(signed)), key.public, now=NOW)
    refused(outcome, "not_canonical")
    assert "do not edit or reformat" in outcome.hint


def test_what_a_command_prints_is_the_file(
    certificate: Certificate, key: SigningKey, capsys: pytest.CaptureFixture[str]
) -> None:
    Output(json=True).document(sign_certificate(certificate, key))
    printed = capsys.readouterr().out.encode()
    assert verify(printed, key.public, now=NOW).check.accepted


def test_half_a_surrogate_pair_is_no_text(signed: bytes, key: SigningKey) -> None:
    data = signed.replace(key.key_id.encode(), rb"\ud800")
    refused(verify(data, key.public, now=NOW), "not_dsse")


def test_another_key(signed: bytes, tmp_path: Path) -> None:
    other = SigningKey.load_or_create(tmp_path / "other" / "k.pem", simulated=False)
    outcome = verify(signed, other.public, now=NOW)
    refused(outcome, "wrong_key")
    assert other.key_id[:16] in outcome.check.message


def test_another_key_that_claims_the_right_id(
    certificate: Certificate, key: SigningKey, tmp_path: Path
) -> None:
    other = SigningKey.load_or_create(tmp_path / "other" / "k.pem", simulated=False)
    envelope = sign_certificate(certificate, other)
    envelope["signatures"][0]["keyid"] = key.key_id
    refused(verify(encode_pretty(envelope), key.public, now=NOW), "bad_signature")


@pytest.mark.parametrize(
    "data", [b"", b"{", b"\xff\xfe", b"certificate", b"[" * 100_000, b'{"a": 1, "a": 2}']
)
def test_not_json(data: bytes, key: SigningKey) -> None:
    refused(verify(data, key.public, now=NOW), "not_json")


@pytest.mark.parametrize(
    "change",
    [
        lambda envelope: envelope.pop("payload"),
        lambda envelope: envelope.pop("signatures"),
        lambda envelope: envelope.update(signatures=[]),
        lambda envelope: envelope.update(signatures=envelope["signatures"] * 2),
        lambda envelope: envelope.update(payload=7),
        lambda envelope: envelope.update(payload="***"),
        lambda envelope: envelope.update(payload=envelope["payload"] + "\n"),
        lambda envelope: envelope.update(more=1),
        lambda envelope: envelope["signatures"][0].update(cert="x"),
        lambda envelope: envelope.update(signatures={"keyid": "x"}),
    ],
)
def test_not_dsse(signed: bytes, key: SigningKey, change: Callable[[dict[str, Any]], Any]) -> None:
    envelope = json.loads(signed)
    change(envelope)
    refused(verify(encode_pretty(envelope), key.public, now=NOW), "not_dsse")


@pytest.mark.parametrize("data", [b"[]", b"null", b"7", b'"x"'])
def test_json_that_is_no_envelope(data: bytes, key: SigningKey) -> None:
    refused(verify(data, key.public, now=NOW), "not_dsse")


@pytest.mark.parametrize(
    "change",
    [
        {"_type": "https://in-toto.io/Statement/v2"},
        {"predicateType": "https://slsa.dev/provenance/v1"},
        {"predicate": {"schema": "nodeprep.certificate/2"}},
    ],
)
def test_a_schema_this_version_does_not_know(
    certificate: Certificate, key: SigningKey, change: dict[str, Any]
) -> None:
    outcome = verify(sign_statement({**build_statement(certificate), **change}, key), key.public, now=NOW)
    refused(outcome, "unsupported_schema")
    assert outcome.check.signature_valid


def test_another_payload_type(certificate: Certificate, key: SigningKey) -> None:
    data = sign_statement(build_statement(certificate), key, kind="text/plain")
    refused(verify(data, key.public, now=NOW), "unsupported_schema")


@pytest.mark.parametrize("statement", [[], {}, {"predicate": 7}, {"_type": "x"}])
def test_a_signed_something_else(key: SigningKey, statement: Any) -> None:
    refused(verify(sign_statement(statement, key), key.public, now=NOW), "malformed")


def test_a_predicate_with_a_part_missing(certificate: Certificate, key: SigningKey) -> None:
    statement = build_statement(certificate)
    del statement["predicate"]["checks"]
    refused(verify(sign_statement(statement, key), key.public, now=NOW), "malformed")


def test_a_subject_that_is_another_node(certificate: Certificate, key: SigningKey) -> None:
    statement = build_statement(certificate)
    statement["subject"][0]["digest"]["sha256"] = "0" * 64
    refused(verify(sign_statement(statement, key), key.public, now=NOW), "subject_mismatch")


def test_expired(signed: bytes, key: SigningKey, certificate: Certificate) -> None:
    end = datetime.fromisoformat(certificate.expires)
    assert verify(signed, key.public, now=end - timedelta(seconds=1)).check.accepted
    outcome = verify(signed, key.public, now=end)
    refused(outcome, "expired")
    assert certificate.expires in outcome.check.message
    assert outcome.check.signature_valid


def test_from_the_future(signed: bytes, key: SigningKey) -> None:
    assert verify(signed, key.public, now=NOW - timedelta(minutes=4)).check.accepted
    refused(verify(signed, key.public, now=NOW - timedelta(minutes=6)), "not_yet_valid")


@pytest.mark.parametrize("verdict", ["certified", "rejected"])
@pytest.mark.parametrize("expires", ["never", "2030-01-01T00:00:00"])
def test_times_that_mean_nothing(
    certificate: Certificate, key: SigningKey, expires: str, verdict: Any
) -> None:
    data = encode_pretty(sign_certificate(replace(certificate, expires=expires, verdict=verdict), key))
    refused(verify(data, key.public, now=NOW), "malformed")


def test_rejected_with_a_good_signature(certificate: Certificate, key: SigningKey) -> None:
    rejected = replace(
        certificate, verdict="rejected", reasons=("pcie_link_width: x8", "aer_quiet: 7 errors")
    )
    outcome = verify(encode_pretty(sign_certificate(rejected, key)), key.public, now=NOW)
    refused(outcome, "rejected")
    assert outcome.check.signature_valid
    assert outcome.check.message == (
        "the signature holds, and the verdict is rejected: pcie_link_width: x8 (and 1 more)"
    )


def test_inconclusive_with_a_good_signature(certificate: Certificate, key: SigningKey) -> None:
    data = encode_pretty(sign_certificate(replace(certificate, verdict="inconclusive"), key))
    refused(verify(data, key.public, now=NOW), "inconclusive", ExitCode.INCONCLUSIVE)
    refused(verify(data, key.public, now=NOW, allow_simulated=True), "inconclusive", ExitCode.INCONCLUSIVE)


def test_simulated(certificate: Certificate, simulated_key: SigningKey) -> None:
    data = encode_pretty(sign_certificate(replace(certificate, simulated=True), simulated_key))
    refused(verify(data, simulated_key.public, now=NOW), "simulated", ExitCode.INCONCLUSIVE)
    accepted = verify(data, simulated_key.public, now=NOW, allow_simulated=True)
    assert accepted.exit_code == ExitCode.OK
    assert accepted.check.simulated is True


@pytest.mark.parametrize(
    ("change", "problem", "code"),
    [
        ({"verdict": "rejected"}, "rejected", ExitCode.REJECTED),
        ({"verdict": "inconclusive"}, "inconclusive", ExitCode.INCONCLUSIVE),
        ({"expires": NOW.isoformat()}, "expired", ExitCode.REJECTED),
    ],
)
def test_simulated_and_worse(
    certificate: Certificate, simulated_key: SigningKey, change: dict[str, Any], problem: str, code: ExitCode
) -> None:
    certificate = replace(certificate, simulated=True, **change)
    data = encode_pretty(sign_certificate(certificate, simulated_key))
    refused(verify(data, simulated_key.public, now=NOW, allow_simulated=True), problem, code)


def test_a_simulated_key_on_a_real_document(certificate: Certificate, simulated_key: SigningKey) -> None:
    data = sign_statement(build_statement(certificate), simulated_key)
    refused(verify(data, simulated_key.public, now=NOW, allow_simulated=True), "simulated_key")


def test_what_it_stands_on_is_said_with_the_verdict(context: Context, key: SigningKey) -> None:
    waiver = Waiver(check="width", owner="ops", until=date(2027, 1, 31), why="slot is x8")
    waived = replace(passed("width", "0000:17:00.0"), status="SKIPPED", waiver=waiver, waived_status="FAIL")
    certificate = certificate_for(context, (passed("ecc_on"), waived))
    outcome = verify(encode_pretty(sign_certificate(certificate, key)), key.public, now=NOW)
    assert outcome.check.accepted
    assert outcome.check.message == "the signature holds and the node is certified, with 1 waiver by ops"
    assert outcome.check.waivers == ("width FAIL on 0000:17:00.0: ops until 2027-01-31: slot is x8",)


def test_every_refusal_has_its_own_message(
    signed: bytes, certificate: Certificate, key: SigningKey, tmp_path: Path
) -> None:
    other = SigningKey.load_or_create(tmp_path / "other" / "k.pem", simulated=False)
    flipped = bytearray(signed)
    flipped[signed.index(b'"payload": "') + 40] ^= 1
    outcomes = [
        verify(b"{", key.public, now=NOW),
        verify(b"{}", key.public, now=NOW),
        verify(bytes(flipped), key.public, now=NOW),
        verify(signed, other.public, now=NOW),
        verify(signed, key.public, now=NOW + timedelta(days=400)),
    ]
    assert len({outcome.check.message for outcome in outcomes}) == len(outcomes)
    assert len({outcome.check.problem for outcome in outcomes}) == len(outcomes)
